"""The standard names: entries for Fortran and C, sizes of 32 and 64 bits, checks of arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tilewright.aot.blas.calls import FORMS, Call
from tilewright.aot.blas.routines import (
    COLUMN_MAJOR,
    FLAGS,
    INVALID,
    ROLES,
    ROUTINES,
    ROW_MAJOR,
    ArgumentRole,
    Routine,
)
from tilewright.aot.blas.types import TYPES, BlasType
from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.target import data_layout
from tilewright.llvm.values import (
    INT8,
    INT32,
    INT64,
    POINTER,
    VOID,
    Type,
    Value,
    element_type,
    int32,
    int64,
    null,
)
from tilewright.machine.machine import Machine

#: The letter of a flag has this bit where it is small.
_SMALL = 0x20
#: RTLD_NEXT of glibc and musl.
_NEXT = -1


class Width(NamedTuple):
    """The integers of an interface: LP64 has 32 bits, ILP64 64 bits and a suffix as OpenBLAS has it."""

    type: Type
    suffix: str

    def fortran(self, name: str) -> str:
        """The symbol of a Fortran routine.

        >>> Width(INT64, "64_").fortran("dgemm")
        'dgemm_64_'
        """
        return f"{name}_{self.suffix}"

    def c(self, name: str) -> str:
        """The symbol of a C function."""
        return f"{name}{self.suffix}"


LP64, ILP64 = Width(INT32, ""), Width(INT64, "64_")
WIDTHS = (LP64, ILP64)


def symbols() -> Iterator[str]:
    """Every standard name that the library has."""
    for routine in ROUTINES:
        for letter in routine.types:
            for width in WIDTHS:
                yield width.fortran(TYPES[letter].title(routine.name))
                yield width.c(f"cblas_{TYPES[letter].title(routine.name)}")
    for width in WIDTHS:
        yield width.fortran("xerbla")
        yield width.c("cblas_xerbla")


class RoutineEntries:
    """Emits the entries of all routines.

    Parameters
    ----------
    machine : the baseline of the architecture.
    """

    def __init__(self, machine: Machine) -> None:
        self.module = Module("tilewright_blas_entries", machine.triple, data_layout(machine))
        self.texts: dict[str, Value] = {}
        self.reports = {width: self.emit_reports(width) for width in WIDTHS}
        for routine in ROUTINES:
            for letter in routine.types:
                kind = TYPES[letter]
                body = self.emit_body(routine, kind)
                for width in WIDTHS:
                    self.emit_fortran(routine, kind, body, width)
                    self.emit_c(routine, kind, body, width)

    # --- invalid arguments ----------------------------------------------------------------------------

    def emit_reports(self, width: Width) -> tuple[str, str]:
        """`xerbla` and `cblas_xerbla`, weak: a program that has its own is told by that one."""
        fortran, c = width.fortran("xerbla"), width.c("cblas_xerbla")
        message = " ** On entry to %.*s parameter number %2d had an illegal value\n"
        f = self.weak(fortran, [("name", POINTER), ("info", POINTER), ("length", INT64)])
        name, info, length = f.arguments.values()
        # That of a library behind this one, such as R's or LAPACK's, if there is one.
        self.module.declarations.setdefault("dlsym", "declare extern_weak ptr @dlsym(ptr, ptr)")
        lookup = Value(POINTER, "@dlsym")
        with f.when(f.icmp("!=", lookup, null())):
            following = f.call(Callee(POINTER, "@dlsym"), [f.inttoptr(int64(_NEXT)), self.text(fortran)])
            with f.when(f.icmp("!=", following, null())):
                f.call(Callee(VOID, following.text), [name, info, length])
                f.ret()
        self.print(f, message, [f.trunc(length, INT32), name, f.load(INT32, info, 4)])
        f.ret()
        f = self.weak(c, [("number", width.type), ("name", POINTER), ("form", POINTER)], variadic=True)
        number = f.arguments["number"]
        number = number if width.type is INT32 else f.trunc(number, INT32)
        text = "Parameter %d to routine %s was incorrect\n"
        self.print(f, text, [number, f.arguments["name"]])
        f.ret()
        return fortran, c

    def weak(self, name: str, arguments: list[tuple[str, Type]], *, variadic: bool = False) -> Function:
        """A function that a program may define too."""
        inside = f"default.{name}"
        kinds = ", ".join([*(kind.text for _, kind in arguments), *(["..."] if variadic else [])])
        self.module.declarations[name] = f"@{name} = weak alias void ({kinds}), ptr @{inside}"
        return self.module.define(inside, VOID, arguments, variadic=variadic)

    def print(self, f: Function, message: str, arguments: list[Value]) -> None:
        """Writes to the standard error."""
        printed = self.module.declare("dprintf", INT32, (INT32, POINTER), variadic=True)
        f.call(printed, [int32(2), self.text(message), *arguments])

    def text(self, text: str) -> Value:
        """A null-terminated string."""
        if text not in self.texts:
            name, content = f"text.{len(self.texts)}", text.encode() + b"\0"
            escaped = "".join(f"\\{byte:02X}" for byte in content)
            definition = f'private unnamed_addr constant [{len(content)} x i8] c"{escaped}"'
            self.module.declarations[name] = f"@{name} = {definition}"
            self.texts[text] = Value(POINTER, f"@{name}")
        return self.texts[text]

    # --- what all entries of a routine share ----------------------------------------------------------

    def inside(self, argument: str) -> Type:
        """The type of an argument inside."""
        return POINTER if ROLES[argument] in (ArgumentRole.SCALAR, ArgumentRole.MATRIX) else INT64

    def emit_body(self, routine: Routine, kind: BlasType) -> Callee:
        """``body(arguments)``: computes and returns 0, or the number of an invalid argument."""
        name = f"body.{kind.title(routine.name)}"
        f = self.module.define(name, INT64, [(one, self.inside(one)) for one in routine.arguments])
        given = dict(f.arguments)
        for argument in routine.arguments:
            invalid = self.invalid(f, routine, kind, argument)
            if invalid is not None:
                with f.when(invalid):
                    f.ret(int64(routine.number(argument)))
        FORMS[routine.form](Call(f, routine, kind, given))
        f.ret(int64(0))
        return f.callee

    def invalid(self, f: Function, routine: Routine, kind: BlasType, argument: str) -> Value | None:
        """Whether an argument is invalid, as the reference implementation checks it."""
        given, value = f.arguments, f.arguments[argument]
        match ROLES[argument]:
            case ArgumentRole.FLAG:
                wrong = [f.icmp("!=", value, code) for code in self.codes(routine, kind, argument)]
                found = wrong[0]
                for one in wrong[1:]:
                    found = f.and_(found, one)
                return found
            case ArgumentRole.SIZE:
                return f.icmp("<", value, 0)
            case ArgumentRole.LEADING:
                rows = routine.leading[argument]
                size = given[rows.size]
                if rows.flag:
                    size = f.select(f.icmp("==", given[rows.flag], 0), size, given[rows.otherwise])
                return f.icmp("<", value, f.maximum(size, int64(1)))
            case _:
                return None

    def codes(self, routine: Routine, kind: BlasType, flag: str) -> tuple[int, ...]:
        """The valid codes of a flag."""
        return routine.letters_for(flag, is_complex=kind.is_complex)

    # --- Fortran --------------------------------------------------------------------------------------

    def emit_fortran(self, routine: Routine, kind: BlasType, body: Callee, width: Width) -> None:
        """All arguments by address; lengths of strings, which come last, are not read."""
        name = kind.title(routine.name)
        arguments = [(one, POINTER) for one in routine.arguments]
        f = self.module.define(width.fortran(name), VOID, arguments, exported=True)
        values = [self.by_address(f, one, width) for one in routine.arguments]
        info = f.call(body, values)
        with f.when(f.icmp("!=", info, 0)):
            place = f.alloca(width.type, 1, 8)
            f.store(f.trunc(info, INT32) if width.type is INT32 else info, place, 8)
            title = name.upper().ljust(6)
            report = Callee(VOID, f"@{self.reports[width][0]}")
            f.call(report, [self.text(title), place, int64(len(title))])
        f.ret()

    def by_address(self, f: Function, argument: str, width: Width) -> Value:
        """The value of an argument of Fortran."""
        pointer = f.arguments[argument]
        match ROLES[argument]:
            case ArgumentRole.SCALAR | ArgumentRole.MATRIX:
                return pointer
            case ArgumentRole.FLAG:
                letter = f.load(INT8, pointer, 1)
                large = f.and_(letter, Value(INT8, str(~_SMALL)))
                letters = [ord(one) for one in FLAGS[argument].letters]
                return self.code(f, f.zext(large, INT64), letters)
            case _:
                return self.widened(f, f.load(width.type, pointer, width_bytes(width)), width)

    def widened(self, f: Function, value: Value, width: Width) -> Value:
        """An integer as 64 bits."""
        return f.sext(value, INT64) if width.type is INT32 else value

    def code(self, f: Function, value: Value, words: list[int]) -> Value:
        """The place of a value in a list; `INVALID` if it is not there."""
        found = int64(INVALID)
        for number, word in enumerate(words):
            found = f.select(f.icmp("==", value, word), int64(number), found)
        return found

    # --- C --------------------------------------------------------------------------------------------

    def emit_c(self, routine: Routine, kind: BlasType, body: Callee, width: Width) -> None:
        """A layout first; flags are numbers, real scalars values. A row-major call is that of transposes."""
        name = f"cblas_{kind.title(routine.name)}"
        arguments = [("layout", INT32)]
        arguments += [(one, self.c_type(routine, kind, one, width)) for one in routine.arguments]
        f = self.module.define(width.c(name), VOID, arguments, exported=True)
        layout = f.arguments["layout"]
        row = f.icmp("==", layout, ROW_MAJOR)
        title = self.text(name)
        valid = f.or_(row, f.icmp("==", layout, COLUMN_MAJOR))
        with f.when(f.not_(valid)):
            self.report(f, int64(1), title, width)
            f.ret()
        given = {one: self.by_value(f, one, width) for one in routine.arguments}
        turned = self.turned(f, routine, kind, given)
        values = [
            given[one] if turned[one] is given[one] else f.select(row, turned[one], given[one])
            for one in routine.arguments
        ]
        info = f.call(body, values)
        with f.when(f.icmp("!=", info, 0)):
            self.report(f, self.number(f, routine, info, row, width), title, width)
        f.ret()

    def c_type(self, routine: Routine, kind: BlasType, argument: str, width: Width) -> Type:
        """The type of an argument of a C function."""
        match ROLES[argument]:
            case ArgumentRole.FLAG:
                return INT32
            case ArgumentRole.MATRIX:
                return POINTER
            case ArgumentRole.SCALAR:
                by_value = not kind.is_complex or argument in routine.real
                return element_type(kind.dtype) if by_value else POINTER
            case _:
                return width.type

    def by_value(self, f: Function, argument: str, width: Width) -> Value:
        """The value of an argument of C, as the body takes it."""
        value = f.arguments[argument]
        match ROLES[argument]:
            case ArgumentRole.MATRIX:
                return value
            case ArgumentRole.SCALAR if value.type is POINTER:
                return value
            case ArgumentRole.SCALAR:
                place = f.alloca(value.type, 1, 8)
                f.store(value, place, 4)
                return place
            case ArgumentRole.FLAG:
                return self.code(f, f.sext(value, INT64), list(FLAGS[argument].numbers))
            case _:
                return self.widened(f, value, width)

    def turned(
        self, f: Function, routine: Routine, kind: BlasType, given: Mapping[str, Value]
    ) -> dict[str, Value]:
        """The arguments of the column-major call of transposes that a row-major one is."""
        found = {one: given[routine.partner(one)] for one in routine.arguments}
        for flag in routine.flipped:
            first, *_, other = self.codes(routine, kind, flag)[:3]
            if flag == "trans" and not kind.is_complex:
                other = 1
            value = given[flag]
            others = [f.icmp("==", value, code) for code in self.codes(routine, kind, flag)[1:]]
            flipped = f.select(f.icmp("==", value, first), int64(other), int64(INVALID))
            for one in others:
                flipped = f.select(one, int64(first), flipped)
            found[flag] = flipped
        if routine.conjugated:
            part = element_type(kind.dtype)
            size = kind.dtype.size // 2
            copy = f.alloca(part, 2, 16)
            f.store(f.load(part, given["alpha"], size), copy, size)
            imaginary = f.load(part, f.at(given["alpha"], size), size)
            f.store(f.emit(part, f"fneg {imaginary.typed}"), f.at(copy, size), size)
            found["alpha"] = copy
        return found

    def number(self, f: Function, routine: Routine, info: Value, row: Value, width: Width) -> Value:
        """The number of an invalid argument as C counts: the layout is the first.

        In a row-major call, sizes and leading dimensions stand in each other's place. Programs with a
        `cblas_xerbla` of their own are told the number inside, as by the reference: they know the layout.
        """
        own = Value(POINTER, f"@{self.reports[width][1]}")
        usual = f.icmp("==", own, Value(POINTER, f"@default.{self.reports[width][1]}"))
        found = info
        for argument in routine.arguments:
            partner = routine.partner(argument)
            if partner == argument:
                continue
            known = row if ROLES[argument] is ArgumentRole.FLAG else f.and_(row, usual)
            here = f.and_(known, f.icmp("==", info, routine.number(argument)))
            found = f.select(here, int64(routine.number(partner)), found)
        return f.add(found, 1)

    def report(self, f: Function, number: Value, title: Value, width: Width) -> None:
        """Calls `cblas_xerbla`."""
        kind = width.type.text
        given = number if width.type is INT64 else f.trunc(number, INT32)
        report = Callee(VOID, f"@{self.reports[width][1]}", f"void ({kind}, ptr, ptr, ...)")
        f.call(report, [given, title, self.text("")])


def width_bytes(width: Width) -> int:
    """Bytes of an integer of an interface."""
    return 4 if width.type is INT32 else 8
