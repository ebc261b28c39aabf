"""The reader of LLVM IR beside LLVM's own reading of the same text."""

from __future__ import annotations

from pathlib import Path

import llvmlite.binding as llvm
import pytest
from shares import looped

from tilewright.llvm.backends import initialize
from tilewright.loops.llvm.instruction import Incoming, Instruction, InstructionOperand, read_instruction
from tilewright.loops.llvm.module import ParsedModule, read_module

EVERY_FORM = (Path(__file__).parent / "every_form.ll").read_text()


@pytest.fixture(scope="module")
def reference() -> llvm.ModuleRef:
    initialize()
    return llvm.parse_assembly(EVERY_FORM)


@pytest.fixture(scope="module")
def module(reference: llvm.ModuleRef) -> ParsedModule:
    return read_module(str(reference))


def test_functions_blocks_and_instructions_are_those_of_llvm(
    reference: llvm.ModuleRef, module: ParsedModule
) -> None:
    theirs = [function for function in reference.functions if not function.is_declaration]
    assert [name.strip('"') for name in module.functions] == [function.name for function in theirs]
    unknown = []
    for function, ours in zip(theirs, module.functions.values(), strict=True):
        assert [str(one.type) for one in function.arguments] == [one.kind for one in ours.parameters]
        for block, our_block in zip(function.blocks, ours.blocks.values(), strict=True):
            for one, read in zip(block.instructions, our_block.instructions, strict=True):
                assert one.opcode == read.opcode
                assert (read.kind == "void") == (str(one.type) == "void")
                if read.kind:
                    assert str(one.type) == read.kind, read.text
                else:
                    unknown.append(read.opcode)
                compare_operands(list(one.operands), read)
    assert set(unknown) == {"landingpad", "va_arg", "atomicrmw", "cmpxchg"}


#: Operands that LLVM has and the record keeps elsewhere: the callee, labels.
ELSEWHERE = {"call": 1, "invoke": 3, "br": None, "switch": None, "landingpad": None}


def compare_operands(theirs: list[llvm.ValueRef], read: Instruction) -> None:
    elsewhere = ELSEWHERE.get(read.opcode, 0)
    if (
        not read.kind
        or elsewhere is None
        or read.callee == "asm"
        or (read.opcode == "call" and "[ " in read.text)
    ):
        return
    if read.opcode == "phi":
        assert len(theirs) == len(read.incoming)
    elif read.operands:
        values = theirs[: len(theirs) - elsewhere]
        assert [str(one.type) for one in values] == [one.kind for one in read.operands], read.text


@looped(
    ("text", "fields"),
    [
        ("%r = add nuw nsw i32 %a, -1",
         {"operands": (("i32", "%a"), ("i32", "-1")), "flags": {"nuw", "nsw"}}),
        ("%r = or disjoint i64 %a, 4", {"kind": "i64", "flags": {"disjoint"}}),
        ("%r = zext nneg i32 %a to i64", {"kind": "i64", "operands": (("i32", "%a"),), "flags": {"nneg"}}),
        ("%r = icmp samesign ult i64 %a, %b", {"predicate": "ult", "kind": "i1", "flags": {"samesign"}}),
        ("%r = icmp eq <4 x i32> %a, splat (i32 7)", {"kind": "<4 x i1>", "operands": 2}),
        ("%r = getelementptr inbounds nuw [8 x [4 x float]], ptr @m, i64 0, i64 %i, i64 %j",
         {"element": "[8 x [4 x float]]", "kind": "ptr", "operands": 4, "flags": {"inbounds", "nuw"}}),
        ("%r = load volatile float, ptr %p, align 4, !dbg !12, !tbaa !3",
         {"alignment": 4, "flags": {"volatile"}, "debug": 12, "kind": "float"}),
        ("%r = load atomic i32, ptr %p syncscope(\"agent\") acquire, align 8",
         {"operands": (("ptr", "%p"),), "flags": {"atomic"}, "alignment": 8}),
        ("store float %x, ptr getelementptr inbounds nuw (i8, ptr @g, i64 8), align 4",
         {"operands": (("float", "%x"), ("ptr", "getelementptr inbounds nuw (i8, ptr @g, i64 8)"))}),
        ("store <2 x i8> <i8 1, i8 2>, ptr addrspace(3) %p, align 2",
         {"operands": (("<2 x i8>", "<i8 1, i8 2>"), ("ptr addrspace(3)", "%p"))}),
        ('%"a b" = phi ptr [ null, %"my entry" ], [ %q, %loop ]',
         {"result": '%"a b"', "incoming": (("null", '"my entry"'), ("%q", "loop"))}),
        ("%r = phi fast float [ 0.000000e+00, %e ], [ %s, %l ]", {"flags": 7, "incoming": 2}),
        ("br i1 %c, label %.lr.ph, label %7, !dbg !2, !llvm.loop !9",
         {"targets": (".lr.ph", "7"), "operands": (("i1", "%c"),), "debug": 2}),
        ("switch i32 %x, label %d [ i32 1, label %a i32 -2, label %b ], !prof !1",
         {"targets": ("d", "a", "b")}),
        ("%r = tail call fast noundef float @llvm.fma.f32(float %a, float %b, float %c)",
         {"opcode": "call", "callee": "@llvm.fma.f32", "kind": "float", "operands": 3}),
        ('%r = call i32 (ptr, ...) @printf(ptr noundef nonnull dereferenceable(1) @.str, i32 %a) #4',
         {"kind": "i32", "callee": "@printf", "operands": (("ptr", "@.str"), ("i32", "%a"))}),
        ("%r = call fastcc noundef range(i32 0, 5) i32 %f(ptr byval(%struct.S) align 8 %s)",
         {"kind": "i32", "callee": "%f", "operands": (("ptr", "%s"),)}),
        ('call void asm sideeffect "call f(x)", "~{memory}"(), !srcloc !5', {"callee": "asm"}),
        ("invoke void @f(ptr %p) to label %ok unwind label %bad", {"callee": "@f", "targets": ("ok", "bad")}),
        ("%r = select fast i1 %c, float %a, float 1.0", {"kind": "float", "flags": 7, "operands": 3}),
        ("%r = extractvalue { i32, i1 } %p, 1", {"kind": "i1"}),
        ("%r = alloca [4 x i32], i64 %n, align 16, addrspace(5)",
         {"kind": "ptr addrspace(5)", "element": "[4 x i32]", "alignment": 16, "operands": (("i64", "%n"),)}),
        ("%r = somethingnew i32 %x, label %y", {"opcode": "somethingnew", "kind": "", "names": {"%x", "%y"}}),
        ("ret void", {"operands": (), "kind": "void"}),
    ],)  # fmt: skip
