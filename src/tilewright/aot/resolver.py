"""The resolver of a kernel library: LLVM IR that reads the features of the CPU and jumps to a variant.

Building it needs neither a compiler nor an assembler: CPUID and XGETBV, for which LLVM has no instruction,
are functions given as bytes of machine code.
"""

from __future__ import annotations

from collections.abc import Sequence

import llvmlite.binding as llvm

from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.target import data_layout
from tilewright.llvm.values import INT1, INT32, INT64, POINTER, VOID, Type, Value, int32, int64, null
from tilewright.machine.feature_bits import (
    OSXSAVE,
    XCR0,
    AuxiliaryWord,
    Condition,
    CpuidWord,
    Register,
    Saved,
    StateWord,
    TileGrantWord,
    Word,
    words_of,
)
from tilewright.machine.machine import Machine
from tilewright.records import dataclass

#: The choice before the first call, and the choice if no variant fits.
NOT_ASKED, NOTHING_FITS = -2, -1

#: Linux, arch/x86/entry/syscalls/syscall_64.tbl and arch/x86/include/uapi/asm/prctl.h; 18 is XTILEDATA.
ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA = 158, 0x1023, 18

#: void cpuid(leaf: edi, subleaf: esi, registers: rdx), System V AMD64 ABI; rbx is the caller's.
#: Intel SDM vol. 2, MOV, CPUID, RET.
_CPUID = bytes.fromhex(
    "89f8"  # mov eax, edi
    "89f1"  # mov ecx, esi
    "4989d0"  # mov r8, rdx
    "4989d9"  # mov r9, rbx
    "0fa2"  # cpuid
    "418900"  # mov [r8], eax
    "41895804"  # mov [r8 + 4], ebx
    "41894808"  # mov [r8 + 8], ecx
    "4189500c"  # mov [r8 + 12], edx
    "4c89cb"  # mov rbx, r9
    "c3"  # ret
)
#: rax xgetbv(): XCR0. Intel SDM vol. 2, XGETBV.
_XGETBV = bytes.fromhex(
    "31c9"  # xor ecx, ecx
    "0f01d0"  # xgetbv
    "48c1e220"  # shl rdx, 32
    "89c0"  # mov eax, eax
    "4809d0"  # or rax, rdx
    "c3"  # ret
)


@dataclass(frozen=True)
class Choice:
    """One variant for the resolver: its reported name, and the CPU features it requires."""

    target: str
    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class Dispatched:
    """One dispatched function.

    Attributes
    ----------
    name : its symbol.
    arguments : its argument types.
    variants : symbols of its variants, in the order of the choices.
    """

    name: str
    arguments: tuple[Type, ...]
    variants: tuple[str, ...]


def argument_types(text: str, symbol: str) -> tuple[Type, ...]:
    """The types of the arguments of a function in a module.

    >>> [kind.text for kind in argument_types("define void @f(ptr %p, i64 %n) { ret void }", "f")]
    ['ptr', 'i64']
    """
    function = llvm.parse_assembly(text).get_function(symbol)
    return tuple(Type(str(argument.type), "") for argument in function.arguments)


def resolver_ir(
    library: str, machine: Machine, choices: Sequence[Choice], functions: Sequence[Dispatched]
) -> str:
    """The module that exports `<library>_variant` and every dispatched function.

    Parameters
    ----------
    library : prefix of its symbols.
    machine : a baseline that every CPU of the architecture supports.
    choices : best first.
    functions : each has one variant for each choice.
    """
    return str(_Resolver(library, machine, choices).module_of(functions))


def no_variant_message(library: str, targets: Sequence[str]) -> str:
    """The message of a kernel before it aborts."""
    return (
        f"{library}: no kernel of this library runs on this CPU; they are compiled for {', '.join(targets)}"
    )


