"""Functions of single elements declared: their cut, nest, kernel names and C parameters."""

from tilewright.compiler.kernel import Kernel
from tilewright.compiler.operation import Op
from tilewright.ops.elementwise.nest import build_elementwise, choose_elements
from tilewright.ops.elementwise.problem import Elementwise
from tilewright.ops.rows.op import APART, IN_PLACE, line_meaning

ELEMENT_STRATEGY = "element by element, in whole vectors"

ELEMENTWISE = Op(
    problem=Elementwise,
    cut=choose_elements,
    nest=lambda problem, cut, _, name: build_elementwise(problem, cut, name),
    stem=lambda problem: f"each_{problem.op.value}_{problem.dtype}{f'_{problem.y_dtype}' * problem.converts}",
    kernel=Kernel,
    formula=lambda problem: (
        f"y = {problem.op.value} of every element of x; a team's tasks are some rows each, or parts of rows."
    ),
    overlap=lambda problem: APART if problem.converts else IN_PLACE,
    meaning=line_meaning,
    written=lambda _: ("y",),
    strategy=lambda _: ELEMENT_STRATEGY,
)
