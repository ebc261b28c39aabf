"""Epilogues in assembly: C is stored once, light steps in the tile's registers, functions in one loop."""

from __future__ import annotations

import re
from functools import cache

import pytest
from uncompiled import uncompiled

import tilewright as tw

#: A register tile of 12 rows of two vectors.
ROWS, VECTORS = 12, 2
STORE = re.compile(r"^\s*vmovup[sd]\s+%zmm\d+, [^%]*\(%r(?!sp|bp)", re.MULTILINE)
SPILL = re.compile(r"%zmm\d+, -?\d*\(%r[sb]p\)")


@cache
def functions(epilogue: str) -> dict[str, str]:
    """The functions of a kernel for znver5, by name."""
    kernel = uncompiled(tw.Gemm(epilogue=epilogue, strategy="packing"), "znver5")
    parts = re.split(r"^([A-Za-z]\w*):[^\n]*\n", kernel.assembly, flags=re.MULTILINE)
    return {name: text.split(".cfi_endproc")[0] for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def whole_tile(epilogue: str) -> str:
    """The function of a whole tile that takes its steps in registers."""
    (tile,) = (text for name, text in functions(epilogue).items() if re.match(r"tile_.*_with_.*_12$", name))
    return tile


@pytest.mark.parametrize("epilogue", ["bias,relu", "bias:row,scale,clamp:0:6", "residual,bias"])
def test_light_steps_are_between_sums_and_one_store(epilogue: str) -> None:
    assert len(STORE.findall(whole_tile(epilogue))) == ROWS * VECTORS


def test_bias_and_relu_fit_beside_the_accumulators() -> None:
    """The stack has totals of chains alone: one store for each vector of the tile."""
    assert len(SPILL.findall(whole_tile("bias,relu"))) == ROWS * VECTORS


@pytest.mark.parametrize("epilogue", ["bias,gelu", "silu", "sigmoid,residual"])
def test_functions_are_written_for_a_vector_and_for_a_masked_one(epilogue: str) -> None:
    """On the accumulators of every tile they would be a hundred times in the kernel."""
    divisions = {name: text.count("vdivps") for name, text in functions(epilogue).items()}
    assert {name: count for name, count in divisions.items() if count} == {
        name: 2 for name in divisions if name.startswith("epilogue_")
    }


def test_a_kernel_without_steps_has_no_code_for_them() -> None:
    assert not any("_with_" in name.partition("_auto")[0] or "epilogue" in name for name in functions(""))
