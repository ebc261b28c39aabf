"""The ordered list of stages from a problem and a machine to a kernel; each output can be dumped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from tilewright.compiler.lowering.program import lower
from tilewright.compiler.names import contraction_name, kernel_name
from tilewright.errors import InvalidChoice, shown
from tilewright.ir.nodes import Program
from tilewright.llvm.target import emit_object
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import Blocking, Cover, choose_blocking, prepacked
from tilewright.ops.attention.backward_problem import AttentionBackward
from tilewright.ops.attention.problem import Attention, Schedule
from tilewright.ops.batch_reduce.nest import build_batch_reduce, cover_of
from tilewright.ops.batch_reduce.problem import BatchReduceGemm
from tilewright.ops.chain.problem import LinearChain
from tilewright.ops.contraction.problem import Contraction
from tilewright.ops.elementwise.problem import Elementwise
from tilewright.ops.gemm.nest import build_gemm, instruction_of
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.mmt4d.problem import Mmt4d
from tilewright.ops.packing.nest import weight_lanes
from tilewright.ops.packing.problem import Packing
from tilewright.ops.rows.problem import RowFunction
from tilewright.ops.scattered.problem import ScatteredGemm
from tilewright.ops.sum_of_products.problem import SumOfProducts
from tilewright.ops.triangular.syr2k_problem import Syr2k, Syrk
from tilewright.ops.triangular.trmm_problem import Trmm
from tilewright.ops.unary.problem import Unary
from tilewright.preparing import importing
from tilewright.spec.problem import Layout, check_elements

if TYPE_CHECKING:
    from tilewright.ops.attention.backward_cut import BackwardBlocking
    from tilewright.ops.attention.cut import AttentionBlocking
    from tilewright.ops.attention.decode import DecodeCut
    from tilewright.ops.elementwise.nest import ElementCut
    from tilewright.ops.mmt4d.nest import Mmt4dCut
    from tilewright.ops.packing.nest import PanelForm
    from tilewright.ops.rows.nest import RowCut
    from tilewright.ops.sum_of_products.nest import ProductCut
    from tilewright.ops.unary.nest import Blocks

Problem: TypeAlias = (
    Gemm
    | BatchReduceGemm
    | Unary
    | Packing
    | Mmt4d
    | LinearChain
    | Attention
    | AttentionBackward
    | ScatteredGemm
    | RowFunction
    | Elementwise
    | Syrk
    | Syr2k
    | SumOfProducts
    | Contraction
    | Trmm
)
#: How a problem is cut: by caches, into tiles of known sizes, into blocks, into panels.
Cut: TypeAlias = (
    "Blocking | Cover | Blocks | PanelForm | Mmt4dCut | AttentionBlocking | BackwardBlocking | DecodeCut"
    " | RowCut | ElementCut | ProductCut"
)


@dataclass(frozen=True)
class Compilation:
    """A problem on its way to machine code; each stage fills the field of its name."""

    problem: Problem
    machine: Machine
    name: str
    blocking: Cut | None = None
    nest: Program | None = None
    fuse_unpack: Program | None = None
    fuse_pack: Program | None = None
    fuse_consumer: Program | None = None
    llvm: str = ""
    object: bytes = b""

    @property
    def program(self) -> Program:
        """The tile IR after the last stage that has been done."""
        found = self.fuse_consumer or self.fuse_pack or self.fuse_unpack or self.nest
        assert found is not None
        return found

    def with_field(self, name: str, value: Any) -> Compilation:
        """A copy with one more stage done."""
        fields = dict(self.__dict__)
        fields[name] = value
        return Compilation(**fields)


def _choose_blocking(state: Compilation) -> Cut:
    match state.problem:
        case Gemm() as problem:
            columns = weight_lanes(state.machine) if problem.weights else 0
            blocking = choose_blocking(state.machine, instruction_of(problem, state.machine.isa), columns)
            plain = problem.b is Layout.PACKED and problem.weights is None
            return prepacked(blocking) if plain else blocking
        case BatchReduceGemm() as problem:
            return cover_of(problem, state.machine)
        case Unary() as problem:
            with importing:
                from tilewright.ops.unary.nest import choose_blocks  # 2 ms that products need not pay

            return choose_blocks(problem, state.machine)
        case Packing() as problem:
            with importing:
                from tilewright.ops.packing.nest import panel_form

            return panel_form(problem.types, problem.role, state.machine)
        case Mmt4d() as problem:
            with importing:
                from tilewright.ops.mmt4d.nest import choose_mmt4d

            return choose_mmt4d(problem, state.machine)
        case LinearChain() as problem:
            return choose_blocking(state.machine, state.machine.isa.tile(problem.dtype))
        case Attention(schedule=Schedule.DECODE) as problem:
            with importing:
                from tilewright.ops.attention.decode import choose_decode

            return choose_decode(problem, state.machine)
        case ScatteredGemm() as problem:
            with importing:
                from tilewright.ops.scattered.nest import choose_scattered

            return choose_scattered(problem, state.machine)
        case Attention() as problem:
            with importing:
                from tilewright.ops.attention.cut import choose_attention

            return choose_attention(problem, state.machine)
        case AttentionBackward() as problem:
            with importing:
                from tilewright.ops.attention.backward_cut import choose_backward

            return choose_backward(problem, state.machine)
        case RowFunction() as problem:
            with importing:
                from tilewright.ops.rows.nest import choose_rows

            return choose_rows(problem, state.machine)
        case Elementwise() as problem:
            with importing:
                from tilewright.ops.elementwise.nest import choose_elements

            return choose_elements(problem, state.machine)
        case Syrk() as problem:
            with importing:
                from tilewright.ops.triangular.syr2k_nest import choose_symmetric

            return choose_symmetric(problem, state.machine)
        case SumOfProducts() as problem:
            with importing:
                from tilewright.ops.sum_of_products.nest import choose_products

            return choose_products(problem, state.machine)
        case Contraction() as problem:
            with importing:
                from tilewright.ops.contraction.nest import choose_contraction

            return choose_contraction(problem, state.machine)
        case Trmm() as problem:
            with importing:
                from tilewright.ops.triangular.trmm_nest import choose_trmm

            return choose_trmm(problem, state.machine)


def _build_nest(state: Compilation) -> Program:
    machine = state.machine
    match state.problem, state.blocking:
        case Gemm() as problem, Blocking() as blocking:
            return build_gemm(problem, blocking, machine, state.name)
        case BatchReduceGemm() as problem, Cover() as cover:
            return build_batch_reduce(problem, cover, machine, state.name)
        case Contraction() as problem, cut:
            with importing:
                from tilewright.ops.contraction.nest import build_contraction
                from tilewright.ops.unary.nest import Blocks

            assert isinstance(cut, (Cover, Blocking, Blocks))
            return build_contraction(problem, cut, machine, state.name)
        case Unary() as problem, blocks:
            with importing:
                from tilewright.ops.unary.nest import Blocks, build_unary

            assert isinstance(blocks, Blocks)
            return build_unary(problem, blocks, state.name)
        case Packing() as problem, form:
            with importing:
                from tilewright.ops.packing.nest import PanelForm, build_packing

            assert isinstance(form, PanelForm)
            return build_packing(problem, form, state.name)
        case Mmt4d() as problem, cut:
            with importing:
                from tilewright.ops.mmt4d.nest import Mmt4dCut, build_mmt4d

            assert isinstance(cut, Mmt4dCut)
            return build_mmt4d(problem, cut, machine, state.name)
        case AttentionBackward() as problem, backward:
            with importing:
                from tilewright.ops.attention.backward_cut import BackwardBlocking
                from tilewright.ops.attention.backward_nest import build_backward

            assert isinstance(backward, BackwardBlocking)
            return build_backward(problem, backward, machine, state.name)
        case RowFunction() as problem, rows:
            with importing:
                from tilewright.ops.rows.nest import RowCut, build_row_function

            assert isinstance(rows, RowCut)
            return build_row_function(problem, rows, state.name)
        case Elementwise() as problem, elements:
            with importing:
                from tilewright.ops.elementwise.nest import ElementCut, build_elementwise

            assert isinstance(elements, ElementCut)
            return build_elementwise(problem, elements, state.name)
        case Syrk() as problem, Blocking() as blocking:
            with importing:
                from tilewright.ops.triangular.syr2k_nest import build_symmetric

            return build_symmetric(problem, blocking, machine, state.name)
        case SumOfProducts() as problem, products:
            with importing:
                from tilewright.ops.sum_of_products.nest import ProductCut, build_products

            assert isinstance(products, ProductCut)
            return build_products(problem, products, state.name)
        case Trmm() as problem, Blocking() as blocking:
            with importing:
                from tilewright.ops.triangular.trmm_nest import build_trmm

            return build_trmm(problem, blocking, machine, state.name)
        case LinearChain() as problem, Blocking() as blocking:
            with importing:
                from tilewright.ops.chain.nest import build_chain

            return build_chain(problem, blocking, machine, state.name)
        case Attention(schedule=Schedule.DECODE) as problem, cut:
            with importing:
                from tilewright.ops.attention.decode import DecodeCut, build_decode

            assert isinstance(cut, DecodeCut)
            return build_decode(problem, cut, machine, state.name)
        case ScatteredGemm() as problem, Blocking() as blocking:
            with importing:
                from tilewright.ops.scattered.nest import build_scattered

            return build_scattered(problem, blocking, machine, state.name)
        case Attention() as problem, cut:
            with importing:
                from tilewright.ops.attention.cut import AttentionBlocking
                from tilewright.ops.attention.nest import build_attention

            assert isinstance(cut, AttentionBlocking)
            return build_attention(problem, cut, machine, state.name)
        case _:
            raise AssertionError(f"{state.problem} was cut as {state.blocking}")


def _fused(state: Compilation, name: str) -> Program:
    """The program after one rewrite; only chains have several nests."""
    if not isinstance(state.problem, LinearChain):
        return state.program
    with importing:
        from tilewright.ir import fuse

    rewrite: Callable[[Program], Program] = getattr(fuse, name)
    return rewrite(state.program)


def _fuse_unpack(state: Compilation) -> Program:
    return _fused(state, "fuse_unpack")


def _fuse_pack(state: Compilation) -> Program:
    return _fused(state, "fuse_pack")


def _fuse_consumer(state: Compilation) -> Program:
    return _fused(state, "fuse_consumer")


def _lower(state: Compilation) -> str:
    return lower(state.program, state.machine)


def _emit(state: Compilation) -> bytes:
    return emit_object(state.llvm, state.name, state.machine)


@dataclass(frozen=True)
class Stage:
    """One step; its name is the field it fills and the word that `--dump` takes."""

    name: str
    run: Callable[[Compilation], Any]


#: The last stage whose output is tile IR.
LAST_PROGRAM = "fuse_consumer"

STAGES: tuple[Stage, ...] = (
    Stage("blocking", _choose_blocking),  # Problem, Machine -> register tile and cache blocks, or a cover
    Stage("nest", _build_nest),  # -> tile IR: loops around TileMatmul and Pack
    Stage("fuse_unpack", _fuse_unpack),  # rows that are only unpacked are read as tiles
    Stage("fuse_pack", _fuse_pack),  # rows that are only packed are packed as they are made
    Stage("fuse_consumer", _fuse_consumer),  # what follows a product follows each tile
    Stage("llvm", _lower),  # -> LLVM module, as text
    Stage("object", _emit),  # -> machine code
)


def run_stages(problem: Problem, machine: Machine, until: str = STAGES[-1].name) -> Compilation:
    """Runs the stages in order, up to and including the one named."""
    names = [stage.name for stage in STAGES]
    if until not in names:
        raise InvalidChoice(name="stage", found=shown(until), allowed=", ".join(names))
    for operand in problem.operands:
        check_elements(f"{type(problem).__name__}: {operand.name}", (operand.rows or 1, operand.columns or 1))
    state = Compilation(problem, machine, kernel_name(problem, machine.isa.name))
    return _run(state, STAGES[: names.index(until) + 1])


def finish(state: Compilation) -> Compilation:
    """The stages behind the last one that makes tile IR, of a compilation that has come so far."""
    names = [stage.name for stage in STAGES]
    return _run(state, STAGES[names.index(LAST_PROGRAM) + 1 :])


def _run(state: Compilation, stages: tuple[Stage, ...]) -> Compilation:
    for stage in stages:
        state = state.with_field(stage.name, stage.run(state))
        if stage.name == "nest" and isinstance(state.problem, Contraction):
            state = _named_by_code(state)
    return state


def _named_by_code(state: Compilation) -> Compilation:
    """Contractions whose programs are the same are one kernel: sizes that tables hold are no part of it.

    Before: contraction_packed_gemm_f32_206ba4d7db_avx512, with a digest of the problem. After: with one of
    the program.
    """
    with importing:
        from tilewright.ir.text import print_program  # others pay nothing for it

    program, problem = state.nest, state.problem
    assert program is not None
    assert isinstance(problem, Contraction)
    name = contraction_name(problem, state.machine.isa.name, print_program(replace(program, name="")))
    return replace(state, name=name, nest=replace(program, name=name))