def test_fields(text: str, fields: dict[str, object]) -> None:
    read = read_instruction("  " + text)
    for name, expected in fields.items():
        found = getattr(read, name)
        counted = isinstance(expected, int) and not isinstance(found, int)
        assert (len(found) if counted else found) == expected, name


def test_records_have_names() -> None:
    read = read_instruction("%r = phi i32 [ 0, %a ], [ %s, %b ]")
    assert read.incoming == (Incoming("0", "a"), Incoming("%s", "b"))
    assert read_instruction("ret i32 %x").operands == (InstructionOperand("i32", "%x"),)


def test_module(module: ParsedModule) -> None:
    assert module.triple == "x86_64-unknown-linux-gnu"
    assert module.datalayout.startswith("e-m:e")
    assert module.types["%struct.S"] == "{ i32, [10 x double] }"
    matrix = module.globals["matrix"]
    assert (matrix.kind, matrix.alias, matrix.constant) == ("[8 x [8 x float]]", False, False)
    assert module.globals["other"].alias
    assert module.globals["table"].constant
    assert module.lines[module.functions["memory"].start].startswith("define")


def test_function(module: ParsedModule) -> None:
    function = module.functions["memory"]
    assert [(one.name, one.kind, one.noalias) for one in function.parameters] == [
        ("%p", "ptr", True),
        ("%s", "ptr", False),
        ("%n", "i64", False),
    ]
    assert module.attribute(function, "target-cpu") == "x86-64"
    assert module.attribute(function, "no-such-attribute") == ""
    assert '"a function"' in module.functions


def test_an_entry_without_a_name_has_the_number_behind_the_arguments(module: ParsedModule) -> None:
    function = module.functions["unnamed"]
    assert list(function.blocks) == ["2", "3", "4"]
    assert function.predecessors["3"] == ("2", "3")
    assert function.homes["%5"] == "4"
    assert function.definitions["%5"].opcode == "fadd"


def test_lines_of_the_source(module: ParsedModule) -> None:
    function = module.functions["unnamed"]
    first = function.blocks["2"].instructions[0]
    assert str(module.where(function, first)) == "in_source:7"
    inlined = function.blocks["4"].instructions[0]
    assert str(module.where(function, inlined)) == "in_source:9"  # of the call, not of the callee
    assert str(module.where(module.functions["memory"])) == "memory"


def test_names_of_the_source(module: ParsedModule) -> None:
    assert module.variables(module.functions["unnamed"]) == {"%.sum": "s"}
    (line,) = (line for line in module.lines if "#dbg_value" in line)
    twice = "\n".join(module.lines).replace(line, line + "\n" + line.replace("%.sum", "%.next"))
    again = read_module(twice)
    assert again.variables(again.functions["unnamed"]) == {}


def test_what_is_said_of_loops_and_functions(module: ParsedModule) -> None:
    function = module.functions["unnamed"]
    assert module.loop_properties(function, "3") == {"llvm.loop.mustprogress"}
    assert module.loop_properties(function, "2") == frozenset()
    assert module.marks(module.functions["memory"], "nounwind")
    assert not module.marks(module.functions["memory"], "optnone")
    assert module.pointer_bits == 64
    assert read_module('target datalayout = "e-p:32:32"').pointer_bits == 32
