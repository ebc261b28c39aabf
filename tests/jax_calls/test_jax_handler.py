"""The handler: what XLA passes to it, threads, memory, stored programs, refusals."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiers import exhaustive

jax = pytest.importorskip("jax")
jax.config.update("jax_disable_most_optimizations", True)  # compiling is most of the time

import jax.numpy as jnp  # noqa: E402

import tilewright as tw  # noqa: E402
import tilewright.jax as twj  # noqa: E402
from tilewright import errors  # noqa: E402
from tilewright.jax import frame as ffi  # noqa: E402
from tilewright.jax import library  # noqa: E402
from tilewright.jax.handler import TARGET, Handler, handler  # noqa: E402
from tilewright.jax.handler_code import ProgramField  # noqa: E402
from tilewright.jax.problem import ArrayType, Problem  # noqa: E402


def normal(*shape: int, seed: int = 0) -> Any:
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape), jnp.float32)


# --- structures -------------------------------------------------------------------------------------

#: Structures of the header, and of `frame.py` with the fields that differ in name.
STRUCTURES: dict[str, tuple[Any, dict[str, str]]] = {
    "XLA_FFI_CallFrame": (ffi.CallFrame, {}),
    "XLA_FFI_Args": (ffi.Buffers, {"items": "args"}),
    "XLA_FFI_Rets": (ffi.Buffers, {"items": "rets"}),
    "XLA_FFI_Attrs": (ffi.Attributes, {"items": "attrs"}),
    "XLA_FFI_Buffer": (ffi.XlaBuffer, {}),
    "XLA_FFI_Array": (ffi.ArrayAttribute, {}),
    "XLA_FFI_ByteSpan": (ffi.TextAttribute, {"data": "ptr", "size": "len"}),
    "XLA_FFI_Api": (ffi.Api, {"error_create": "XLA_FFI_Error_Create"}),
    "XLA_FFI_Api_Version": (ffi.ApiVersion, {}),
    "XLA_FFI_Metadata": (ffi.Metadata, {}),
    "XLA_FFI_Error_Create_Args": (ffi.ErrorCreate, {}),
    "XLA_FFI_Extension_Base": (ffi.Extension, {"metadata": ""}),
}
#: New names of the header's structures, from version 0.4 of the interface on (JAX 0.11).
RENAMED = {"XLA_FFI_Extension_Base": "XLA_FFI_InternalExtension"}
#: Constants of the header.
CONSTANTS = {
    "XLA_FFI_API_MAJOR": ffi.MAJOR,
    "XLA_FFI_Extension_Metadata": ffi.METADATA,
    "XLA_FFI_ExecutionStage_EXECUTE": ffi.ExecutionStage.EXECUTE,
    "XLA_FFI_AttrType_ARRAY": ffi.AttributeType.ARRAY,
    "XLA_FFI_AttrType_STRING": ffi.AttributeType.STRING,
    "XLA_FFI_Error_Create_Args_STRUCT_SIZE": ffi.ERROR_CREATE_BYTES,
    **{f"XLA_FFI_Error_Code_{code.name}": code for code in ffi.ErrorCode},
}


def test_structures_are_those_of_the_header(tmp_path: Path) -> None:
    header = Path(jax.ffi.include_dir(), "xla", "ffi", "api", "c_api.h").read_text()
    lines = ['#include "xla/ffi/api/c_api.h"']
    for name, value in CONSTANTS.items():
        lines.append(f'_Static_assert({name} == {int(value)}, "{name}");')
    for known, (structure, others) in STRUCTURES.items():
        new = RENAMED.get(known, known)
        name = new if new in header else known
        for field, *_ in structure._fields_:
            theirs = others.get(field, field)
            if theirs:
                place = getattr(structure, field).offset
                lines.append(f'_Static_assert(offsetof({name}, {theirs}) == {place}, "{name}.{theirs}");')
    place = ffi.Extension.metadata.offset
    lines.append(f'_Static_assert(offsetof(XLA_FFI_Metadata_Extension, metadata) == {place}, "metadata");')
    source = tmp_path / "offsets.c"
    source.write_text("\n".join(lines))
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    command = [compiler, "-fsyntax-only", f"-I{jax.ffi.include_dir()}", str(source)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert found.returncode == 0, found.stderr


class Caller:
    """Calls the handler as XLA does, with a version and attributes of a test's own."""

    def __init__(self, major: int = ffi.MAJOR, minor: int = 3) -> None:
        self.errors: list[tuple[int, str]] = []

        def create(given: int) -> int:
            made = ffi.ErrorCreate.from_address(given)
            self.errors.append((made.errc, ctypes.string_at(made.message).decode()))
            return len(self.errors)

        self._create = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(create)
        version = ffi.ApiVersion(ctypes.sizeof(ffi.ApiVersion), None, major, minor)
        create_address = ctypes.cast(self._create, ctypes.c_void_p).value
        self.api = ffi.Api(ctypes.sizeof(ffi.Api), None, version, None, create_address)
        self.frame = ffi.CallFrame(ctypes.sizeof(ffi.CallFrame), None, ctypes.addressof(self.api))
        self.frame.stage = ffi.ExecutionStage.EXECUTE

    def call(self) -> int | None:
        found: int | None = handler().function(ctypes.addressof(self.frame))
        return found

    def metadata(self) -> tuple[int, int]:
        """The version that the handler says it has."""
        metadata = ffi.Metadata()
        metadata.api_version.major_version = metadata.api_version.minor_version = -1
        extension = ffi.Extension(
            ctypes.sizeof(ffi.Extension), ffi.METADATA, None, ctypes.addressof(metadata)
        )
        self.frame.extension_start = ctypes.addressof(extension)
        assert self.call() is None
        self.frame.extension_start = None
        return metadata.api_version.major_version, metadata.api_version.minor_version


