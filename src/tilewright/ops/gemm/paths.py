"""The paths of a product of any size: which one a kernel takes, and what each is predicted to cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tilewright.compiler.alternatives import PredictedPath, unmet
from tilewright.compiler.explanation import Considered, compared
from tilewright.ir.interpret import Interpreter
from tilewright.machine.machine import Machine
from tilewright.macro.levels import Cycles
from tilewright.macro.prediction import CutProduct, Path, Product
from tilewright.ops.gemm.cache_blocks import depth_lets
from tilewright.ops.gemm.cut import cut_gemm
from tilewright.ops.gemm.nest import PathChoice, gemm_nest, limits_of, paths_of
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.gemm.product_nest import Nest
from tilewright.ops.gemm.wide_tiles import WideTiles
from tilewright.records import dataclass
from tilewright.spec.problem import PRODUCT_SIZES, Strategy

#: Alpha and beta of a plain product.
_FACTORS = {"alpha": 1.0, "beta": 0.0}


@dataclass(frozen=True)
class GemmPaths:
    """The paths of one problem on one machine.

    Sizes and strides of the methods are those of the problem; where C is column-major, they are exchanged as
    the nest does.
    """

    nest: Nest
    choices: tuple[PathChoice, ...]
    cut: CutProduct
    wide: WideTiles | None

    @classmethod
    def of(cls, problem: Gemm, machine: Machine) -> GemmPaths:
        """The paths of a problem with strategy auto and no packed operand.

        Examples
        --------
        >>> from tilewright.machine.catalog import find_machine
        >>> paths = GemmPaths.of(Gemm(dtype="f32"), find_machine("znver4"))
        >>> paths.chosen(Product.contiguous(100, 100, 100)).name
        'IN_PLACE'
        >>> paths.chosen(Product.contiguous(1000, 1000, 1000)).name
        'STRIPS'
        """
        blocking = cut_gemm(problem, machine)
        nest = gemm_nest(problem, blocking, machine)
        limits = limits_of(nest, machine)
        choices = paths_of(nest, limits, machine)
        cut = CutProduct(
            machine,
            nest.instruction,
            blocking,
            nest.types.numbers,
            limits.strip,
            limits.strip_slice * nest.parts**2,
            limits.depths_of_strip,
        )
        return cls(nest, choices, cut, WideTiles.of(nest, machine))

    def _names(self, product: Product) -> dict[str, int]:
        """The values of all names that conditions mention."""
        names = dict(zip(PRODUCT_SIZES, product, strict=True))
        run = Interpreter({}, _FACTORS)
        for statement in depth_lets(self.nest):
            names[statement.name] = run.integer(statement.value, names)
        return names

    @property
    def all(self) -> tuple[Path, ...]:
        """Every path, in the order in which they are tried."""
        return tuple(choice.path for choice in self.choices)

    def possible(self, product: Product) -> tuple[Path, ...]:
        """The paths that can compute a product, whatever they cost."""
        names, run = self._names(product), Interpreter({}, _FACTORS)
        return tuple(
            choice.path
            for choice in self.choices
            if choice.possible is None or run.holds(choice.possible, names)
        )

    def chosen(self, product: Product) -> Path:
        """The path that the kernel takes."""
        return next(path for path, holds in self.decisions(product) if holds)

    def decisions(self, product: Product) -> Iterator[tuple[Path, bool]]:
        """Each path in the order in which it is tried, and whether its condition holds."""
        names, run = self._names(product), Interpreter({}, _FACTORS)
        for choice in self.choices:
            yield choice.path, choice.condition is None or run.holds(choice.condition, names)

    def predict(self, path: Path, product: Product) -> Cycles:
        """Predicted cycles of one path."""
        names, run = self._names(product), Interpreter({}, {})
        sizes = (getattr(self.nest.sizes, name) for name in Product._fields)
        computed = Product(*(run.integer(size, names) for size in sizes)).of_numbers(self.nest.parts)
        cut = self._cut_of(path, computed)
        if path is Path.IN_PLACE:
            cut = replace(cut, blocking=self.nest_in_place(product).blocking)
        return cut.predict(path, computed)

    def nest_in_place(self, product: Product) -> Nest:
        """The nest of the tile that reads both operands of a product in place.

        >>> from tilewright.machine.catalog import find_machine
        >>> paths = GemmPaths.of(Gemm(dtype="f32"), find_machine("sapphirerapids"))
        >>> [(tile.mr, tile.nr) for n in (32, 48, 64, 100)
        ...  if (tile := paths.nest_in_place(Product.contiguous(100, n, 100)).tile)]
        [(12, 32), (8, 48), (6, 64), (6, 64)]
        """
        names, run = self._names(product), Interpreter({}, _FACTORS)
        tiles = self.wide.in_place if self.wide else ()
        return next((one.nest for one in tiles if run.holds(one.condition, names)), self.nest)

    def _cut_of(self, path: Path, product: Product) -> CutProduct:
        """How a path cuts a product of the nest's sizes."""
        if self.wide is None:
            return self.cut
        strips = path is Path.STRIPS and product.n >= self.wide.columns * self.nest.parts
        once = path is Path.PACKED and self.cut.packs_once(product)
        if not (strips or once or path is Path.COPYING):
            return self.cut
        nest, limits = self.wide.nest, self.wide.limits
        return replace(
            self.cut,
            blocking=nest.blocking,
            strip=limits.strip,
            strip_slice=limits.strip_slice * nest.parts**2,
            depths_of_strip=limits.depths_of_strip,
        )

    def predicted(self, product: Product) -> tuple[PredictedPath, ...]:
        """Each path: the one that is taken first, then those that could be, fastest first as predicted."""
        names = self._names(product)
        possible = self.possible(product)
        predicted = {path: self.predict(path, product) for path in possible}
        chosen = self.chosen(product)
        ranked = sorted(predicted, key=lambda path: (path is not chosen, predicted[path].total))
        place = self.all.index(chosen)
        found = []
        for path in (*ranked, *(path for path in self.all if path not in predicted)):
            choice = self.choices[self.all.index(path)]
            if path not in predicted:
                assert choice.possible is not None
                reason = f"impossible: {unmet(choice.possible, names)}"
                found.append(
                    PredictedPath(path.name, path.value, {}, taken=False, possible=False, reason=reason)
                )
                continue
            cycles = predicted[path]
            if path is chosen:
                reason = "the first path whose condition holds" if place else "its condition holds"
                reason = reason if choice.condition is not None else "no other path's condition holds"
            else:
                earlier = self.all.index(path) < place
                assert choice.condition is not None or not earlier
                ranking = compared(cycles.total, predicted[chosen].total)
                why = unmet(choice.condition, names) if choice.condition is not None and earlier else ""
                reason = f"{why}; {ranking}" if why else f"tried after the one that is taken; {ranking}"
            parts = cycles._asdict()
            found.append(
                PredictedPath(path.name, path.value, parts, path is chosen, possible=True, reason=reason)
            )
        return tuple(found)


def product_paths(problem: Gemm, machine: Machine, sizes: tuple[int, ...]) -> tuple[PredictedPath, ...]:
    """`GemmPaths.predicted` of a problem and sizes; nothing where the problem leaves no choice."""
    if problem.strategy is not Strategy.AUTO or problem.packed or problem.weights:
        return ()
    return GemmPaths.of(problem, machine).predicted(Product(*sizes))


def considered_paths(problem: Gemm, machine: Machine, sizes: tuple[int, ...]) -> tuple[Considered, ...]:
    """The same as explanations have them."""
    return tuple(path.considered for path in product_paths(problem, machine, sizes))
