"""Parser of one instruction of LLVM IR, as LLVM prints it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from tilewright.cached import cached_property
from tilewright.loops.llvm.text import NAME, closing, split_commas, split_type
from tilewright.records import dataclass

_LOCAL = re.compile(rf"%{NAME}")
_LABEL = re.compile(rf"label %({NAME})")
_RESULT = re.compile(rf"(%{NAME}) = ")
_ATTACHMENTS = re.compile(r"(?:, ![\w.]+ !\d+)+$")
_DEBUG = re.compile(r"!dbg !(\d+)")
_CALLEE = re.compile(rf"([@%]{NAME})\(")
_INCOMING = re.compile(rf"\[ (.*?), %({NAME}) \](?:, |$)")
_ALIGNMENT = re.compile(r"align (\d+)$")
#: The type of a vector: its elements.
_ELEMENT = re.compile(r"<(?:vscale x )?\d+ x (.*)>$")
_ATTRIBUTE = re.compile(r"(?:align \d+|\"[^\"]*\"(?:=\"[^\"]*\")?|([a-z_]+)(?=[ (]))")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Words that start a constant, as opposed to an argument attribute.
_CONSTANTS = _words(
    "add addrspacecast asm bitcast blockaddress c dso_local_equivalent extractelement false getelementptr "
    "insertelement inttoptr mul no_cfi none null poison ptrauth ptrtoaddr ptrtoint shufflevector splat sub "
    "true trunc undef xor zeroinitializer"
)
#: Words between an opcode and the first type.
_FLAGS = _words(
    "nuw nsw exact inbounds nusw disjoint nneg samesign fast nnan ninf nsz arcp contract reassoc afn "
    "volatile atomic inalloca swifterror weak"
)
_MARKS = ("tail", "musttail", "notail")
_ORDERINGS = _words("unordered monotonic acquire release acq_rel seq_cst")


class InstructionOperand(NamedTuple):
    """An operand of an instruction: its type ("i32", "ptr", "<4 x float>") and its text.

    Names keep their sigil: "%n", "@matrix", '%"a b"'; constants are as LLVM prints them.
    """

    kind: str
    text: str


class Incoming(NamedTuple):
    """One incoming pair of a phi: the value, and the label of its block."""

    text: str
    label: str


@dataclass(frozen=True, eq=False)
class Instruction:
    """One instruction. Instances compare by identity.

    Attributes
    ----------
    result : name of its value with sigil, "%7"; "" if it has none.
    opcode : "fadd", "getelementptr"; "call" for every kind of call except "invoke" and "callbr".
    kind : type of its value: of a load, a cast, a call; "void" if it has none, "" if this parser does not
        know it.
    operands : its operands in text order; the arguments of a call. Labels are excluded; for phis see
        `incoming`.
    flags : "nsw", "nuw", "exact", "inbounds", "disjoint", "nneg", "samesign", fast-math flags (`fast` is
        expanded to all seven), "volatile", "atomic", "tail", "musttail".
    predicate : of icmp and fcmp, "slt", "olt"; the operation of atomicrmw.
    callee : the called function, "@llvm.fma.f32", "%f"; "asm" for inline assembly.
    element : source element type of a getelementptr, allocated type of an alloca.
    incoming : incoming pairs of a phi.
    targets : labels of a terminator, in text order, without "%"; the default of a switch comes first.
    alignment : of a load, store or alloca, in bytes; 0 if none is given.
    line : index of its first line among the lines of the function.
    debug : number of its `!dbg` node.
    text : the whole instruction in one line, without metadata.
    """

    result: str
    opcode: str
    text: str
    line: int
    kind: str = "void"
    operands: tuple[InstructionOperand, ...] = ()
    flags: frozenset[str] = frozenset()
    predicate: str = ""
    callee: str = ""
    element: str = ""
    incoming: tuple[Incoming, ...] = ()
    targets: tuple[str, ...] = ()
    alignment: int = 0
    debug: int | None = None

    @cached_property
    def names(self) -> frozenset[str]:
        """Every local name in its text except its result: operands, labels, named types."""
        return frozenset(_LOCAL.findall(self.text)) - {self.result}

    def __repr__(self) -> str:
        return f"<Instruction {self.text}>"


def read_instruction(text: str, line: int = 0) -> Instruction:
    """Parse an instruction as LLVM prints it; lines of a long one are joined by spaces.

    An unknown opcode is not an error: type and operands are empty then, and `names` still lists every value
    that is used.

    Source: LLVM Language Reference, "Instruction Reference"; llvm/lib/IR/AsmWriter.cpp, printInstruction.

    Examples
    --------
    >>> read = read_instruction("  %5 = getelementptr inbounds nuw float, ptr %a, i64 %4, !dbg !7")
    >>> read.result, read.opcode, read.element, read.operands[1], read.debug
    ('%5', 'getelementptr', 'float', InstructionOperand(kind='i64', text='%4'), 7)
    >>> read_instruction("  %9 = phi i32 [ 0, %entry ], [ %8, %loop ]").incoming[1]
    Incoming(text='%8', label='loop')
    """
    text = text.strip()
    attachments, debug = _ATTACHMENTS.search(text) if ", !" in text else None, None
    if attachments:
        found = _DEBUG.search(attachments[0])
        debug = int(found[1]) if found else None
        text = text[: attachments.start()]
    named = _RESULT.match(text)
    result, rest = (named[1], text[named.end() :]) if named else ("", text)
    words, rest = _opcode(rest)
    opcode = words[-1]
    flags = frozenset(words[:-1])
    reader = _READERS.get(opcode)
    fields = reader(rest) if reader else _Fields("" if result else "void")
    if fields.flags:
        flags |= fields.flags
    if opcode in _TERMINATORS:
        fields = fields._replace(targets=tuple(_LABEL.findall(text)))
    return Instruction(
        result=result,
        opcode=opcode,
        text=text,
        line=line,
        kind=fields.kind,
        operands=fields.operands,
        flags=flags,
        predicate=fields.predicate,
        callee=fields.callee,
        element=fields.element,
        incoming=fields.incoming,
        targets=fields.targets,
        alignment=fields.alignment,
        debug=debug,
    )


def _opcode(text: str) -> tuple[list[str], str]:
    """The opcode with the words before it, and the rest of the text."""
    opcode, _, rest = text.partition(" ")
    if opcode not in _MARKS:
        return [opcode], rest
    call, _, rest = rest.partition(" ")
    return [opcode, call], rest


def _operand(text: str) -> InstructionOperand:
    """A type and a value, skipping argument attributes between them."""
    kind, value = split_type(text)
    return InstructionOperand(kind, _without_attributes(value))


def _without_attributes(text: str) -> str:
    while True:
        found = _ATTRIBUTE.match(text)
        if found is None or found[1] in _CONSTANTS:
            return text
        end = found.end()
        if text.startswith("(", end):
            end = closing(text, end)
        text = text[end:].lstrip()


_ALL_FAST = frozenset(("nnan", "ninf", "nsz", "arcp", "contract", "reassoc", "afn"))


def _flags(text: str) -> tuple[frozenset[str], str]:
    """Leading flags of a text, and the rest."""
    found: list[str] = []
    while True:
        word, _, rest = text.partition(" ")
        if word not in _FLAGS:
            flags = frozenset(found)
            return (flags - {"fast"} | _ALL_FAST if "fast" in flags else flags), text
        found.append(word)
        text = rest


# One reader for each form of instruction


class _Fields(NamedTuple):
    """Fields found by a parser; the names are those of `Instruction`."""

    kind: str = "void"
    operands: tuple[InstructionOperand, ...] = ()
    flags: frozenset[str] = frozenset()
    predicate: str = ""
    callee: str = ""
    element: str = ""
    incoming: tuple[Incoming, ...] = ()
    targets: tuple[str, ...] = ()
    alignment: int = 0


def _arithmetic(text: str) -> _Fields:
    """`nsw i32 %a, %b`: one type for the result and all operands."""
    flags, text = _flags(text)
    kind, rest = split_type(text)
    return _Fields(kind, tuple(InstructionOperand(kind, part) for part in split_commas(rest)), flags)


def _comparison(text: str) -> _Fields:
    """`slt i32 %a, %b`."""
    flags, text = _flags(text)
    predicate, _, text = text.partition(" ")
    kind, rest = split_type(text)
    lanes = re.match(r"<(.*) x [^x]*>$", kind)
    result = f"<{lanes[1]} x i1>" if lanes else "i1"
    operands = tuple(InstructionOperand(kind, part) for part in split_commas(rest))
    return _Fields(result, operands, flags, predicate=predicate)


def _cast(text: str) -> _Fields:
    """`nneg i32 %x to i64`."""
    flags, text = _flags(text)
    value, _, kind = text.rpartition(" to ")
    return _Fields(kind, (_operand(value),), flags)


def _getelementptr(text: str) -> _Fields:
    """`inbounds float, ptr %p, i64 %i`; the result is a pointer, or a vector of them."""
    flags, text = _flags(text)
    element, *operands = split_commas(text)
    read = tuple(_operand(part) for part in operands)
    kind = next((operand.kind for operand in read if operand.kind.startswith("<")), read[0].kind)
    return _Fields(kind, read, flags, element=element)


def _alignment(parts: list[str]) -> int:
    found = (_ALIGNMENT.match(part) for part in parts)
    return next((int(match[1]) for match in found if match), 0)


def _pointer(text: str) -> InstructionOperand:
    """An address, skipping the ordering of an atomic access after it."""
    kind, value = split_type(text)
    words = value.split(" ")
    while len(words) > 1 and (words[-1] in _ORDERINGS or words[-1].startswith("syncscope(")):
        words.pop()
    return InstructionOperand(kind, " ".join(words))


def _load(text: str) -> _Fields:
    """`volatile float, ptr %p, align 4`."""
    flags, text = _flags(text)
    kind, pointer, *more = split_commas(text)
    return _Fields(kind, (_pointer(pointer),), flags, alignment=_alignment(more))


def _store(text: str) -> _Fields:
    """`float %x, ptr %p, align 4`."""
    flags, text = _flags(text)
    value, pointer, *more = split_commas(text)
    return _Fields(operands=(_operand(value), _pointer(pointer)), flags=flags, alignment=_alignment(more))


def _alloca(text: str) -> _Fields:
    """`[8 x float], i32 4, align 16`."""
    flags, text = _flags(text)
    element, *more = split_commas(text)
    counts = tuple(_operand(part) for part in more if not part.startswith(("align ", "addrspace(")))
    space = next((f"ptr {part}" for part in more if part.startswith("addrspace(")), "ptr")
    return _Fields(space, counts, flags, element=element, alignment=_alignment(more))


def _phi(text: str) -> _Fields:
    """`float [ 0.0, %entry ], [ %s, %loop ]`."""
    flags, text = _flags(text)
    kind, rest = split_type(text)
    return _Fields(kind, (), flags, incoming=tuple(Incoming(*pair) for pair in _INCOMING.findall(rest)))


def _select(text: str) -> _Fields:
    """`i1 %c, i32 %a, i32 %b`."""
    flags, text = _flags(text)
    operands = tuple(_operand(part) for part in split_commas(text))
    return _Fields(operands[1].kind, operands, flags)


def _first_type(text: str) -> _Fields:
    """`i32 %x`, `{ i32, i1 } %pair, i1 %c, 1`: the result has the type of the first operand."""
    operands = [_operand(part) for part in split_commas(text)]
    return _Fields(operands[0].kind, tuple(one for one in operands if one.text))


def _extractelement(text: str) -> _Fields:
    """`<4 x float> %v, i64 1`."""
    operands = [_operand(part) for part in split_commas(text)]
    return _Fields(_ELEMENT.sub(r"\1", operands[0].kind), tuple(operands))


def _shufflevector(text: str) -> _Fields:
    """`<4 x float> %a, <4 x float> %b, <2 x i32> <i32 0, i32 4>`: with the lanes of the mask."""
    *operands, mask = (_operand(part) for part in split_commas(text))
    element = _ELEMENT.sub(r"\1", operands[0].kind)
    return _Fields(mask.kind.replace(" x i32>", f" x {element}>"), tuple(operands))


def _extractvalue(text: str) -> _Fields:
    """`{ i32, i1 } %pair, 0`; nested fields and named types are not resolved."""
    first, *numbers = split_commas(text)
    operand = _operand(first)
    fields = split_commas(operand.kind[1:-1].strip()) if operand.kind.startswith("{") else []
    return _Fields(fields[int(numbers[0])] if fields and len(numbers) == 1 else "", (operand,))


def _call(text: str) -> _Fields:
    """`fast noundef float @f(float %x, ptr noundef %p) #1 [ "bundle"() ]`."""
    flags, text = _flags(text)
    found = _CALLEE.search(text)
    if " asm " in f" {text}" and (not found or text.index("asm ") < found.start()):
        return _Fields(flags=flags, callee="asm")
    if found is None:
        return _Fields(flags=flags)
    before = _without_convention(text[: found.start()])
    arguments = text[found.end() : closing(text, found.end() - 1) - 1]
    kind = split_type(before)[0].partition(" (")[0]
    operands = tuple(_operand(part) for part in split_commas(arguments))
    return _Fields(kind, operands, flags, callee=found[1])


#: Calling conventions and return attributes are words that never start a type.
_TYPE = re.compile(
    r"(?:void|ptr|i\d+|half|bfloat|float|double|fp128|x86_\w+|ppc_fp128|token|metadata|target)\b"
)


def _without_convention(text: str) -> str:
    while text and text[0] not in "[{<%" and not _TYPE.match(text):
        end = len(text.partition(" ")[0])
        opened = text.find("(", 0, end)
        if opened >= 0:
            end = closing(text, opened)
        text = text[end:].lstrip()
    return text


def _terminator(text: str) -> _Fields:
    """`i1 %c, label %a, label %b`, `i32 %x, label %d [ ... ]`, `float %x`, `void`."""
    first = split_commas(text)[:1]
    if not first or first[0].startswith(("label ", "void")):
        return _Fields()
    return _Fields(operands=(_operand(first[0]),))


_TERMINATORS = _words(
    "br switch indirectbr ret unreachable invoke callbr resume catchswitch catchret cleanupret"
)

_READERS: dict[str, Callable[[str], _Fields]] = {
    **dict.fromkeys(
        _words("add sub mul shl udiv sdiv urem srem lshr ashr and or xor fadd fsub fmul fdiv frem fneg"),
        _arithmetic,
    ),
    **dict.fromkeys(("icmp", "fcmp"), _comparison),
    **dict.fromkeys(
        _words(
            "trunc zext sext fptrunc fpext fptoui fptosi uitofp sitofp ptrtoint inttoptr bitcast "
            "addrspacecast ptrtoaddr"
        ),
        _cast,
    ),
    "getelementptr": _getelementptr,
    "load": _load,
    "store": _store,
    "alloca": _alloca,
    "phi": _phi,
    "select": _select,
    "freeze": _first_type,
    "insertelement": _first_type,
    "extractelement": _extractelement,
    "shufflevector": _shufflevector,
    "insertvalue": _first_type,
    "extractvalue": _extractvalue,
    **dict.fromkeys(("call", "invoke", "callbr"), _call),
    **dict.fromkeys(("br", "switch", "ret"), _terminator),
}
