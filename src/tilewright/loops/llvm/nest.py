"""Reader of one nest in LLVM IR: from blocks and phis to loops, assignments, and run-time conditions."""

from __future__ import annotations

from tilewright.loops.llvm.control_flow import Flow, NaturalLoop
from tilewright.loops.llvm.instruction import Instruction
from tilewright.loops.llvm.intrinsics import changes_nothing, clears, filled
from tilewright.loops.llvm.module import ParsedModule
from tilewright.loops.llvm.regions import cells_of, guards, is_nothing, named, reads_memory
from tilewright.loops.llvm.reroll.rerolled import Rerolling
from tilewright.loops.llvm.rows import check_rows
from tilewright.loops.llvm.scaling import is_special_case, is_special_value, may_be_skipped
from tilewright.loops.llvm.successors import between, never_returns
from tilewright.loops.llvm.symbols import Candidate, NestLocation, names_rows
from tilewright.loops.llvm.tidy import accesses, sunk, with_knowledge, without_dead_stores
from tilewright.loops.llvm.trip_counts import Comparison, TripCounts
from tilewright.loops.llvm.type_layout import BITS, pointer_bits
from tilewright.loops.llvm.values import NotANest, Values, number_of
from tilewright.loops.nests.nest import (
    Access,
    Assign,
    Cell,
    CountedLoop,
    Read,
    Refusal,
    Statement,
    Where,
)
from tilewright.loops.nests.polynomial import Index, Polynomial
from tilewright.spec.dtype import find_llvm_type

_WORDS = {
    "atomicrmw": "changes memory atomically",
    "cmpxchg": "changes memory atomically",
    "fence": "orders its accesses to memory",
    "invoke": "calls a function that may throw",
    "callbr": "calls assembly",
    "switch": "has a multi-way branch",
    "indirectbr": "has a multi-way branch",
    "va_arg": "reads arguments",
}


def place_of(module: ParsedModule, flow: Flow, loop: NaturalLoop) -> Where:
    """Source location of a loop: that of the latch's branch, which has the line of `for`."""
    return module.where(flow.function, flow.function.blocks[loop.latches[0]].terminator)


