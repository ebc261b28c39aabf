"""Kernel names: one grammar, written from a problem and parsed back into it."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any, TypeAlias

from tilewright.errors import InvalidChoice, shown
from tilewright.ops.attention.backward_problem import AttentionBackward
from tilewright.ops.attention.problem import Attention, Schedule
from tilewright.ops.batch_reduce.problem import BatchMode, BatchReduceGemm
from tilewright.ops.chain.problem import LinearChain
from tilewright.ops.contraction.problem import Contraction
from tilewright.ops.elementwise.problem import Elementwise
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.mmt4d.problem import Mmt4d
from tilewright.ops.packing.problem import Packing
from tilewright.ops.rows.problem import RowFunction
from tilewright.ops.scattered.problem import ScatteredGemm
from tilewright.ops.sum_of_products.problem import SumOfProducts, Walk
from tilewright.ops.triangular.syr2k_problem import Syr2k, Syrk
from tilewright.ops.triangular.trmm_problem import Trmm
from tilewright.ops.unary.problem import Unary
from tilewright.spec.arguments import parse_choice
from tilewright.spec.epilogue import THEN, Epilogue
from tilewright.spec.problem import Layout, Strategy
from tilewright.spec.row_functions import RowOp
from tilewright.spec.weights import Weights

_LAYOUTS = {layout.letter: layout for layout in Layout}

_GEMM = re.compile(
    r"gemm_(?P<dtype>\w+?)_(?P<m>m|\d+)x(?P<n>n|\d+)x(?P<k>k|\d+)_(?P<layouts>[rcsp]{3})"
    r"(?:_(?P<weights>(?:bf16|f16|i8|i4)(?:g\d+)?z?))?(?:_with_(?P<epilogue>\w+?))?"
    rf"_(?P<strategy>{'|'.join(way.value for way in Strategy)})_(?P<isa>\w+)"
)
_BATCH_REDUCE = re.compile(
    r"brgemm_(?P<dtype>\w+?)_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)x(?P<count>\d+)_(?P<layouts>[rc]{3})"
    r"(?P<replace>_replace)?(?P<address>_address)?_(?P<isa>\w+)"
)
_UNARY = re.compile(
    r"unary_(?P<op>[a-z_]+?)_(?P<dtype>[a-z]+\d+)_(?P<m>m|\d+)x(?P<n>n|\d+)_(?P<layouts>[cs][rcs])_(?P<isa>\w+)"
)
_PACKING = re.compile(r"pack_(?P<role>[ab])_(?P<dtype>[a-z]+\d+)_with_(?P<other>[a-z]+\d+)_(?P<isa>\w+)")


_MMT4D = re.compile(
    r"mmt4d_(?P<dtype>[a-z]+\d+)_(?P<other>[a-z]+\d+)_(?P<m1>m|\d+)x(?P<n1>n|\d+)x(?P<k1>k|\d+)"
    r"_by_(?P<m0>\d+)x(?P<n0>\d+)x(?P<k0>\d+)_(?P<isa>\w+)"
)
_CHAIN = re.compile(
    r"chain_(?P<dtype>[a-z]+\d+)_(?P<sizes>\d+(x\d+)+)(?P<bias>_bias)?_with_(?P<steps>[a-z_]+?)_end_(?P<isa>\w+)"
)


_ATTENTION = re.compile(
    r"attention_(?P<dtype>[a-z]+\d+)_(?P<head>\d+)x(?P<value>\d+)(?P<features>(_[a-z0-9]+)*?)"
    rf"_(?P<schedule>{'|'.join(way.value for way in Schedule)})_(?P<isa>\w+)"
)
_ATTENTION_BACKWARD = re.compile(
    r"attention_backward_(?P<dtype>[a-z]+\d+)_(?P<head>\d+)x(?P<value>\d+)(?P<features>(_[a-z0-9]+)*?)"
    r"_(?P<isa>[a-z0-9]+)"
)

_SCATTERED = re.compile(r"scattered_(?P<dtype>[a-z]+\d+)_(?P<isa>\w+)")
_ROWS = re.compile(
    rf"rows_(?P<op>{'|'.join(op.value for op in RowOp)})_(?P<dtype>[a-z]+\d+)_(?P<layout>[rc])"
    r"(?:_weight(?P<weight>[a-z]+\d+))?(?:_bias(?P<bias>[a-z]+\d+))?_(?P<isa>\w+)"
)

_SYMMETRIC = re.compile(
    r"(?P<kind>syrk|syr2k)_(?P<dtype>\w+?)_(?P<n>n|\d+)x(?P<k>k|\d+)_(?P<layouts>[rcs]{2,3})"
    r"_(?P<triangle>lower|upper)_(?P<isa>\w+)"
)

_TRMM = re.compile(
    r"trmm_(?P<dtype>\w+?)_(?P<m>m|\d+)x(?P<n>n|\d+)_(?P<layouts>[rcs]{3})_(?P<side>left|right)"
    r"_(?P<triangle>lower|upper)(?P<unit>_unit)?_(?P<isa>\w+)"
)

_ELEMENTWISE = re.compile(r"each_(?P<op>[a-z_]+?)_(?P<dtype>[a-z]+\d+)_(?P<isa>\w+)")
_PRODUCTS = re.compile(
    rf"products_(?P<walk>{'|'.join(walk.value for walk in Walk)})_(?P<factors>[12])"
    r"_(?P<dtype>[a-z]+\d+)_(?P<isa>\w+)"
)

#: Hexadecimal digits of the digest in the name of a contraction: 40 bits, for the thousands of a process.
DIGEST_LENGTH = 10

#: Every problem that has a kernel.
AnyProblem: TypeAlias = (
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


def digest(text: str) -> str:
    """What distinguishes contractions, whose dimensions would make names of hundreds of letters."""
    return sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]


def contraction_name(problem: Contraction, isa: str, code: str) -> str:
    """The name of a contraction's kernel; `code` is what distinguishes it: in the end, its program's text."""
    return f"contraction_{problem.main.value}_{problem.types.name}_{digest(code)}_{isa}"


def kernel_name(problem: AnyProblem, isa: str) -> str:
    """The name of a problem's kernel on an ISA row, also its exported symbol.

    Sizes are numbers, or their letter where they are given at run time; then one letter a layout
    (row, col, strided, packed); then what differs from the default, as the epilogue does; then the row.

    >>> kernel_name(Gemm(m=64, dtype="f64", b="col"), "avx512")
    'gemm_f64_64xnxk_rcr_auto_avx512'
    >>> kernel_name(Gemm(weights=Weights.parse("i4g64")), "avx2")
    'gemm_f32_mxnxk_rpr_i4g64_auto_avx2'
    >>> kernel_name(Gemm(epilogue="bias,gelu"), "avx2")
    'gemm_f32_mxnxk_rrr_with_bias_then_gelu_auto_avx2'
    >>> kernel_name(BatchReduceGemm(64, 48, 64, 16), "avx512")
    'brgemm_f32_64x48x64x16_ccc_avx512'
    >>> kernel_name(Unary("relu", 64, None, b="row"), "avx512")
    'unary_relu_f32_64xn_cr_avx512'
    >>> kernel_name(Packing("b", "bf16"), "avx512")
    'pack_b_bf16_with_bf16_avx512'
    >>> kernel_name(Mmt4d(8, 16, 1), "avx2")
    'mmt4d_f32_f32_mxnxk_by_8x16x1_avx2'
    >>> kernel_name(LinearChain((64, 256, 64), ("gelu", None)), "avx2")
    'chain_f32_64x256x64_bias_with_gelu_then_none_end_avx2'
    >>> kernel_name(Attention(64, bounded=True), "avx2")
    'attention_f32_64x64_bounded_blocks_avx2'
    >>> kernel_name(AttentionBackward(64, dtype="bf16"), "avx2")
    'attention_backward_bf16_64x64_avx2'
    >>> kernel_name(RowFunction("layer_norm", "bf16", weight="f32"), "avx2")
    'rows_layer_norm_bf16_r_weightf32_avx2'
    >>> kernel_name(Elementwise("gelu"), "avx2")
    'each_gelu_f32_avx2'
    >>> kernel_name(Syr2k(n=64, dtype="bf16", out_dtype="f32", lower=False), "avx2")
    'syr2k_bf16f32_64xk_rrr_upper_avx2'
    >>> kernel_name(SumOfProducts("along", 2, "c64"), "avx2")
    'products_along_2_c64_avx2'
    >>> kernel_name(Trmm(side="right", unit=True), "avx2")
    'trmm_f32_mxn_rrr_right_lower_unit_avx2'
    """
    if isinstance(problem, Contraction):
        return contraction_name(problem, isa, str(problem))
    if isinstance(problem, ScatteredGemm):
        return f"scattered_{problem.dtype}_{isa}"
    if isinstance(problem, RowFunction):
        given = (("weight", problem.weight), ("bias", problem.bias))
        marks = "".join(f"_{name}{dtype}" for name, dtype in given if dtype is not None)
        return f"rows_{problem.op.value}_{problem.dtype}_{problem.layout.letter}{marks}_{isa}"
    if isinstance(problem, Elementwise):
        return f"each_{problem.op.value}_{problem.dtype}_{isa}"
    if isinstance(problem, SumOfProducts):
        return f"products_{problem.walk.value}_{problem.factors}_{problem.dtype}_{isa}"
    if isinstance(problem, AttentionBackward):
        words = "_".join((f"{problem.head_dim}x{problem.value_dim}", *problem.features))
        return f"attention_backward_{problem.dtype}_{words}_{isa}"
    if isinstance(problem, Attention):
        words = "_".join((*problem.features, problem.schedule.value))
        return f"attention_{problem.dtype}_{problem.head_dim}x{problem.value_dim}_{words}_{isa}"
    if isinstance(problem, LinearChain):
        steps = THEN.join("none" if op is None else op.value for op in problem.activations)
        sizes, bias = "x".join(map(str, problem.sizes)), "_bias" * problem.bias
        return f"chain_{problem.dtype}_{sizes}{bias}_with_{steps}_end_{isa}"
    layouts = "".join(operand.layout.letter for operand in problem.operands)
    match problem:
        case Gemm(m=m, n=n, k=k):
            letters = zip("mnk", (m, n, k), strict=True)
            sizes = "x".join(letter if size is None else str(size) for letter, size in letters)
            marks = f"_{problem.weights.name}" if problem.weights else ""
            marks += f"_with_{problem.epilogue.identifier}" if problem.epilogue else ""
            return f"gemm_{problem.types.name}_{sizes}_{layouts}{marks}_{problem.strategy.value}_{isa}"
        case Unary(m=m, n=n):
            sizes = f"{'m' if m is None else m}x{'n' if n is None else n}"
            return f"unary_{problem.op.value}_{problem.dtype}_{sizes}_{layouts}_{isa}"
        case Syrk(n=n, k=k):
            kind, triangle = type(problem).__name__.lower(), "lower" if problem.lower else "upper"
            sizes = f"{'n' if n is None else n}x{'k' if k is None else k}"
            return f"{kind}_{problem.types.name}_{sizes}_{layouts}_{triangle}_{isa}"
        case Trmm(m=m, n=n, side=side):
            marks = f"{side.value}_{'lower' if problem.lower else 'upper'}{'_unit' * problem.unit}"
            sizes = f"{'m' if m is None else m}x{'n' if n is None else n}"
            return f"trmm_{problem.types.name}_{sizes}_{layouts}_{marks}_{isa}"
        case Packing(role=role, dtype=dtype, other=other):
            return f"pack_{role.value}_{dtype}_with_{other}_{isa}"
        case Mmt4d(m0=m0, n0=n0, k0=k0):
            counts = zip("mnk", (problem.m1, problem.n1, problem.k1), strict=True)
            tiles = "x".join(letter if count is None else str(count) for letter, count in counts)
            return f"mmt4d_{problem.dtype}_{problem.b_dtype}_{tiles}_by_{m0}x{n0}x{k0}_{isa}"
        case BatchReduceGemm(m=m, n=n, k=k, count=count):
            marks = "" if problem.beta else "_replace"
            marks += "_address" if problem.batch is BatchMode.ADDRESS else ""
            return f"brgemm_{problem.types.name}_{m}x{n}x{k}x{count}_{layouts}{marks}_{isa}"


def _parse_types(name: str) -> tuple[str, str | None, str | None]:
    """The types of A, B and C from what `ProductTypes.name` wrote.

    >>> _parse_types("bf16f32")
    ('bf16', None, 'f32')
    """
    words = re.findall(r"[a-z]+\d+", name)
    if "".join(words) != name or not 1 <= len(words) <= 3:
        raise InvalidChoice(name="types of a kernel name", found=shown(name), allowed="as 'f32' or 'u8i8i32'")
    if len(words) == 3:
        return words[0], words[1], words[2]
    return words[0], None, words[1] if len(words) == 2 else None


def _parse_features(words: str) -> dict[str, Any]:
    """The keywords whose features were written, each behind an underscore.

    >>> _parse_features("_bounded_masku8")
    {'bounded': True, 'mask': 'u8'}
    """
    given: dict[str, Any] = {}
    for word in words.split("_")[1:]:
        if word.startswith("kv"):
            given["kv_dtype"] = word[2:]
        elif word.startswith("mask"):
            given["mask"] = word[4:]
        else:
            given[{"keyscales": "key_scales", "valuescales": "value_scales"}.get(word, word)] = True
    return given


def _parse_attention(found: re.Match[str]) -> Attention:
    """The problem whose features `Attention.features` wrote."""
    sizes, given = (int(found["head"]), int(found["value"])), _parse_features(found["features"])
    return Attention(*sizes, found["dtype"], schedule=found["schedule"], **given)


def parse_kernel_name(name: str) -> tuple[AnyProblem, str]:
    """The problem and the ISA row of a name that `kernel_name` wrote; `InvalidChoice` otherwise.

    >>> parse_kernel_name("brgemm_f32_64x48x64x16_ccc_replace_avx512")[0].beta
    0
    """
    if found := _GEMM.fullmatch(name):
        m, n, k = (None if found[size] == size else int(found[size]) for size in "mnk")
        a, b, c = (_LAYOUTS[letter] for letter in found["layouts"])
        strategy = parse_choice(Strategy, found["strategy"], "strategy of a kernel name")
        epilogue = Epilogue.of_identifier(found["epilogue"]) if found["epilogue"] else None
        weights = Weights.parse(found["weights"]) if found["weights"] else None
        dtype, b_dtype, out_dtype = _parse_types(found["dtype"])
        gemm = Gemm(
            *(m, n, k, dtype),
            a=a,
            b=b,
            c=c,
            b_dtype=b_dtype,
            out_dtype=out_dtype,
            epilogue=epilogue,
            strategy=strategy,
            weights=weights,
        )
        return gemm, found["isa"]
    if found := _BATCH_REDUCE.fullmatch(name):
        sizes = {size: int(found[size]) for size in ("m", "n", "k", "count")}
        a, b, c = (_LAYOUTS[letter] for letter in found["layouts"])
        beta = 0 if found["replace"] else 1
        batch = BatchMode.ADDRESS if found["address"] else BatchMode.STRIDE
        dtype, b_dtype, out_dtype = _parse_types(found["dtype"])
        problem = BatchReduceGemm(
            **sizes, dtype=dtype, a=a, b=b, c=c, b_dtype=b_dtype, out_dtype=out_dtype, beta=beta, batch=batch
        )
        return problem, found["isa"]
    if found := _UNARY.fullmatch(name):
        m, n = (None if found[size] == size else int(found[size]) for size in "mn")
        a, b = (_LAYOUTS[letter] for letter in found["layouts"])
        return Unary(found["op"], m, n, found["dtype"], a=a, b=b), found["isa"]
    if found := _PACKING.fullmatch(name):
        return Packing(found["role"], found["dtype"], found["other"]), found["isa"]
    if found := _CHAIN.fullmatch(name):
        words = [None if word == "none" else word for word in found["steps"].split(THEN)]
        layers = [int(size) for size in found["sizes"].split("x")]
        return LinearChain(layers, words, found["dtype"], bias=bool(found["bias"])), found["isa"]
    if found := _SCATTERED.fullmatch(name):
        return ScatteredGemm(found["dtype"]), found["isa"]
    if found := _MMT4D.fullmatch(name):
        counts = {f"{letter}1": found[f"{letter}1"] for letter in "mnk"}
        known = {name: None if count == name[0] else int(count) for name, count in counts.items()}
        m0, n0, k0 = (int(found[f"{letter}0"]) for letter in "mnk")
        return Mmt4d(m0, n0, k0, found["dtype"], b_dtype=found["other"], **known), found["isa"]
    if found := _ATTENTION_BACKWARD.fullmatch(name):
        head, value = int(found["head"]), int(found["value"])
        given = _parse_features(found["features"])
        return AttentionBackward(head, value, found["dtype"], **given), found["isa"]
    if found := _ATTENTION.fullmatch(name):
        return _parse_attention(found), found["isa"]
    if found := _SYMMETRIC.fullmatch(name):
        n, k = (None if found[size] == size else int(found[size]) for size in "nk")
        dtype, _, out_dtype = _parse_types(found["dtype"])
        symmetric = {"syrk": Syrk, "syr2k": Syr2k}[found["kind"]]
        names = ("a", "c") if symmetric is Syrk else ("a", "b", "c")
        given = {one: _LAYOUTS[letter] for one, letter in zip(names, found["layouts"], strict=True)}
        lower = found["triangle"] == "lower"
        return symmetric(n, k, dtype, out_dtype=out_dtype, lower=lower, **given), found["isa"]
    if found := _TRMM.fullmatch(name):
        m, n = (None if found[size] == size else int(found[size]) for size in "mn")
        dtype, _, out_dtype = _parse_types(found["dtype"])
        given = {one: _LAYOUTS[letter] for one, letter in zip("abc", found["layouts"], strict=True)}
        lower, unit = found["triangle"] == "lower", bool(found["unit"])
        return Trmm(
            m, n, dtype, out_dtype=out_dtype, side=found["side"], lower=lower, unit=unit, **given
        ), found["isa"]
    if found := _ELEMENTWISE.fullmatch(name):
        return Elementwise(found["op"], found["dtype"]), found["isa"]
    if found := _PRODUCTS.fullmatch(name):
        return SumOfProducts(found["walk"], int(found["factors"]), found["dtype"]), found["isa"]
    if found := _ROWS.fullmatch(name):
        layout, given = _LAYOUTS[found["layout"]], {key: found[key] for key in ("weight", "bias")}
        return RowFunction(found["op"], found["dtype"], layout=layout, **given), found["isa"]
    raise InvalidChoice(
        name="kernel name",
        found=shown(name),
        allowed="gemm_..., brgemm_..., unary_..., pack_..., mmt4d_..., chain_..., attention_..., rows_..., "
        "each_..., syrk_..., syr2k_..., products_..., trmm_...",
    )
