"""The systems that are measured: tilewright and its peers, one row each."""

from __future__ import annotations

import contextlib
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

from tilewright.errors import InvalidChoice, PackageMissing, UnsupportedDtype, shown
from tilewright.records import dataclass
from tilewright.settings import variable_of
from tilewright.spec.dtype import BF16, C64, C128, F16, F32, F64, I8, I32, U8, DType
from tilewright.spec.problem import ProductTypes
from tilewright.tools.explore.prepared import (
    Arrays,
    Environment,
    KernelProduct,
    NamedSystem,
    ReturningProduct,
    System,
    SystemProduct,
    stored,
)
from tilewright.tools.explore.scipy_iree import Iree, SciPy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tilewright.ops.gemm.problem import Gemm

#: Variables that change NumPy's BLAS. They are removed from the environment of every system's process, which
#: then runs as its package ships it, whatever the shell has set; a row may set them again.
REMOVED_VARIABLES = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
#: OpenBLAS's kernel sets for x86-64 CPUs since 2013 (OpenBLAS, README.md, "Supported CPUs"). One that the CPU
#: cannot run ends the trial process; one that this OpenBLAS lacks leaves it as shipped.
CORE_TYPES = ("Haswell", "Zen", "SkylakeX", "Cooperlake", "Sapphirerapids")


@dataclass(frozen=True)
class Tilewright:
    """The package itself, loaded by name and called from outside like any other.

    Attributes
    ----------
    dtype : computes in this type whatever is wanted.
    lowering : who writes the tile products (`tilewright.compile`).
    isa : the instruction-set row it is limited to, by `TILEWRIGHT_ISA`.
    tuned : whether it uses what `tilewright tune` found.
    """

    name: str = "tilewright"
    package: str = "tilewright"
    dtype: DType | None = None
    lowering: str = "target"
    isa: str | None = None
    tuned: bool = True

    def environments(self, threads: int) -> tuple[Environment, ...]:  # noqa: ARG002
        """The caller's settings, the row where one is given, and whether tuning is off."""
        row = {} if self.isa is None else {variable_of("isa"): self.isa}
        return (row if self.tuned else {**row, variable_of("tuning"): "0"},)

    def types(self, wanted: ProductTypes) -> ProductTypes:
        """What is wanted, or a product of one type."""
        return wanted if self.dtype is None else ProductTypes.parse(self.dtype)

    def call(self, types: ProductTypes) -> str:
        """`matmul`, or a kernel of a target or a lowering."""
        row = "" if self.isa is None else f", kernels of the row {self.isa}"
        row += "" if self.tuned else ", without tuned constants"
        return f"tilewright, {types.name}{row}" + (", generic lowering" if self.lowering != "target" else "")

    def prepare(self, gemm: Gemm, arrays: Arrays, threads: int, target: str | None) -> SystemProduct:  # noqa: ARG002
        """`matmul` on this host; the thread count comes from the worker's environment.

        For another target, or by another lowering, the kernel that `matmul` would take there.
        """
        package = import_module(self.package)
        if target is None and self.lowering == "target":
            return SystemProduct(package.matmul, *arrays)
        if arrays[2].ndim > 2:
            raise InvalidChoice(name="case", found="a batch", allowed="single products, which kernels take")
        layouts = dict.fromkeys("abc", "strided")
        types = gemm.types
        problem = package.Gemm(dtype=types.a, b_dtype=types.b, out_dtype=types.c, **layouts)
        return KernelProduct(package.compile(problem, target, lowering=self.lowering).native, *arrays)


