"""The passes, in their order; `Graph.compile` runs them all."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from tilewright.graph.calibration import Statistics
from tilewright.graph.network import Network
from tilewright.graph.passes.common import merge_common
from tilewright.graph.passes.fold_constants import fold_constants
from tilewright.graph.passes.fuse_epilogues import fuse_epilogues, linear_products
from tilewright.graph.passes.merge_linears import merge_linears
from tilewright.graph.passes.pack_weights import PRECISIONS, pack_weights
from tilewright.graph.passes.recognise_attention import recognise_attention, tokens_first
from tilewright.graph.passes.recognise_functions import fuse_norm_weights, recognise_functions
from tilewright.graph.passes.recognise_gates import recognise_gates
from tilewright.graph.passes.simplify import simplify
from tilewright.spec.arguments import check_word


class Pass(NamedTuple):
    """A pass under its name."""

    name: str
    run: Callable[[Network], Network]


def passes(precision: str, statistics_of: Callable[[Network], Statistics] | None = None) -> tuple[Pass, ...]:
    """The passes for a precision of weights, and statistics of inputs where there are samples.

    Raises
    ------
    InvalidChoice : a precision that is none.
    """
    precision = check_word(precision, "precision", PRECISIONS)
    return (
        Pass("fold-constants", fold_constants),
        Pass("common", merge_common),
        Pass("simplify", simplify),
        Pass("functions", recognise_functions),
        Pass("gates", recognise_gates),
        Pass("norm-weights", fuse_norm_weights),
        Pass("attention", recognise_attention),
        Pass("tokens-first", tokens_first),
        Pass("views", simplify),
        Pass("linear-products", linear_products),
        Pass("epilogues", fuse_epilogues),
        Pass("merge-linears", merge_linears),
        Pass("common-again", merge_common),
        Pass("pack-weights", partial(pack_weights, precision=precision, statistics_of=statistics_of)),
    )


def run_passes(
    network: Network, precision: str, statistics_of: Callable[[Network], Statistics] | None = None
) -> Network:
    """The network after all passes."""
    for one in passes(precision, statistics_of):
        network = one.run(network)
    return network