class Reader:
    """Reads one nest.

    Parameters
    ----------
    module, flow, loop : the outermost loop and its location.
    reassociates : sums and products of floats may be reordered and fused even if no flag allows it.
    rerolls : copies of a loop that an optimiser has made are read as one loop.
    """

    def __init__(
        self,
        module: ParsedModule,
        flow: Flow,
        loop: NaturalLoop,
        *,
        reassociates: bool,
        rerolls: bool = False,
    ) -> None:
        self._module, self._loop, self._flow = module, loop, flow
        self._function = flow.function
        self._check_shape()
        self._counts = TripCounts(module, flow, loop)
        self._values = Values(self._counts, reassociates=reassociates)
        #: Blocks that run in the first iterations, provided that the conditions found before them hold.
        self._reached: set[str] = set()
        self._memsets = 0
        self._rerolling = Rerolling(flow, self._counts, self._values) if rerolls else None

    @property
    def copies_refused(self) -> list[str]:
        """Why blocks that may be copies of a loop are not one loop."""
        return self._rerolling.reasons if self._rerolling else []

    def _refuse(self, reason: str, instruction: Instruction | None = None) -> NotANest:
        where = self._module.where(self._function, instruction)
        return NotANest(
            Refusal(where if where.line else place_of(self._module, self._flow, self._loop), reason)
        )

    # The whole nest

    def _check_shape(self) -> None:
        if pointer_bits(self._module.datalayout) != BITS:
            raise self._refuse("has pointers of other than 64 bits")
        for loop in self._loop.walk():
            if len(loop.latches) > 1:
                raise self._refuse("has several back edges")

    def read(self) -> Candidate:
        """Read the nest, or raise `NotANest`."""
        loop = self._loop
        entering = [one for one in self._function.predecessors[loop.header] if one not in loop.blocks]
        if len(entering) != 1:
            raise self._refuse("has several entries")
        statements = self._read_loop(loop, reached=True)
        match statements:
            case [CountedLoop() as nest]:
                pass
            case _:
                raise self._refuse("carries a value from one iteration of its outermost loop to the next")
        ((_, exit_label),) = self._counts.leaving(loop)
        nest, scalars = with_knowledge(nest, self._counts)
        self._check_reloads(scalars)
        check_rows(self._counts, nest, self._reached, self._refuse)
        leaving = self._leaving(exit_label)
        self._check_order(nest)
        place = NestLocation(self._function.name, entering[0], loop.header, exit_label, leaving)
        # Conditions that name no memory are checked before memory is read.
        conditions = sorted(self._counts.conditions, key=lambda one: any(map(reads_memory, named(one))))
        return Candidate(nest, place, tuple(conditions))

    def _check_reloads(self, scalars: tuple[Access, ...]) -> None:
        """Refuse reads that may not be moved in front of the nest."""
        for instructions in self._counts.reloads.values():
            if not any(self._function.homes[one.result] in self._reached for one in instructions):
                raise self._refuse("reads a size from memory in some iterations only", instructions[0])
        places = {(access.memory.base, access.offset) for access in scalars}
        read = {
            self._counts.address(instruction.operands[0].text, self._flow.innermost(label))
            for label in (self._reached if places else ())
            for instruction in self._function.blocks[label].instructions
            if instruction.opcode == "load"
        }
        if not places <= read:
            raise self._refuse("reads a number from memory in some iterations only")

    def _leaving(self, exit_label: str) -> tuple[tuple[str, Polynomial], ...]:
        """Values of the nest that phis after it use."""
        found = []
        inside = self._loop.blocks
        for label, instruction in self._users_outside():
            if never_returns(self._function, label):
                continue
            if instruction.opcode != "phi" or label != exit_label:
                used = next(name for name in instruction.names if self._counts.home(name) is not None)
                raise self._refuse(f"leaves {used} to the code after it", instruction)
            (text,) = {pair.text for pair in instruction.incoming if pair.label in inside}
            value = self._counts.one(self._counts.of(instruction.kind, text, None))
            if value is None or value.indices or reads_memory(value) or names_rows(value):
                raise self._refuse(f"leaves {text} to the code after it", instruction)
            found.append((instruction.result, value))
        return tuple(found)

    def _users_outside(self) -> list[tuple[str, Instruction]]:
        """Instructions after the nest that use its values, with their blocks, in text order."""
        function, inside = self._function, self._loop.blocks
        found = {
            user.line: (label, user)
            for inner in inside
            for one in function.blocks[inner].instructions
            for label, user in function.users.get(one.result, ())
            if label not in inside
        }
        return [place for _, place in sorted(found.items())]

    def _check_order(self, nest: CountedLoop) -> None:
        """Refuse elements that may be overwritten between their load and their use."""
        written = {(access.memory.base, access.offset) for access, store in accesses(nest) if store}
        for instruction, at in self._values.used:
            home = self._counts.home(instruction.result)
            assert home is not None
            if home is at:
                continue
            place = self._counts.address(instruction.operands[0].text, home)
            if place in written:
                raise self._refuse(
                    "uses an element of an inner loop that it has read outside of it", instruction
                )

    # Loops

    def _read_loop(self, loop: NaturalLoop, *, reached: bool) -> list[Statement]:
        """Read a loop: initial values of its variables, its body, and what it leaves in memory."""
        counts, function = self._counts, self._function
        header = function.blocks[loop.header]
        where = self._module.where(function, function.blocks[loop.latches[0]].terminator)
        if len(set(counts.leaving(loop))) != 1:
            several = len(set(counts.leaving(loop))) > 1
            raise self._refuse("exits from the middle" if several else "never ends", header.instructions[0])
        ((label, _),) = counts.leaving(loop)
        if label != loop.header and label not in loop.latches:
            raise self._refuse("exits from the middle", function.blocks[label].terminator)
        extent = counts.extent(loop)
        if extent is None:
            raise self._refuse("has a trip count that is not affine", function.blocks[label].terminator)
        counts.extents[loop.header] = extent
        index = counts.indices[loop.header]
        tested_first = label not in loop.latches
        if extent.least == 0:
            counts.facts.add(*(bound.span - Polynomial.of(index) * bound.step - 1 for bound in extent.bounds))
        before: list[Statement] = []
        after: list[Statement] = []
        variables = [phi for phi in header.phis if counts.of(phi.kind, phi.result, loop) is None]
        carried = [(phi, self._carry(phi, loop, before)) for phi in variables]
        if tested_first:
            self._values.finals.update((phi.result, self._values.cells[phi.result]) for phi, _ in carried)
        body = self._region(loop.header, loop.header, loop, reached=reached and not tested_first)
        assigned: list[Cell] = []
        for phi, text in carried:
            cell = self._values.cells[phi.result]
            value = self._values.of(phi.kind, text, loop)
            if any(one in assigned for one in cells_of(value)):
                raise self._refuse("has a cycle of carried values", phi)
            if value != Read(cell):
                after.append(Assign(cell, value, where))
                assigned.append(cell)
            if not tested_first:
                self._values.finals[text] = cell
        nest = CountedLoop(index, extent, without_dead_stores([*body, *after]), where)
        return [*before, *([nest] if tested_first else sunk(nest))]

    def _carry(self, phi: Instruction, loop: NaturalLoop, before: list[Statement]) -> str:
        """Make a variable of a phi, and return its value in the next iteration."""
        latching = [pair.text for pair in phi.incoming if pair.label in loop.blocks]
        entering = [pair.text for pair in phi.incoming if pair.label not in loop.blocks]
        if len(latching) != 1 or len(entering) != 1 or find_llvm_type(phi.kind) is None:
            raise self._refuse("carries a value that is neither a number nor affine", phi)
        parent = self._counts.parents[loop.header]
        if parent is None:
            raise self._refuse("carries a value from one iteration of its outermost loop to the next", phi)
        outer = self._values.cells.get(entering[0])
        if outer is not None and self._is_handed_on(entering[0], latching[0], phi, parent):
            self._values.cells[phi.result] = outer
            return latching[0]
        cell = Cell(phi.result)
        start = self._values.of(phi.kind, entering[0], parent)
        before.append(Assign(cell, start, self._values.where(phi)))
        self._values.cells[phi.result] = cell
        return latching[0]

    def _is_handed_on(self, outer: str, final: str, phi: Instruction, parent: NaturalLoop) -> bool:
        """Whether a variable of an outer loop is only passed through the variable of an inner loop."""
        carrier = self._function.definitions[outer]
        if self._function.homes[outer] != parent.header:
            return False
        (latched,) = (pair.text for pair in carrier.incoming if pair.label in parent.blocks)
        passed = {final, phi.result}
        name = latched
        allowed = {phi.result}
        while name not in passed:
            definition = self._function.definitions.get(name)
            if definition is None or definition.opcode != "phi":
                return False
            others = {pair.text for pair in definition.incoming} - {outer}
            if len(others) != 1:
                return False
            allowed.add(name)
            (name,) = others
        users = {
            one.result
            for label in self._loop.blocks
            for one in self._function.blocks[label].instructions
            if outer in one.names
        }
        return users <= allowed | {outer}

    # Blocks

    def _region(self, label: str, stop: str, loop: NaturalLoop, *, reached: bool) -> list[Statement]:
        """Read the statements from one block up to another; for loop bodies, up to the header."""
        statements: list[Statement] = []
        inner = {child.header: child for child in loop.children}
        first = True
        while first or label != stop:
            first = False
            if label in inner:
                child = inner[label]
                statements += self._read_loop(child, reached=reached)
                ((_, label),) = self._counts.leaving(child)
                continue
            if label not in loop.blocks:
                raise self._refuse("exits from the middle", self._function.blocks[label].terminator)
            if reached:
                self._reached.add(label)
            self._read_block(label, loop, statements)
            if label == loop.header and statements and label in loop.exiting and label not in loop.latches:
                # Once more than what comes behind the test: a loop of two copies that ends between them.
                raise self._refuse(
                    "stores elements before it tests whether it ends",
                    self._function.blocks[label].terminator,
                )
            label = self._follow(label, loop, statements, reached=reached)
        return statements

    def _follow(self, label: str, loop: NaturalLoop, statements: list[Statement], *, reached: bool) -> str:
        """Read the code from a block to the next one, and return that one."""
        branch = self._function.blocks[label].terminator
        rerolled = self._rerolling.read(label, loop, statements) if self._rerolling else None
        if rerolled is not None:
            return rerolled
        if branch.opcode != "br":
            raise self._refuse(_WORDS.get(branch.opcode, f"ends a block with {branch.opcode}"), branch)
        targets = self._function.blocks[label].successors
        going_on = tuple(one for one in targets if not never_returns(self._function, one))
        if len(going_on) < len(targets):
            self._insist(self._counts.stays(label, loop, going_on), branch, "may stop the program")
        within = tuple(one for one in going_on if one in loop.blocks)
        match within:
            case (only,):
                return only
            case (first, second):
                return self._choose(label, (first, second), loop, statements, reached=reached)
            case _:
                raise self._refuse("exits from the middle", branch)

    def _insist(self, comparisons: list[Comparison] | None, branch: Instruction, reason: str) -> None:
        """Add conditions that make comparisons hold in every iteration."""
        for comparison in comparisons if comparisons is not None else [None]:
            found = self._counts.inequalities(comparison, adopt=True) if comparison is not None else None
            if found is None or not all(self._counts.require(value, 0) for value in found):
                raise self._refuse(reason, branch)

    def _choose(
        self,
        label: str,
        targets: tuple[str, str],
        loop: NaturalLoop,
        statements: list[Statement],
        *,
        reached: bool,
    ) -> str:
        """Read the region that a branch may skip, and return the join point."""
        counts = self._counts
        branch = self._function.blocks[label].terminator
        scaled = self._read_scaling(label, targets, loop, statements)
        if scaled is not None:
            return scaled
        for inside, join in (targets, targets[::-1]):
            if inside != join and between(self._function, inside, join, loop) is not None:
                break
        else:
            raise self._refuse("takes a branch", branch)
        tests: list[Instruction] = []
        counts.tests = tests
        comparisons = counts.stays(label, loop, (inside,))
        counts.tests = None
        found = [counts.inequalities(one, adopt=True) for one in comparisons or []]
        if comparisons is None or None in found:
            raise self._refuse("takes a branch that depends on more than its indices", branch)
        values = [value for part in found if part for value in part]
        counts.skipped.setdefault(join, set()).add(label)
        if all(counts.facts.proves(value) for value in values):
            region = self._region(inside, join, loop, reached=reached and not tests)
            self._check_tests(tests, region, join, loop)
            statements += region
            return join
        before, place = set(self._reached), len(counts.conditions)
        with counts.assuming(values):
            region = self._region(inside, join, loop, reached=reached and not tests)
        self._check_tests(tests, region, join, loop)
        read_before = any(map(self._reads_before, self._reached - before))
        alone = not read_before and guards(values, region) and is_nothing(region)
        if alone and self._joins(label, join, region, loop):
            self._reached = before
            statements += region
            return join
        if any(value.indices for value in values):
            raise self._refuse("takes a branch that depends on its indices", branch)
        found_inside, counts.conditions[place:] = counts.conditions[place:], []
        self._insist(comparisons, branch, "takes a branch that depends on more than its indices")
        counts.conditions += found_inside
        statements += region
        return join

    def _check_tests(
        self, tests: list[Instruction], region: list[Statement], join: str, loop: NaturalLoop
    ) -> None:
        """Refuse a region skipped by tests of factors, unless it has no effect when they fail."""
        for test in tests:
            (kind, text), (_, constant) = test.operands
            number, factor = number_of(kind, constant), self._values.of(kind, text, loop)
            known = number is not None and may_be_skipped(factor, test)
            alone = known and not self._function.blocks[join].phis
            if not alone or not is_special_case([], region, factor, number or 0):
                raise self._refuse("takes a branch", test)

    def _reads_before(self, label: str) -> bool:
        """Whether a block has loads that move in front of the nest: at loop-invariant addresses, of rows."""
        for instruction in self._function.blocks[label].instructions:
            if instruction.opcode == "load":
                place = self._counts.address(instruction.operands[0].text, self._flow.innermost(label))
                if place is not None and (not place[1].indices or instruction.kind == "ptr"):
                    return True
        return False

    def _read_scaling(
        self, label: str, targets: tuple[str, str], loop: NaturalLoop, statements: list[Statement]
    ) -> str | None:
        """A branch on whether a factor is 0 or 1 with equivalent sides; None for other branches."""
        comparison = self._function.definitions.get(self._function.blocks[label].terminator.operands[0].text)
        if comparison is None or comparison.opcode != "fcmp" or comparison.predicate not in ("oeq", "une"):
            return None
        (kind, text), (_, constant) = comparison.operands
        number = number_of(kind, constant)
        equal, other = targets if comparison.predicate == "oeq" else targets[::-1]
        for join in (one for one in self._flow.order if one in loop.blocks):
            special, general = (between(self._function, way, join, loop) for way in (equal, other))
            if special is not None and general is not None:
                break
        else:
            return None
        factor = self._values.of(kind, text, loop)
        if number is None or not may_be_skipped(factor, comparison):
            return None
        ways = [self._region(way, join, loop, reached=False) if way != join else [] for way in (equal, other)]
        leaving = special or {label}
        met = [self._values.ways(phi, leaving, loop) for phi in self._function.blocks[join].phis]
        alike = all(pair is not None and is_special_value(*pair, factor, number) for pair in met)
        if not alike or not is_special_case(ways[0], ways[1], factor, number):
            raise self._refuse("takes a branch", comparison)
        self._counts.skipped.setdefault(join, set()).update(leaving)
        statements += ways[1]
        return join

    def _joins(self, label: str, join: str, region: list[Statement], loop: NaturalLoop) -> bool:
        """Whether the phis at a join point are the same if the only loop of a region does not run."""
        starts = {
            one.target: one.value
            for one in region
            if isinstance(one, Assign) and isinstance(one.target, Cell)
        }
        for phi in self._function.blocks[join].phis:
            others = {pair.text for pair in phi.incoming if pair.label == label}
            inner = self._counts.incoming_values(phi)
            if len(others) != 1 or len(inner) != 1:
                return False
            skipped = self._values.of(phi.kind, others.pop(), loop)
            taken = self._values.of(phi.kind, inner.pop(), loop)
            if not isinstance(taken, Read):
                return False
            if taken != skipped and starts.get(taken.cell) != skipped:
                return False
        return True

    def _read_block(self, label: str, loop: NaturalLoop, statements: list[Statement]) -> None:
        for instruction in self._function.blocks[label].instructions:
            if instruction.flags & {"volatile", "atomic"}:
                word = "volatile" if "volatile" in instruction.flags else "atomic"
                raise self._refuse(f"touches memory that is {word}", instruction)
            match instruction.opcode:
                case "store":
                    (kind, text), (_, pointer) = instruction.operands
                    target = self._values.access(instruction, kind, pointer, loop)
                    value = self._values.of(kind, text, loop)
                    statements.append(Assign(target, value, self._values.where(instruction)))
                    self._values.note_store(target, text, loop)
                case "load":
                    self._values.note_load(instruction)
                case "call":
                    self._read_call(instruction, loop, statements)
                case opcode if opcode in _WORDS and opcode not in ("switch", "indirectbr"):
                    raise self._refuse(_WORDS[opcode], instruction)
                case _:
                    continue

    def _read_call(self, instruction: Instruction, loop: NaturalLoop, statements: list[Statement]) -> None:
        if changes_nothing(instruction.callee):
            return
        if not clears(instruction.callee):
            known = instruction.callee.startswith("@")
            name = instruction.callee[1:] if known else "a function by its address"
            raise self._refuse(f"calls {name}", instruction)
        self._memsets += 1
        found = filled(self._counts, self._values, instruction, loop, Index(f"i.memset{self._memsets}"))
        if found is None:
            raise self._refuse("fills memory", instruction)
        statements.append(found)