@dataclass(frozen=True)
class NumPy:
    """`numpy.matmul`, on the BLAS that NumPy was built with where that has the element type.

    Attributes
    ----------
    core_types : values of `OPENBLAS_CORETYPE` that are tried in addition to NumPy as shipped.
    """

    name: str = "numpy"
    package: str = "numpy"
    core_types: tuple[str, ...] = ()

    def environments(self, threads: int) -> tuple[Environment, ...]:  # noqa: ARG002
        """As shipped, and each core type."""
        return ({}, *({"OPENBLAS_CORETYPE": name} for name in self.core_types))

    def types(self, wanted: ProductTypes) -> ProductTypes:
        """NumPy's own types; a C that is wider than its operands is computed in its type."""
        plain = not any(dtype.extension for dtype in (wanted.a, wanted.b, wanted.c))
        if plain and wanted.c.holds(wanted.a) and wanted.c.holds(wanted.b):
            return wanted
        raise UnsupportedDtype(
            dtype=f"{wanted.name} of numpy", supported="NumPy's types, into a C that holds them"
        )

    def call(self, types: ProductTypes) -> str:
        """`matmul`, with the type it computes in where that is not the operands'."""
        dtype = "" if types.a == types.b == types.c else f", dtype={types.c.numpy}"
        return f"numpy.matmul({types.a}, {types.b}{dtype})"

    def prepare(self, gemm: Gemm, arrays: Arrays, threads: int, target: str | None) -> SystemProduct:  # noqa: ARG002
        """The environment bounds the threads of the BLAS; threadpoolctl, where installed, sets them."""
        function = import_module(self.package).matmul
        with contextlib.suppress(ImportError):
            import_module("threadpoolctl").threadpool_limits(threads, user_api="blas")
        types = gemm.types
        if not types.a == types.b == types.c:
            function = partial(function, dtype=types.c.numpy)
        return SystemProduct(function, *arrays)


@dataclass(frozen=True)
class Torch:
    """`torch.matmul` on tensors that are the NumPy arrays' memory; `torch._int_mm` for int8 into int32."""

    name: str = "torch"
    package: str = "torch"

    def environments(self, threads: int) -> tuple[Environment, ...]:  # noqa: ARG002
        """The caller's."""
        return ({},)

    def types(self, wanted: ProductTypes) -> ProductTypes:
        """One type; 8-bit integers into int32 are int8, floats of 16 bits give what they are."""
        if wanted.c == I32 and {wanted.a, wanted.b} <= {I8, U8}:
            return ProductTypes.parse(I8, I8, I32)
        if wanted.a == wanted.b and (wanted.c == wanted.a or wanted.a in (BF16, F16)):
            one = ProductTypes.parse(wanted.a)
            if one.a == BF16 or not one.a.extension:
                return one
        raise UnsupportedDtype(dtype=f"{wanted.name} of torch", supported="one type, and int8 into int32")

    def call(self, types: ProductTypes) -> str:
        """`matmul`, or the product of int8 that has no public name."""
        name = "torch.matmul" if types.a == types.c else "torch._int_mm"
        return f"{name}({types.a}, {types.b})"

    def prepare(self, gemm: Gemm, arrays: Arrays, threads: int, target: str | None) -> SystemProduct:  # noqa: ARG002
        """Outside of autograd, on `threads` intra-op threads."""
        torch = import_module(self.package)
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        types = gemm.types
        function = torch.matmul if types.a == types.c else torch._int_mm  # noqa: SLF001  (it has no other)
        return SystemProduct(function, *(array_tensor(torch, array, types.a) for array in arrays))


def array_tensor(torch: Any, array: NDArray[Any], dtype: DType) -> Any:
    """The same memory as a tensor; torch takes no array of bfloat16, but its bits."""
    if dtype == BF16:
        return torch.from_numpy(array.view("int16")).view(torch.bfloat16)
    return torch.from_numpy(array)


