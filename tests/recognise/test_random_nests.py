"""Loop nests drawn at random compute the same when those that are products are replaced."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from shares import EVERY_TEST_RUNS

from recognise.batches import PLAIN, Setting, SharedKernels, compiled
from recognise.random_nests import WEIGHTS, source
from recognise.toolchains import CLANG
from tilewright.loops.splice.threads import ThreadSource

#: Settings of a source: as users have them, with every nest replaced, and with threads for each.
AS_USERS_HAVE_THEM, EVERY_NEST = Setting(PLAIN, small=False, finished=True), Setting(PLAIN)
WITH_THREADS = Setting(PLAIN, threads=ThreadSource.OWN)
#: Weights of functions of several statements alone, and of work behind sums.
STATEMENTS, FINISHED = (0, 0, 0, 0, 0, 1, 0), (0, 0, 0, 0, 0, 0, 1)


@pytest.mark.skipif(CLANG.program is None, reason="clang is not installed")
@pytest.mark.parametrize(
    ("seed", "setting", "weights"),
    [(1, AS_USERS_HAVE_THEM, WEIGHTS), (4, EVERY_NEST, STATEMENTS), (86, WITH_THREADS, FINISHED)],
    ids=["nests", "statements", "finished"],
)
def test_random_nests(seed: int, setting: Setting, weights: tuple[int, ...], tmp_path: Path) -> None:
    if setting.has_threads and not sys.platform.startswith("linux"):
        pytest.skip("threads of programs are Linux's")
    nests = 32 if EVERY_TEST_RUNS else 8
    batch = compiled(source(seed, nests, weights), setting, tmp_path, SharedKernels(tmp_path / "kernels"))
    assert [line for number in range(len(batch.calls)) for line in batch.wrong(number, seed)] == []
    if weights is FINISHED:
        assert any(" then " in what for what in batch.became)
    if weights is not STATEMENTS:
        replaced = sum(count for what, count in batch.became.items() if "->" in what)
        # Of the work behind sums half has conditions that no epilogue has: these nests are refused.
        assert replaced >= nests // (3 if weights is FINISHED else 2)


#: Drawn once: clang's -O1 keeps t[i] in a register, and stores it before it reads the next t[j].
ELEMENT_OF_ITS_OWN_SUM = """
#include <stdint.h>
// own_sum0(u32 t[70], u32 c[5250], u32 a[5250], u32 b[5250], int n, int k) any
void own_sum0(uint32_t *t, uint32_t *c, uint32_t *a, uint32_t *b, int n, int k) {
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) t[i] += a[i * 70 + j] * t[j];
        for (int j = 0; j < n; j++)
            for (int p = 0; p < k; p++) c[i * 70 + j] += a[i * 70 + p] * b[j * 70 + p];
    }
}
"""


@pytest.mark.skipif(CLANG.program is None, reason="clang is not installed")
def test_a_sum_reads_the_element_that_it_is_added_to(tmp_path: Path) -> None:
    setting = Setting(("-O1",))
    batch = compiled(ELEMENT_OF_ITS_OWN_SUM, setting, tmp_path, SharedKernels(tmp_path / "kernels"))
    assert list(batch.became) == ["own_sum: mk,kn->mn"]
    assert batch.wrong(0, 19) == []