class _Resolver:
    def __init__(self, library: str, machine: Machine, choices: Sequence[Choice]) -> None:
        self.library, self.choices = library, choices
        self.module = Module(f"{library}_resolver", machine.triple, data_layout(machine))

    def module_of(self, functions: Sequence[Dispatched]) -> Module:
        self.choice()
        self.checked_choice()
        self.variant()
        for function in functions:
            self.dispatch(function)
        return self.module

    # --- data -----------------------------------------------------------------------------------

    def data(self, name: str, text: str) -> Value:
        """A global variable of this module, by its definition."""
        self.module.declarations.setdefault(name, f"@{name} = {text}")
        return Value(POINTER, f"@{name}")

    def text(self, name: str, text: str) -> Value:
        """A null-terminated string."""
        content = _constant_bytes(text.encode() + b"\0")
        return self.data(name, f"private unnamed_addr constant {content}")

    def addresses(self, name: str, pointers: Sequence[str]) -> Value:
        """A table of pointers."""
        listed = ", ".join(f"ptr @{pointer}" for pointer in pointers)
        return self.data(name, f"internal constant [{len(pointers)} x ptr] [{listed}]")

    def machine_code(self, name: str, result: Type, arguments: Sequence[Type], code: bytes) -> None:
        """A function that consists of the given bytes.

        They are LLVM prologue data, which is placed at the function's entry for every target, even if the
        host's LLVM has no assembler for it (LangRef, "Prologue Data"); the function's own body is
        unreachable.
        """
        kinds = ", ".join(kind.text for kind in arguments)
        self.module.declarations.setdefault(
            name,
            f"define internal {result.text} @{name}({kinds}) naked noinline nounwind "
            f"prologue {_constant_bytes(code)} {{ unreachable }}",
        )

    def exported(self, name: str, result: Type, arguments: Sequence[tuple[str, Type]]) -> Function:
        """A weak function: the program may define one of the same name, in any link order."""
        kinds = ", ".join(kind.text for _, kind in arguments)
        inside = f"exported.{name}"
        self.data(name, f"weak alias {result.text} ({kinds}), ptr @{inside}")
        return self.module.define(inside, result, arguments)

    # --- CPU features -----------------------------------------------------------------------------

    def read(self, f: Function, words: Sequence[Word]) -> dict[Word, Value]:
        """The values of words, in their order; each as 64 bits."""
        values: dict[Word, Value] = {}
        for word in words:
            match word:
                case CpuidWord(leaf, subleaf, register):
                    values[word] = self.cpuid_word(f, leaf, subleaf, register)
                case AuxiliaryWord(entry):
                    values[word] = f.call(self.module.declare("getauxval", INT64, (INT64,)), [int64(entry)])
                case StateWord():
                    values[word] = self.saved_state(f)
                case TileGrantWord():
                    values[word] = self.tile_grant(f, values[XCR0])
        return values

    def cpuid_word(self, f: Function, leaf: int, subleaf: int, register: Register) -> Value:
        read = self.module.find("cpuid_word") or self.cpuid_reader()
        return f.call(read, [_unsigned(leaf), int32(subleaf), int64(register)])

    def cpuid_reader(self) -> Callee:
        """cpuid_word(leaf, subleaf, register): 0 above the highest leaf or subleaf."""
        self.machine_code("cpuid", VOID, (INT32, INT32, POINTER), _CPUID)
        ask = Callee(VOID, "@cpuid")
        f = self.module.define(
            "cpuid_word", INT64, (("leaf", INT32), ("subleaf", INT32), ("register", INT64))
        )
        leaf, subleaf, register = f.arguments.values()
        registers = f.alloca(INT32, 4, 4)

        def answer(number: Value) -> Value:
            return _widened(f, f.load(INT32, f.at(registers, f.mul(number, 4)), 4))

        # Leaf 0 returns the highest basic leaf, leaf 80000000h the highest extended one.
        f.call(ask, [f.and_(leaf, _unsigned(0x80000000)), int32(0), registers])
        with f.when(f.icmp("<", answer(int64(Register.EAX)), _widened(f, leaf))):
            f.ret(int64(0))
        with f.when(f.icmp("!=", subleaf, 0)):
            f.call(ask, [leaf, int32(0), registers])
            with f.when(f.icmp("<", answer(int64(Register.EAX)), _widened(f, subleaf))):
                f.ret(int64(0))
        f.call(ask, [leaf, subleaf, registers])
        f.ret(answer(register))
        return f.callee

    def saved_state(self, f: Function) -> Value:
        """XCR0 if the system has enabled XGETBV, which is undefined otherwise; else 0."""
        self.machine_code("xgetbv", INT64, (), _XGETBV)
        leaf_1 = self.cpuid_word(f, 1, 0, Register.ECX)
        enabled = f.icmp("!=", f.and_(leaf_1, int64(OSXSAVE)), 0)
        with f.once_if(enabled, [int64(0)]) as (_, advance):
            advance([f.call(Callee(INT64, "@xgetbv"), [])])
        return advance.results[0]

    def tile_grant(self, f: Function, saved: Value) -> Value:
        """1 if the system permits this process to use AMX tiles; it is requested if tiles exist."""
        self.module.declarations.setdefault("syscall", "declare i64 @syscall(i64, ...)")
        tiles = int64(Saved.TILES)
        with f.once_if(f.icmp("==", f.and_(saved, tiles), tiles), [int64(0)]) as (_, advance):
            numbers = ", ".join(int64(number).typed for number in (ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA))
            status = f.emit(INT64, f"call i64 (i64, ...) @syscall({numbers})")
            advance([f.select(f.icmp("==", status, 0), int64(1), int64(0))])
        return advance.results[0]

    # --- the choice -------------------------------------------------------------------------------

    def choice(self) -> None:
        """choose(): the number of the first choice that fits, cached after the first call.

        Concurrent first calls compute and store the same number.
        """
        kept = self.data("choice", f"internal global i64 {NOT_ASKED}")
        f = self.module.define("choose", INT64, ())
        known = _load_shared(f, INT64, kept)
        with f.when(f.icmp("!=", known, NOT_ASKED)):
            f.ret(known)
        values = self.read(f, words_of([choice.conditions for choice in self.choices]))
        chosen = int64(NOTHING_FITS)
        for number, choice in reversed(list(enumerate(self.choices))):
            fits = Value(INT1, "true")
            for condition in choice.conditions:
                mask = int64(condition.mask)
                fits = f.and_(fits, f.icmp("==", f.and_(values[condition.word], mask), mask))
            chosen = f.select(fits, int64(number), chosen)
        _store_shared(f, chosen, kept)
        f.ret(chosen)

    def checked_choice(self) -> None:
        """choose_or_abort(): as choose, but prints a message and aborts if nothing fits."""
        message = no_variant_message(self.library, [choice.target for choice in self.choices]) + "\n"
        f = self.module.define("choose_or_abort", INT64, ())
        chosen = f.call(self.find("choose"), [])
        with f.when(f.icmp("<", chosen, 0)):
            write = self.module.declare("write", INT64, (INT32, POINTER, INT64))
            f.call(write, [int32(2), self.text("message", message), int64(len(message.encode()))])
            f.call(self.module.declare("abort", VOID, ()), [])
            f.effect("unreachable")
            f.block.terminated = True
        f.ret(chosen)

    def variant(self) -> None:
        """<library>_variant(): the name of the choice; null if nothing fits."""
        names = [
            self.text(f"target.{number}", choice.target).text[1:]
            for number, choice in enumerate(self.choices)
        ]
        table = self.addresses("targets", names)
        f = self.exported(f"{self.library}_variant", POINTER, ())
        chosen = f.call(self.find("choose"), [])
        with f.when(f.icmp("<", chosen, 0)):
            f.ret(null())
        f.ret(f.load(POINTER, f.at(table, f.mul(chosen, 8)), 8))

    def dispatch(self, function: Dispatched) -> None:
        """A function that jumps through a pointer, which initially points to its own search."""
        assert len(function.variants) == len(self.choices), function.name
        for symbol in function.variants:
            self.module.declare(symbol, VOID, function.arguments)
        table = self.addresses(f"variants.{function.name}", function.variants)
        search = f"search.{function.name}"
        pointer = self.data(f"pointer.{function.name}", f"internal global ptr @{search}")
        arguments = [(f"argument{number}", kind) for number, kind in enumerate(function.arguments)]
        f = self.module.define(search, VOID, arguments)
        chosen = f.call(self.find("choose_or_abort"), [])
        found = f.load(POINTER, f.at(table, f.mul(chosen, 8)), 8)
        _store_shared(f, found, pointer)
        _hand_on(f, found)
        f = self.exported(function.name, VOID, arguments)
        _hand_on(f, _load_shared(f, POINTER, pointer))

    def find(self, name: str) -> Callee:
        found = self.module.find(name)
        assert found is not None, name
        return found


def _constant_bytes(content: bytes) -> str:
    escaped = "".join(f"\\{byte:02X}" for byte in content)
    return f'[{len(content)} x i8] c"{escaped}"'


def _unsigned(value: int) -> Value:
    """A 32-bit constant whose top bit may be set."""
    return Value(INT32, str(value))


def _widened(f: Function, value: Value) -> Value:
    """64 bits of an unsigned 32-bit value."""
    return f.emit(INT64, f"zext {value.typed} to i64")


def _load_shared(f: Function, kind: Type, pointer: Value) -> Value:
    """Atomic load of a word that another thread may be writing."""
    return f.emit(kind, f"load atomic {kind.text}, {pointer.typed} monotonic, align 8")


def _store_shared(f: Function, value: Value, pointer: Value) -> None:
    f.effect(f"store atomic {value.typed}, {pointer.typed} monotonic, align 8")


def _hand_on(f: Function, target: Value) -> None:
    """Tail call with this function's arguments, as a jump if the target supports it (POWER not always)."""
    arguments = ", ".join(value.typed for value in f.arguments.values())
    f.effect(f"tail call void {target.text}({arguments})")
    f.ret()
