"""The steps of a call: each is a tile that runs, and together they touch what the call must touch."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler.example import View
from tilewright.compiler.matrix_example import example_of
from tilewright.compiler.operation import Problem
from tilewright.spec.arguments import unchecked
from tilewright.tools.explore.page.walk import MOST_STEPS, CallSteps, rectangles, rectangles_of, walk_of


def walk(problem: Problem, target: str = "znver4", **sizes: int) -> tuple[CallSteps, dict[str, View]]:
    kernel = tw.compile(problem, target)
    example = example_of(kernel, sizes)
    return walk_of(kernel.nest, example), dict(example.views)


def touched(found: CallSteps, views: dict[str, View], buffer: str, roles: tuple[str, ...] = ()) -> np.ndarray:
    """How often each cell of a buffer's picture is touched."""
    cells = np.zeros((views[buffer].rows, views[buffer].columns), int)
    for step in found.steps:
        for touch in step.touches:
            if touch.buffer == buffer and (not roles or touch.role in roles):
                for row, column, rows, columns in touch.parts:
                    assert row + rows <= cells.shape[0]
                    assert column + columns <= cells.shape[1]
                    cells[row : row + rows, column : column + columns] += 1
    return cells


@pytest.mark.parametrize("layouts", ["row row row", "col row row", "row col col", "col col row"])
def test_tiles_of_a_product_cover_c_once_and_read_all_of_a_and_b(layouts: str) -> None:
    a, b, c = map(unchecked, layouts.split())
    found, views = walk(tw.Gemm(61, 150, 37, a=a, b=b, c=c))
    assert (touched(found, views, "c", ("C",)) == 1).all()
    for name in "ab":
        assert touched(found, views, name).all()
    assert found.multiply_adds == 61 * 150 * 37


def test_several_blocks_of_depths_visit_c_once_each() -> None:
    found, views = walk(tw.Gemm(24, 64, 1100))  # of 512 depths on this machine
    assert (touched(found, views, "c", ("C",)) == 3).all()


def test_attention_reads_every_key_and_causal_attention_skips_tiles() -> None:
    full, views = walk(tw.Attention(64), queries=200, keys=300)
    assert touched(full, views, "k").all()
    assert touched(full, views, "out").all()
    causal, _ = walk(tw.Attention(64, bounded=True), queries=300, keys=300)
    whole, _ = walk(tw.Attention(64), queries=300, keys=300)
    assert causal.count < 0.8 * whole.count


def test_a_contraction_by_tables_writes_every_element() -> None:
    problem = tw.einsum_contraction("acbd,dfce->abef", (10, 12, 8, 20), (20, 40, 12, 16))
    found, views = walk(problem)
    assert "pack table" in found.words.values()
    assert (touched(found, views, "out") == 1).all()
    for name in ("in0", "in1"):
        assert touched(found, views, name).all()


def test_a_long_call_is_counted_and_its_first_steps_are_kept() -> None:
    found, _ = walk(tw.Gemm(3000, 640, 8))
    assert found.count > len(found.steps) == MOST_STEPS
    assert found.whole


def test_places_of_loops_are_those_of_the_tile() -> None:
    found, _ = walk(tw.Gemm(24, 64, 16))
    rows = [
        dict(step.axes)["i"] for step in found.steps if found.words[step.statement].startswith("multiply")
    ]
    assert rows == sorted(rows)
    assert len(rows) == len(set(rows))


@pytest.mark.parametrize("view", [View(6, 10, 10, 1), View(6, 10, 1, 6)])
def test_rectangles_are_the_cells_of_a_window(view: View) -> None:
    random = np.random.default_rng(0)
    for _ in range(200):
        shape = tuple(random.integers(1, 4, 2))
        strides = tuple(random.choice([1, 2, 3, 6, 10, 12], 2))
        reach = sum((count - 1) * stride for count, stride in zip(shape, strides, strict=True))
        if reach >= 60:
            continue
        offset = int(random.integers(0, 60 - reach))
        i, p = np.ogrid[: shape[0], : shape[1]]
        wanted = set((offset + i * strides[0] + p * strides[1]).ravel().tolist())
        parts = rectangles(view, offset, (int(strides[0]), int(strides[1])), (int(shape[0]), int(shape[1])))
        cells = {
            (row + r) * view.row_stride + (column + c) * view.column_stride
            for row, column, rows, columns in parts
            for r in range(rows)
            for c in range(columns)
        }
        assert cells == wanted


def test_many_runs_of_a_row_become_one() -> None:
    view = View(2, 100, 100, 1)
    assert rectangles_of(view, np.arange(0, 100, 2)) == ((0, 0, 1, 99),)
