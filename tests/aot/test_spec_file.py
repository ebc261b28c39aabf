"""Lists of kernels: what is read of them, and every mistake with its message."""

from __future__ import annotations

from pathlib import Path

import pytest
from shares import looped

import tilewright as tw
from tilewright.aot.spec_file import parse_spec, read_spec
from tilewright.errors import InvalidSpec, SpecUnreadable

SPEC = """
library = "blas"

[[kernel]]
problem = "gemm"
dtype = "f64"
m = 64
a = "col"
strategy = "packing"

[[kernel]]
problem = "brgemm"
name = "small"
m = 4
n = 5
k = 6
count = 7
beta = 0
batch = "address"

[[kernel]]
problem = "unary"
op = "gelu"
b = "row"
"""


def test_problems_and_names() -> None:
    spec = parse_spec(SPEC)
    assert spec.library == "blas"
    assert {entry.name: entry.problem for entry in spec.entries} == {
        "gemm_f64_64xnxk_crr_packing": tw.Gemm(64, dtype="f64", a="col", strategy="packing"),
        "small": tw.BatchReduceGemm(4, 5, 6, 7, beta=0, batch="address"),
        "unary_gelu_f32_mxn_cr": tw.Unary("gelu", b="row"),
    }


def test_a_kernel_with_an_epilogue() -> None:
    (entry,) = parse_spec(f'{GEMM}epilogue = "bias,gelu"').entries
    assert entry.problem == tw.Gemm(epilogue="bias,gelu")
    assert entry.name == "gemm_f32_mxnxk_rrr_with_bias_then_gelu_auto"


def test_the_library_has_a_name() -> None:
    assert parse_spec(SPEC.replace('library = "blas"', "")).library == "tilewright"


GEMM = '[[kernel]]\nproblem = "gemm"\n'
UNARY = '[[kernel]]\nproblem = "unary"\nop = "relu"\n'

MISTAKES = {
    # what stands around the kernels
    "": ("at its end", "no kernels", "[[kernel]]"),
    "kernel = 3": ("at its end", "no kernels"),
    "kernel = [3]": ("at its end", "no kernels"),
    "kernels = 3": ("in front of the kernels", "'kernels'", "library, prefix, kernel"),
    f'library = "a b"\n{GEMM}': ("in front of the kernels", "library is 'a b'", "C name"),
    # the problem
    "[[kernel]]\nm = 3": ("kernel 1", "problem is missing", "gemm, packed_gemm, brgemm, unary"),
    '[[kernel]]\nproblem = "gem"': ("kernel 1", "problem is 'gem'", "gemm, packed_gemm, brgemm, unary"),
    "[[kernel]]\nproblem = [1]": ("kernel 1", "problem is [1]", "gemm, packed_gemm, brgemm, unary"),
    # its keys
    f"{GEMM}mm = 3": ("kernel 1", "'mm' is unknown", "problem, name, m, n, k, dtype, a, b, c"),
    f"{UNARY}{GEMM}op = 'relu'": ("kernel 2", "'op' is unknown", "allowed for gemm"),
    "[[kernel]]\nproblem = 'unary'": ("kernel 1", "'op' is missing", "unary needs it"),
    "[[kernel]]\nproblem = 'brgemm'\nm = 3\nn = 4": ("kernel 1", "'k' is missing"),
    # their values
    f"{GEMM}m = -1": ("kernel 1", "m is -1", "from 0 to 2**63 - 1"),
    f"{GEMM}m = true": ("kernel 1", "m is true", "must be a number"),
    f"{GEMM}m = 1.5": ("kernel 1", "m is 1.5", "must be an integer"),
    f"{GEMM}m = [1]": ("kernel 1", "m is [1]", "must be an integer"),
    f"{GEMM}m = '64'": ("kernel 1", "m is '64'", "an integer"),
    f"{GEMM}dtype = 'f37'": ("kernel 1", "f37", "f32, f64"),
    f"{GEMM}epilogue = 'bias,elu'": ("kernel 1", "'elu'", "gelu_tanh"),
    f"{GEMM}a = 'diagonal'": ("kernel 1", "a is 'diagonal'", "row, col, strided"),
    f"{UNARY}b = 3": ("kernel 1", "b is 3", "row, col"),
    # names
    f"{GEMM}name = 'a-b'": ("kernel 1", "name is 'a-b'", "C name"),
    f"{GEMM}name = 'a__b'": ("kernel 1", "name is 'a__b'", "C name"),
    f"{GEMM}name = 'class'": ("kernel 1", "name is 'class'", "C++"),
    f"{GEMM}name = 'choose'": ("kernel 1", "name is 'choose'", "resolver"),
    f"{GEMM}name = 3": ("kernel 1", "name is 3", "C name"),
    f"{GEMM}{GEMM}": ("kernel 2", "'gemm_f32_mxnxk_rrr_auto'", "kernel 1's"),
    f"{GEMM}name='f'\n{GEMM}name='F'": ("kernel 2", "F_SCRATCH_BYTES is kernel 1's"),
    f"{GEMM}name='f'\n{GEMM}name='f_function'": ("kernel 2", "f_function is kernel 1's"),
    f"{GEMM}name='tilewright_variant'": ("kernel 1", "tilewright_variant is the library's"),
}


@looped(("text", "words"), MISTAKES.items())
def test_a_mistake_is_named(text: str, words: tuple[str, ...]) -> None:
    with pytest.raises(InvalidSpec) as caught:
        parse_spec(text, "kernels.toml")
    message = str(caught.value)
    assert message.startswith(f"kernels.toml, {words[0]}: ")
    for word in words[1:]:
        assert word in message


def test_no_toml(tmp_path: Path) -> None:
    with pytest.raises(SpecUnreadable, match=r"it is not TOML: .*line 2"):
        parse_spec("m = 1\nn = x")
    with pytest.raises(SpecUnreadable, match=r"absent\.toml: No such file"):
        read_spec(tmp_path / "absent.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    with pytest.raises(SpecUnreadable, match="utf-8"):
        read_spec(tmp_path / "bytes.toml")


def test_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(SPEC, encoding="utf-8")
    assert read_spec(tmp_path / "spec.toml") == parse_spec(SPEC)


@pytest.mark.parametrize(
    ("path", "reason"), [("/dev/zero", "a device"), ("/", "a directory"), ("a\0", "null")]
)
def test_what_is_no_file_is_not_read(path: str, reason: str) -> None:
    with pytest.raises(SpecUnreadable, match=reason):
        read_spec(Path(path))