@dataclass(frozen=True)
class Jax:
    """`jax.numpy.matmul` under `jax.jit`, on arrays of JAX; a new array for each result, as JAX has it."""

    name: str = "jax"
    package: str = "jax"

    def environments(self, threads: int) -> tuple[Environment, ...]:
        """XLA's pool has `threads` threads; one product is shared among them where there are several."""
        alone = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"} if threads == 1 else {}
        return ({"NPROC": str(threads), "JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "1", **alone},)

    def types(self, wanted: ProductTypes) -> ProductTypes:
        """One type of floats or complex numbers."""
        if wanted.a == wanted.b == wanted.c and wanted.a in (F32, F64, BF16, F16, C64, C128):
            return wanted
        raise UnsupportedDtype(dtype=f"{wanted.name} of jax", supported="one type of floats")

    def call(self, types: ProductTypes) -> str:
        """The function that is compiled."""
        return f"jax.jit(jax.numpy.matmul)({types.a}, {types.b})"

    def prepare(self, gemm: Gemm, arrays: Arrays, threads: int, target: str | None) -> SystemProduct:  # noqa: ARG002
        """Operands copied to JAX as they are stored; a transposed one is transposed in the compiled call."""
        jax = import_module(self.package)
        jax.config.update("jax_cpu_enable_async_dispatch", False)
        (a, flip_a), (b, flip_b) = (stored(array) for array in arrays[:2])

        def product(x: Any, y: Any) -> Any:
            return jax.numpy.matmul(x.mT if flip_a else x, y.mT if flip_b else y)

        compiled, device = jax.jit(product), jax.devices("cpu")[0]

        def run(x: Any, y: Any) -> Any:
            return compiled(x, y).block_until_ready()

        return ReturningProduct(run, jax.device_put(a, device), jax.device_put(b, device), arrays[2])


@dataclass(frozen=True)
class OnnxRuntime:
    """`MatMul` of ONNX as a model of one node, operands and result bound to the NumPy arrays' memory."""

    name: str = "onnxruntime"
    package: str = "onnxruntime"

    def environments(self, threads: int) -> tuple[Environment, ...]:  # noqa: ARG002
        """The caller's; a session takes its thread count as an option."""
        return ({},)

    def types(self, wanted: ProductTypes) -> ProductTypes:
        """float32 or float64, which its kernels for CPUs have."""
        if find_spec("onnx") is None:
            raise PackageMissing(purpose="measuring onnxruntime", package="onnx", install="onnx")
        if wanted.a == wanted.b == wanted.c and wanted.a in (F32, F64):
            return wanted
        raise UnsupportedDtype(dtype=f"{wanted.name} of onnxruntime", supported="f32, f64")

    def call(self, types: ProductTypes) -> str:
        """The node."""
        return f"onnxruntime MatMul({types.a}, {types.b})"

    def prepare(self, gemm: Gemm, arrays: Arrays, threads: int, target: str | None) -> SystemProduct:  # noqa: ARG002
        """A session of `threads` threads; a transposed operand is a Transpose node, which is fused."""
        onnxruntime, onnx = import_module(self.package), import_module("onnx")
        kind = onnx.TensorProto.FLOAT if gemm.types.a == F32 else onnx.TensorProto.DOUBLE
        inputs, nodes, names = {}, [], []
        for name, array in zip("ab", arrays, strict=False):
            held, flip = stored(array)
            inputs[name] = held
            names.append(f"{name}t" if flip else name)
            if flip:
                order = (*range(held.ndim - 2), held.ndim - 1, held.ndim - 2)
                nodes.append(onnx.helper.make_node("Transpose", [name], [names[-1]], perm=order))
        nodes.append(onnx.helper.make_node("MatMul", names, ["c"]))
        shapes = {**{name: array.shape for name, array in inputs.items()}, "c": arrays[2].shape}
        values = {
            name: onnx.helper.make_tensor_value_info(name, kind, shape) for name, shape in shapes.items()
        }
        graph = onnx.helper.make_graph(nodes, "product", [values["a"], values["b"]], [values["c"]])
        model = onnx.helper.make_model(
            graph, opset_imports=[onnx.helper.make_opsetid("", _ONNX_OPSET)], ir_version=_ONNX_IR
        )
        session = onnx_session(onnxruntime, model.SerializeToString(), threads)
        binding = session.io_binding()
        for name, array in inputs.items():
            binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
        out = arrays[2]
        binding.bind_output("c", "cpu", 0, out.dtype, out.shape, out.ctypes.data)

        def run(_a: object, _b: object, out: object) -> None:  # noqa: ARG001
            session.run_with_iobinding(binding)

        return SystemProduct(run, *arrays)


def onnx_session(onnxruntime: Any, model: bytes | str, threads: int) -> Any:
    """A session of ONNX Runtime on some threads of the CPU, for a model or the path of one."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


#: An operator set, and the version of the format that came with it, which ONNX Runtime reads since 2023.
_ONNX_OPSET, _ONNX_IR = 18, 8

AnySystem = TypeVar("AnySystem", bound=NamedSystem)

TILEWRIGHT = Tilewright()
#: The systems that tilewright is compared with. A new peer is a row here.
PEERS: tuple[System, ...] = (
    NumPy(),
    NumPy("numpy-best", core_types=CORE_TYPES),
    Torch(),
    Jax(),
    OnnxRuntime(),
    SciPy(),
    Iree(),
)
#: Products of the same sizes that tilewright computes in another way: what a type, a lowering or a row
#: costs, and what tuning gains.
VARIANTS: tuple[System, ...] = (
    Tilewright("tilewright-f32", dtype=F32),
    Tilewright("tilewright-generic", lowering="generic"),
    Tilewright("tilewright-avx2", isa="avx2"),
    Tilewright("tilewright-model", tuned=False),
)
SYSTEMS: tuple[System, ...] = (*PEERS, *VARIANTS, TILEWRIGHT)
#: Names of systems that are tilewright itself, of products and of attention.
OURS = frozenset({*(row.name for row in (*VARIANTS, TILEWRIGHT)), "tilewright-unfused"})


def find_system(name: str, rows: Sequence[AnySystem] | None = None) -> AnySystem:
    """The row of a name, if its package is installed; of those that multiply matrices by default.

    Raises
    ------
    InvalidChoice : no row has the name.
    PackageMissing : the package is not installed.

    Examples
    --------
    >>> find_system("numpy").name
    'numpy'
    """
    known: Sequence[Any] = SYSTEMS if rows is None else rows
    for system in known:
        if system.name == name:
            if find_spec(system.package) is None:
                raise PackageMissing(
                    purpose=f"measuring {name}", package=system.package, install=system.package
                )
            found: AnySystem = system
            return found
    raise InvalidChoice(name="system", found=shown(name), allowed=", ".join(row.name for row in known))


def parse_peers(text: str, peers: Sequence[NamedSystem] = PEERS) -> tuple[str, ...]:
    """The peers of a comma list, which may be empty; tilewright itself is not one.

    >>> parse_peers("numpy")
    ('numpy',)
    """
    allowed = [row.name for row in peers]
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    for name in names:
        if name not in allowed:
            raise InvalidChoice(name="peer", found=shown(name), allowed=", ".join(allowed))
        find_system(name, peers)
    return names


def installed_peers(types: ProductTypes) -> tuple[str, ...]:
    """Every peer that is installed and has the element types.

    >>> installed_peers(ProductTypes.parse("f32"))[:2]
    ('numpy', 'numpy-best')
    """
    found = []
    for system in PEERS:
        with contextlib.suppress(UnsupportedDtype, PackageMissing):
            find_system(system.name).types(types)
            found.append(system.name)
    return tuple(found)


def default_peers(types: ProductTypes) -> tuple[str, ...]:
    """NumPy; where it lacks the element types, the first installed peer that has them.

    >>> default_peers(ProductTypes.parse("f32"))
    ('numpy',)
    """
    return installed_peers(types)[:1]