def test_version_of_the_interface() -> None:
    assert Caller(minor=1).metadata() == (ffi.MAJOR, 1)
    assert Caller(ffi.MAJOR + 1, 7).metadata() == (ffi.MAJOR, 0)


def test_unknown_version_is_refused_when_called() -> None:
    caller = Caller(ffi.MAJOR + 1)
    assert caller.call() == 1
    assert caller.errors[0][0] == ffi.ErrorCode.UNIMPLEMENTED
    assert "version 0 of XLA's foreign function interface" in caller.errors[0][1]


def test_missing_attributes_are_refused() -> None:
    caller = Caller()
    assert caller.call() == 1
    assert caller.errors[0][0] == ffi.ErrorCode.INVALID_ARGUMENT
    assert "attributes" in caller.errors[0][1]


def test_unknown_version_is_refused_by_the_import(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    header = tmp_path / "xla" / "ffi" / "api" / "c_api.h"
    header.parent.mkdir(parents=True)
    header.write_text("#define XLA_FFI_API_MAJOR 1\n")
    monkeypatch.setattr(jax.ffi, "include_dir", lambda: str(tmp_path))
    with pytest.raises(errors.JaxInterfaceUnknown, match="has version 1"):
        library.check_interface()


def test_jax_missing() -> None:
    program = "import sys; sys.modules['jax'] = None; import tilewright.jax"
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False
    )
    assert f"{errors.JaxMissing.__name__}: tilewright.jax needs JAX" in found.stderr


# --- problems ---------------------------------------------------------------------------------------


def test_text_has_nothing_of_this_process() -> None:
    a, b = normal(6, 4), normal(4, 3)
    text = jax.jit(twj.matmul).lower(a, b).as_text()
    problem = Problem(
        "einsum",
        (ArrayType("float32", (6, 4)), ArrayType("float32", (4, 3))),
        (ArrayType("float32", (6, 3)),),
        (("subscripts", "AB,BC->AC"),),
    )
    assert str(problem.key[0]) in text
    assert problem in [program.problem for program in handler().programs.values()]
    for program in handler().programs.values():
        assert str(program.address) not in text


@pytest.mark.parametrize("text", ["", "[]", '[1, "svd", [], [], {}]', '[99, "einsum", [], [], {}]'])
def test_unreadable_problems_are_refused(text: str) -> None:
    with pytest.raises(errors.JaxProblemUnreadable):
        Problem.parse(text)


