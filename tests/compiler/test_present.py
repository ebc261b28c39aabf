"""Kernels shown to a person: what the lines say, and that the HTML is whole, escaped and self-contained."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler import kernel as kernel_module
from tilewright.notebook import SHOWN_LINES

PROBLEM = tw.BatchReduceGemm(16, 6, 64)

LINES = """\
tilewright.Kernel brgemm_f32_16x6x64x1_ccc_neon
  problem    BatchReduceGemm m=16 n=6 k=64 count=1 dtype=f32 a=col b=col c=col beta=1 batch=stride
  target     neoverse-v2 (neon), runs elsewhere
  cover      1 x 6 across vectors, 1 x 16 along them
  flops      12,288
  bytes      6,400
  intensity  1.92 flops/byte"""


@pytest.mark.skipif(tw.machine().arch == "aarch64", reason="the target may run here")
def test_lines() -> None:
    kernel = tw.compile(PROBLEM, "neoverse-v2")
    assert repr(kernel) == LINES
    assert kernel.registers.used == 32
    counted = LINES.replace("  flops ", "  registers  32 used, 0 spilled\n  flops ")
    assert repr(kernel) == counted, "registers are shown once they are counted"


def test_open_sizes() -> None:
    kernel = tw.compile(tw.Gemm(k=5))
    lines = repr(kernel).splitlines()
    assert lines[0] == f"tilewright.Kernel {kernel.name}"
    assert "m=any n=any k=5" in lines[1]
    assert [line.split()[0] for line in lines[1:]] == ["problem", "target", "blocking"]
    assert tw.machine().cpu in lines[2]
    assert "elsewhere" not in lines[2]
    assert f"mr={kernel.blocking.mr} nr={kernel.blocking.nr}" in lines[3]


def test_values_are_aligned() -> None:
    _, *lines = repr(tw.compile(PROBLEM)).splitlines()
    assert len({re.match(r"  \w+ +", line).end() for line in lines}) == 1  # type: ignore[union-attr]


def test_a_product_without_elements() -> None:
    kernel = tw.compile(tw.Gemm(0, 0, 0))
    assert (kernel.flops, kernel.bytes) == (0, 0)
    assert "intensity" not in repr(kernel)


def test_repr_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = tw.compile(PROBLEM)

    def refused(*arguments: object, **keywords: object) -> None:
        raise AssertionError("repr compiles")

    for name in ("_run_stages", "emit_assembly", "Linked"):
        monkeypatch.setattr(kernel_module, name, refused)
    assert "flops" in repr(kernel)
    assert "assembly" not in kernel.__dict__


class Reader(HTMLParser):
    """Collects tags, attributes and the text inside each kind of tag; nesting must be right."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.texts: dict[str, list[str]] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts[self.open[-1]][-1] += data


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    return reader


def test_html() -> None:
    kernel = tw.compile(PROBLEM)
    reader = read(kernel._repr_html_())
    assert set(reader.tags) == {"div", "code", "table", "tr", "th", "td", "details", "summary", "pre"}
    assert {name for name, _ in reader.attributes} == {"scope", "style"}
    assert reader.texts["code"] == [kernel.name]
    facts = dict(zip(reader.texts["th"], reader.texts["td"], strict=True))
    assert facts["flops"] == "12,288"
    assert facts["registers"] == f"{kernel.registers.used} used, {kernel.registers.spilled} spilled"
    assert set(facts) == {"problem", "target", "cover", "registers", "flops", "bytes", "intensity"}
    names = [text.split(",")[0] for text in reader.texts["summary"]]
    assert names == ["tile_ir", "llvm_ir", "assembly"]
    for name, text in zip(names, reader.texts["pre"], strict=True):
        expected = getattr(kernel, name)
        assert len(expected.splitlines()) <= SHOWN_LINES
        assert text.rstrip() == expected.rstrip()
    assert "<16 x float>" in reader.texts["pre"][1] or "x float>" in reader.texts["pre"][1]


def test_html_fits_light_and_dark_pages() -> None:
    """No colour but the page's own and a transparent grey; nothing is loaded."""
    html = tw.compile(PROBLEM)._repr_html_()
    styles = [value for name, value in read(html).attributes if name == "style"]
    colours = re.findall(
        r"(?:color|background)\s*:\s*([^;]+)|(rgba?\([^)]*\)|#[0-9a-f]+)", " ; ".join(styles)
    )
    assert {first.strip() or second for first, second in colours} == {
        "inherit",
        "transparent",
        "rgba(128, 128, 128, 0.4)",
    }
    assert not re.search(r"url\(|@import|https?:", " ".join(styles))


def test_long_texts_are_cut() -> None:
    kernel = tw.compile(tw.Gemm())
    reader = read(kernel._repr_html_())
    lines = kernel.llvm_ir.splitlines()
    assert len(lines) > SHOWN_LINES
    assert reader.texts["pre"][1].splitlines() == lines[:SHOWN_LINES]
    summary = reader.texts["summary"][1]
    assert f"{len(lines)} lines" in summary
    assert "print(kernel.llvm_ir)" in summary


def test_bytes() -> None:
    """Each operand once: the arrays' own sizes."""
    a, b, c = np.zeros((3, 5, 7), np.float32), np.zeros((3, 7, 9), np.float32), np.zeros((5, 9), np.float32)
    read_once = a.nbytes + b.nbytes + c.nbytes
    assert tw.compile(tw.BatchReduceGemm(5, 9, 7, 3, beta=0)).bytes == read_once
    assert tw.compile(tw.BatchReduceGemm(5, 9, 7, 3)).bytes == read_once + c.nbytes
    assert tw.compile(tw.Gemm(5, 9, 7)).bytes == read_once - 2 * (a[0].nbytes + b[0].nbytes)
    assert tw.compile(tw.Gemm(5, 9)).bytes is None


def test_what_a_problem_does_not_have_is_left_out() -> None:
    text = repr(tw.compile(tw.Attention(64, bounded=True), "haswell"))
    assert "head_dim=64 value_dim=64 dtype=f32 bounded=True schedule=blocks" in text
