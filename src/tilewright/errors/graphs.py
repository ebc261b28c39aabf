"""Errors of graphs: building, compiling, running and loading them."""

from __future__ import annotations

from tilewright.errors.base import TilewrightError


class GraphShape(TilewrightError, ValueError):
    """Operands of a node have shapes that do not fit, or an axis that does not exist."""

    message = "graph node {node}: {reason}"


class GraphDtype(TilewrightError, TypeError):
    """A node has an operand of an element type that it does not take."""

    message = "graph node {node}: operand {operand} has dtype {found}, must be {required}"


class GraphOperand(TilewrightError, TypeError):
    """An operand of a node is neither a value of its graph nor an array."""

    message = "graph node {node}: operand {operand} is {found}, must be a value of this graph or an array"


class GraphInput(TilewrightError, ValueError):
    """A graph is called with inputs that do not fit its declaration."""

    message = "graph input {name}: {reason}"


class GraphInputs(TilewrightError, TypeError):
    """A graph is called with missing or unexpected inputs."""

    message = "the graph takes the inputs {known}; {reason}"


class GraphWithoutOutput(TilewrightError, ValueError):
    """A graph is compiled before `Graph.output` has named a result."""

    message = "the graph has no output: call g.output(value) before g.compile()"


class GraphFileNotFound(TilewrightError, OSError):
    """The file of a graph cannot be read."""

    message = "{path}: {reason}"


class GraphFileDamaged(TilewrightError, ValueError):
    """A file is no graph, or it was altered or cut off."""

    message = "{path} is not a whole graph: {reason}; save it again"


class GraphFileVersion(TilewrightError, ValueError):
    """The file of a graph was written by another version of this package."""

    message = (
        "{path} has the format version {found}, must be {required}: save the graph again by this version"
    )


class GraphNotWritable(TilewrightError, OSError):
    """A graph cannot be written to a file."""

    message = "{path} cannot be written: {reason}"


class UnknownSize(TilewrightError, KeyError):
    """A size of a graph follows from no input."""

    message = "size {name!r} follows from no input of the graph; known sizes: {known}"

    def __str__(self) -> str:
        return self.args[0] if self.args else ""