def test_errors_of_stored_programs_are_xlas() -> None:
    """A program whose problem cannot be prepared reports Python's error."""
    call = jax.ffi.ffi_call(TARGET, jax.ShapeDtypeStruct((2,), jnp.float32))
    with pytest.raises(Exception, match="JaxProblemUnreadable"):
        jax.jit(lambda x: call(x, key=np.array([1, 2], np.int64), problem="nonsense"))(
            jnp.ones(2)
        ).block_until_ready()


def test_other_numbers_of_buffers_are_refused() -> None:
    twj.matmul(normal(6, 4), normal(4, 3))
    problem = next(program.problem for program in handler().programs.values())
    call = jax.ffi.ffi_call(TARGET, jax.ShapeDtypeStruct((2,), jnp.float32))
    with pytest.raises(Exception, match="number of buffers"):
        jax.jit(lambda x: call(x, key=np.array(problem.key, np.int64), problem=problem.text))(
            jnp.ones(2)
        ).block_until_ready()


STORED = """
    import sys
    import jax, numpy as np, jax.numpy as jnp
    jax.config.update("jax_compilation_cache_dir", sys.argv[1])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
    import tilewright.jax as twj
    from tilewright.jax.handler import handler
    events = []
    jax.monitoring.register_event_listener(lambda name, **_: events.append(name))
    exported = sys.argv[1] + "/exported"
    a, b = np.ones((4, 5), np.float32), np.ones((5, 3), np.float32)
    if sys.argv[2] == "second":
        call = jax.export.deserialize(open(exported, "rb").read()).call
        assert not handler().programs
        assert np.array_equal(call(a, b), a @ b)
        assert len(handler().programs) == 1
    function = jax.jit(lambda a, b: twj.matmul(a, b) + 1)
    assert np.array_equal(function(a, b), a @ b + 1)
    print("hits", sum(name.endswith("cache_hits") for name in events))
    if sys.argv[2] == "first":
        allowed = [jax.export.DisabledSafetyCheck.custom_call("tilewright")]
        data = jax.export.export(jax.jit(twj.matmul), disabled_checks=allowed)(a, b).serialize()
        open(exported, "wb").write(data)
"""


def test_stored_programs_run_in_other_processes(tmp_path: Path) -> None:
    """JAX's persistent cache, and `jax.export`: the second process finds what the first one compiled."""

    def run(which: str) -> str:
        command = [sys.executable, "-c", textwrap.dedent(STORED), str(tmp_path), which]
        return subprocess.run(command, capture_output=True, text=True, timeout=600, check=True).stdout

    assert "hits 0" in run("first")
    assert "hits 0" not in run("second")


def test_table_grows() -> None:
    own = Handler("tilewright_test")
    problems = [
        Problem(
            "einsum",
            (ArrayType("float32", (size, 2)), ArrayType("float32", (2, 2))),
            (ArrayType("float32", (size, 2)),),
            (("subscripts", "ij,jk->ik"),),
        )
        for size in range(1, 200)
    ]
    for problem in problems:
        own.find(problem)
    a, b = normal(150, 2), normal(2, 2)
    key = np.array(problems[149].key, np.int64)
    call = jax.ffi.ffi_call("tilewright_test", jax.ShapeDtypeStruct((150, 2), jnp.float32))
    found = jax.jit(lambda a, b: call(a, b, key=key, problem="not read"))(a, b)
    np.testing.assert_allclose(found, a @ b, rtol=1e-5, atol=1e-5)


# --- running ----------------------------------------------------------------------------------------


def test_threads_of_the_application_share_the_handler() -> None:
    function = jax.jit(lambda a, b: twj.matmul(a, b) + twj.matmul(b, a))
    operands = [normal(150, 150, seed=seed) for seed in range(4)]
    expected = [np.asarray(function(one, operands[0])) for one in operands]
    wrong: list[int] = []

    def work(number: int) -> None:
        found = [function(operands[number], operands[0]) for _ in range(15)]
        wrong.extend(number for one in found if not np.array_equal(one, expected[number]))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_thread_counts_change_nothing_but_time() -> None:
    """Also a count above the workers that run when the program is compiled."""
    before = tw.get_num_threads()
    a, b = normal(192, 192), normal(192, 192, seed=1)
    function = jax.jit(twj.matmul)
    try:
        tw.set_num_threads(1)
        expected = np.asarray(function(a, b))
        for count in (2, 5, 3):
            tw.set_num_threads(count)
            np.testing.assert_array_equal(function(a, b), expected)
    finally:
        tw.set_num_threads(before)


