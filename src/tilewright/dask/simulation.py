"""An event simulation of a product on a grid of workers, whose links and cores work at the same time.

Each worker computes the steps of its tile and asks for the pieces of later steps ahead of time. Neighbours
begin with different steps, as in Cannon's algorithm: then workers of a row do not all ask at once the one
that has a piece. A piece comes from any worker that has it by then and is not sending; a worker sends one
piece and receives one piece at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

from tilewright.records import dataclass

#: Steps ahead of the one that is computed, whose pieces are asked for.
AHEAD = 2
#: Seconds before the first byte of a piece arrives: a request to a worker of Dask and its answer.
LATENCY = 1e-3


@dataclass(frozen=True)
class GridProduct:
    """A product as a grid of workers computes it.

    Attributes
    ----------
    rows, columns, replicas : the grid.
    steps : pieces of k that each layer sums over.
    a_bytes, b_bytes : a step's pieces for one worker, of its rows of A and its columns of B.
    tile_bytes : one worker's tile of the result.
    step_seconds : what a step takes to compute.
    gbits : speed of each worker's link, in each direction.
    """

    rows: int
    columns: int
    replicas: int
    steps: int
    a_bytes: float
    b_bytes: float
    tile_bytes: float
    step_seconds: float
    gbits: float

    def transfer_seconds(self, nbytes: float) -> float:
        """How long a link is busy with so many bytes."""
        return nbytes * 8 / (self.gbits * 1e9)


class Simulation(NamedTuple):
    """What a simulation found.

    Attributes
    ----------
    seconds : until the last worker has finished.
    compute_seconds : what one worker computes.
    bytes_moved : between workers.
    efficiency : the share of the time in which cores compute.
    """

    seconds: float
    compute_seconds: float
    bytes_moved: float
    efficiency: float


class _Piece(NamedTuple):
    """A piece of an operand: its layer and place along the grid, and its place along k."""

    operand: str
    layer: int
    place: int
    step: int


class _Request(NamedTuple):
    """A piece that a worker waits for: for which of its steps, and how many bytes."""

    step: int
    piece: _Piece
    nbytes: float


class _Workers:
    """Links and cores of all workers; a link that can be used is used."""

    def __init__(self, product: GridProduct) -> None:
        self.product = product
        total = product.rows * product.columns * product.replicas
        self.receiving, self.sending, self.computing = [False] * total, [False] * total, [False] * total
        self.asked, self.done = [0] * total, [0] * total
        self.arrived = [[0] * product.steps for _ in range(total)]
        self.pending: list[list[_Request]] = [[] for _ in range(total)]
        self.holders: dict[_Piece, list[int]] = {}
        self.waiting: dict[_Piece, dict[int, _Request]] = {}
        self.offers: list[dict[_Piece, None]] = [{} for _ in range(total)]  # pieces that others wait for
        self.bytes_moved = 0.0
        self.events: list[tuple[float, int, Callable[[float], None]]] = []
        self._numbers = count()

    def at(self, when: float, event: Callable[[float], None]) -> None:
        """Something happens at a time."""
        heappush(self.events, (when, next(self._numbers), event))

    def _pieces(self, worker: int, step: int) -> tuple[tuple[_Piece, int, float], ...]:
        """The pieces of a worker's step, with their first owner and bytes."""
        one = self.product
        layer, place = divmod(worker, one.rows * one.columns)
        row, column = divmod(place, one.columns)
        step = (step + row + column) % one.steps
        base = layer * one.rows * one.columns
        owner_a = base + row * one.columns + step % one.columns
        owner_b = base + (step % one.rows) * one.columns + column
        return (
            (_Piece("a", layer, row, step), owner_a, one.a_bytes),
            (_Piece("b", layer, column, step), owner_b, one.b_bytes),
        )

    def ask(self, worker: int, now: float) -> None:
        """Ask for the pieces of the next steps."""
        while self.asked[worker] < min(self.done[worker] + AHEAD + 1, self.product.steps):
            step = self.asked[worker]
            self.asked[worker] += 1
            for piece, owner, nbytes in self._pieces(worker, step):
                if owner == worker:
                    self.arrived[worker][step] += 1
                    continue
                request = _Request(step, piece, nbytes)
                self.pending[worker].append(request)
                self.waiting.setdefault(piece, {})[worker] = request
                for holder in self.holders.setdefault(piece, [owner]):
                    self.offers[holder][piece] = None
        self._receive(worker, now)

    def _receive(self, worker: int, now: float) -> None:
        """Begin with the first piece that a worker waits for and that a holder can send."""
        if self.receiving[worker]:
            return
        for request in self.pending[worker]:
            source = next((one for one in self.holders[request.piece] if not self.sending[one]), None)
            if source is not None:
                self._transfer(source, worker, request, now)
                return

    def _send(self, worker: int, now: float) -> None:
        """Begin with a piece that a worker has and that another one waits for; the most urgent step first."""
        if self.sending[worker]:
            return
        best: tuple[int, int] | None = None
        for piece in list(self.offers[worker]):
            if not self.waiting[piece]:
                del self.offers[worker][piece]
            for target, request in self.waiting[piece].items():
                urgency = request.step - self.done[target]
                if not self.receiving[target] and (best is None or urgency < best[0]):
                    best, chosen = (urgency, target), request
        if best is not None:
            self._transfer(worker, best[1], chosen, now)

    def _transfer(self, source: int, target: int, request: _Request, now: float) -> None:
        """Occupy both links, and release them at the end."""
        self.sending[source] = self.receiving[target] = True
        self.pending[target].remove(request)
        del self.waiting[request.piece][target]
        self.bytes_moved += request.nbytes

        def end(then: float) -> None:
            self.sending[source] = self.receiving[target] = False
            self.holders[request.piece].append(target)
            if self.waiting[request.piece]:
                self.offers[target][request.piece] = None
            self.at(then + LATENCY, arrive)
            self._send(source, then)
            self._send(target, then)
            self._receive(target, then)

        def arrive(then: float) -> None:
            self.arrived[target][request.step] += 1
            self.compute(target, then)

        self.at(now + self.product.transfer_seconds(request.nbytes), end)

    def compute(self, worker: int, now: float) -> None:
        """Start the next step if its pieces are there."""
        step = self.done[worker]
        if self.computing[worker] or step == self.product.steps or self.arrived[worker][step] < len("ab"):
            return
        self.computing[worker] = True

        def finish(then: float) -> None:
            self.computing[worker] = False
            self.done[worker] += 1
            self.ask(worker, then)
            self.compute(worker, then)

        self.at(now + self.product.step_seconds, finish)


def simulate_grid(product: GridProduct) -> Simulation:
    """How long a product takes.

    Examples
    --------
    >>> one = GridProduct(1, 1, 1, 4, a_bytes=8, b_bytes=8, tile_bytes=8, step_seconds=0.5, gbits=10)
    >>> simulate_grid(one)
    Simulation(seconds=2.0, compute_seconds=2.0, bytes_moved=0.0, efficiency=1.0)
    """
    workers = _Workers(product)
    total = len(workers.done)
    for worker in range(total):
        workers.ask(worker, 0.0)
    for worker in range(total):
        workers.compute(worker, 0.0)
    now = 0.0
    while workers.events:
        now, _, event = heappop(workers.events)
        event(now)
    assert all(done == product.steps for done in workers.done)
    merged = product.tile_bytes * (product.replicas - 1) / product.replicas  # a worker adds up its share
    if merged:
        now += product.transfer_seconds(merged) + LATENCY
    moved = workers.bytes_moved + merged * total
    computed = product.step_seconds * product.steps
    return Simulation(now, computed, moved, computed / now)