def test_subnormal_numbers_are_kept() -> None:
    """XLA flushes them to zero in its own threads; ours may not depend on the thread."""
    a, b = np.full((4, 64), 1e-40, np.float32), np.full((64, 4), 0.5, np.float32)
    np.testing.assert_array_equal(jax.jit(twj.matmul)(a, b), tw.matmul(a, b))
    assert float(np.asarray(jax.jit(twj.matmul)(a, b))[0, 0]) > 0
    found = jax.jit(lambda a, b: (twj.matmul(a, b), a * 0.5))(a, b)[1]
    assert np.array_equal(found, jax.jit(lambda a: a * 0.5)(a))  # the environment of XLA is as before


def test_donated_operands() -> None:
    a, b = normal(64, 64), normal(64, 64, seed=1)
    expected = np.asarray(a) @ np.asarray(b)
    function = jax.jit(twj.matmul, donate_argnums=(0, 1))
    np.testing.assert_allclose(function(a, b), expected, rtol=1e-4, atol=1e-4)


def test_intermediate_results_are_in_memory_of_the_call() -> None:
    """Operands that a contraction must copy first."""
    a, b = normal(3, 40, 5, 41), normal(41, 5, 42, seed=1)
    found = jax.jit(lambda a, b: twj.einsum("aibj,jbk->aik", a, b))(a, b)
    np.testing.assert_allclose(found, np.einsum("aibj,jbk->aik", a, b), rtol=1e-4, atol=1e-4)


def test_a_program_is_prepared_again_after_its_limit() -> None:
    """As of small products, for which a kernel of their size is compiled when that is repaid."""
    a, b = jnp.ones((11, 7)), jnp.ones((7, 5))
    function = jax.jit(twj.matmul)
    function(a, b).block_until_ready()
    key, first = next(
        (key, one) for key, one in handler().programs.items() if one.problem.operands[0].shape == (11, 7)
    )
    first.words[ProgramField.LIMIT] = 2
    for calls in range(4):
        np.testing.assert_array_equal(function(a, b), np.full((11, 5), 7))
        assert (handler().programs[key] is first) == (calls < 2)


SHARDED = """
    import os
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
    import jax, numpy as np, tilewright.jax as twj
    from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
    mesh = jax.make_mesh((2,), ("x",), axis_types=(AxisType.Auto,))
    a, b = np.random.rand(8, 16).astype("f4"), np.random.rand(16, 6).astype("f4")
    q = np.random.rand(4, 2, 5, 8).astype("f4")

    def mapped(function, *specs):
        return jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=P("x"))

    product = mapped(twj.matmul, P("x"), P())
    assert np.allclose(jax.jit(product)(a, b), a @ b, atol=1e-5)
    to_a, to_b = jax.grad(lambda *both: product(*both).sum(), argnums=(0, 1))(a, b)
    assert np.allclose(to_a, np.ones((8, 6)) @ b.T, atol=1e-4)
    assert np.allclose(to_b, a.T @ np.ones((8, 6)), atol=1e-4)
    attend = lambda q: twj.attention(q, q, q)
    found = jax.grad(lambda q: (mapped(attend, P("x"))(q) ** 2).sum())(q)
    assert np.allclose(found, jax.grad(lambda q: (attend(q) ** 2).sum())(q), atol=1e-5)
    placed = jax.device_put(a, NamedSharding(mesh, P("x", None)))
    assert np.allclose(jax.jit(twj.matmul)(placed, b), a @ b, atol=1e-5)
"""


@exhaustive
def test_several_devices() -> None:
    command = [sys.executable, "-c", textwrap.dedent(SHARDED)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert found.returncode == 0, found.stderr
