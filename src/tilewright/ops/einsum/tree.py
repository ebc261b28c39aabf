"""Contraction trees: which arrays are contracted, and the order of axes of every intermediate result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from tilewright.errors import (
    MalformedTree,
    TreeDimensionLost,
    TreeDimensionRepeated,
    TreeDimensionUnknown,
    TreeSize,
    TreeSizeMissing,
    shown,
)
from tilewright.ops.einsum.order import Path
from tilewright.records import dataclass
from tilewright.spec.arguments import MAX_SIZE, as_integer, check_items

#: The labels of dimensions with numbers, beyond all letters; a label is one character.
_FIRST_NUMBERED = 0x10000

#: Numbers that a dimension may have: one character each.
MOST_NUMBERS = 1_000_000


@dataclass(frozen=True)
class Leaf:
    """An operand.

    Attributes
    ----------
    labels : of its axes, a character each, in order.
    operand : its place among the operands.
    """

    labels: str
    operand: int


@dataclass(frozen=True)
class Pair:
    """Two arrays that meet: summed over the labels that the result lacks.

    Attributes
    ----------
    left, right : what meets.
    labels : of the result, in the order of its axes in memory.
    """

    left: Tree
    right: Tree
    labels: str

    @property
    def of_both(self) -> str:
        """All labels that take part, each once.

        >>> Pair(Leaf("ij", 0), Leaf("jk", 1), "ik").of_both
        'ijk'
        """
        return "".join(dict.fromkeys(self.left.labels + self.right.labels))


@dataclass(frozen=True)
class Permutation:
    """An array moved into another order of its axes.

    Attributes
    ----------
    child : the array.
    labels : of the result, in the order of its axes in memory.
    """

    child: Tree
    labels: str


Tree: TypeAlias = Leaf | Pair | Permutation


def label_of(number: int) -> str:
    """The label of the dimension with a number."""
    return chr(_FIRST_NUMBERED + number)


def name_of(label: str) -> str:
    """How a label is written: a number, or the character itself.

    >>> name_of(label_of(12)), name_of("i")
    ('12', 'i')
    """
    code = ord(label)
    return str(code - _FIRST_NUMBERED) if code >= _FIRST_NUMBERED else label


def names_of(labels: str) -> str:
    """Labels as text: letters as subscripts, numbers as a list.

    >>> names_of("ijk"), names_of(label_of(7) + label_of(12))
    ('ijk', '[7,12]')
    """
    numbered = any(ord(label) >= _FIRST_NUMBERED for label in labels)
    return f"[{','.join(map(name_of, labels))}]" if numbered else labels


def walk(tree: Tree) -> Iterator[Tree]:
    """All nodes, each behind what it is made of: the order in which they are computed.

    >>> [node.labels for node in walk(Pair(Leaf("ij", 0), Leaf("jk", 1), "ik"))]
    ['ij', 'jk', 'ik']
    """
    waiting, found = [tree], []
    while waiting:  # not a recursion: a chain of a thousand operands is as deep
        node = waiting.pop()
        found.append(node)
        match node:
            case Pair(left=left, right=right):
                waiting += [left, right]
            case Permutation(child=child):
                waiting.append(child)
            case Leaf():
                pass
    yield from reversed(found)


def rebuilt(tree: Tree, change: Callable[[Tree], Tree]) -> Tree:
    """The tree with each node replaced, behind what it is made of.

    >>> swap = lambda node: Pair(node.right, node.left, node.labels) if isinstance(node, Pair) else node
    >>> print_tree(rebuilt(parse_tree("[0,1],[1,2]->[0,2]"), swap))
    '[1,2],[0,1]->[0,2]'
    """
    made: list[Tree] = []
    for node in walk(tree):
        match node:
            case Pair():
                right = made.pop()
                left = made.pop()
                made.append(change(replace(node, left=left, right=right)))
            case Permutation():
                made.append(change(replace(node, child=made.pop())))
            case Leaf():
                made.append(change(node))
    return made.pop()


# --- the bracket form ---------------------------------------------------------------------------


def print_tree(tree: Tree) -> str:
    """The bracket form; `parse_tree` gives the tree again where labels are numbers, operands in order.

    >>> print_tree(Pair(Leaf("ij", 0), Permutation(Leaf("kj", 1), "jk"), "ik"))
    '[i,j],[[k,j]->[j,k]]->[i,k]'
    """
    texts: list[str] = []
    for node in walk(tree):
        own = f"[{','.join(map(name_of, node.labels))}]"
        match node:
            case Leaf():
                texts.append(own)
            case Permutation():
                texts.append(f"[{texts.pop()}->{own}]")
            case Pair():
                right = texts.pop()
                texts.append(f"[{texts.pop()},{right}->{own}]")
    text = texts.pop()
    return text if isinstance(tree, Leaf) else text[1:-1]


def parse_tree(text: str) -> Tree:
    """The tree that a text in brackets describes.

    A list of numbers of dimensions is an operand, ``[8,4]``; two nodes and the dimensions of what they make
    are a contraction, ``[[8,4],[7,3,8]->[7,3,4]]``; one is a permutation, ``[[8,4]->[4,8]]``. The outermost
    brackets may be missing. Operands count from left to right.

    Raises
    ------
    MalformedTree, TreeDimensionRepeated, TreeDimensionUnknown, TreeDimensionLost
        With the place in the text.

    Notes
    -----
    Dimensions that the result and the other operand lack are refused: such a sum needs no second operand. So
    every dimension of a contraction is one of a batch, of rows, of columns, or summed.

    Examples
    --------
    >>> tree = parse_tree("[[8,4],[7,3,8]->[7,3,4]],[4,0]->[7,3,0]")
    >>> [names_of(node.labels) for node in walk(tree)]
    ['[8,4]', '[7,3,8]', '[7,3,4]', '[4,0]', '[7,3,0]']
    """
    return _TreeParser(text).parse()


class _Open(NamedTuple):
    """A node of which more is to come, and whether a bracket has to close behind it."""

    children: list[Tree]
    bracket: bool


class _TreeParser:
    """One pass over the text, with a list in place of recursion: trees are as deep as a chain is long."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.operands = 0

    def parse(self) -> Tree:
        """The tree of the whole text."""
        stack = [_Open([], bracket=False)]
        while True:
            self._expect("[", "an operand [0,1] or a node [...]")
            while self._peek() == "[":  # the bracket before this one opened a node
                stack.append(_Open([], bracket=True))
                self._expect("[", "a node")
            labels, _ = self._numbers()
            stack[-1].children.append(Leaf(labels, self.operands))
            self.operands += 1
            while not self._goes_on(stack[-1]):
                node = self._close(stack.pop())
                if not stack:
                    return node
                stack[-1].children.append(node)

    def _goes_on(self, node: _Open) -> bool:
        """Whether a second operand follows, whose comma is passed."""
        if len(node.children) == 1 and self._peek() == ",":
            self.at += 1
            return True
        return False

    def _close(self, node: _Open) -> Tree:
        """The node whose operands have just been read."""
        alone = len(node.children) == 1
        if alone and not node.bracket and self._peek() == "":
            return node.children[0]  # an operand, or a tree in brackets
        due = "'->' and the dimensions of the result"
        self._expect("->", f"',' and a second operand, or {due}" if alone else due)
        self._expect("[", "the dimensions of the result, [0,1],")
        found = self._node(node.children, *self._numbers())
        if node.bracket:
            self._expect("]", "']' behind the dimensions of a result")
        elif self._peek():
            raise self._malformed(self.at, "nothing may follow the dimensions of the last result")
        return found

    def _node(self, children: list[Tree], labels: str, places: list[int]) -> Tree:
        """The node of these children, if its dimensions are theirs."""
        known = "".join(child.labels for child in children)
        for label, place in zip(labels, places, strict=True):
            if label not in known:
                raise TreeDimensionUnknown(tree=self._line(), pointer=_pointer(place), number=name_of(label))
        for number, child in enumerate(children):
            other = "".join(one.labels for place, one in enumerate(children) if place != number)
            lost = [label for label in child.labels if label not in labels and label not in other]
            if lost:
                place = places[0] if places else self.at - 1
                raise TreeDimensionLost(tree=self._line(), pointer=_pointer(place), number=name_of(lost[0]))
        first, *second = children
        return Pair(first, second[0], labels) if second else Permutation(first, labels)

    def _numbers(self) -> tuple[str, list[int]]:
        """The labels of a list whose bracket is open, and the position of each."""
        labels, places = "", []
        while self._peek() != "]":
            if labels:
                self._expect(",", "',' or ']' behind a dimension")
                self._peek()
            start = self.at
            while self.at < len(self.text) and self.text[self.at] in "0123456789":
                self.at += 1
            digits = self.text[start : self.at]
            if not digits:
                raise self._malformed(start, f"a dimension is a number, found {self._found()}")
            if len(digits) > len(str(MOST_NUMBERS - 1)):
                raise self._malformed(start, f"dimensions have numbers from 0 to {MOST_NUMBERS - 1}")
            label = label_of(int(digits))
            if label in labels:
                raise TreeDimensionRepeated(tree=self._line(), pointer=_pointer(start), number=name_of(label))
            labels += label
            places.append(start)
        self._expect("]", "")
        return labels, places

    def _peek(self) -> str:
        """The next character that is no space, "" at the end."""
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        return self.text[self.at : self.at + 1]

    def _expect(self, word: str, due: str) -> None:
        self._peek()
        if not self.text.startswith(word, self.at):
            raise self._malformed(self.at, f"expected {due}, found {self._found()}")
        self.at += len(word)

    def _found(self) -> str:
        return repr(self.text[self.at]) if self.at < len(self.text) else "the end"

    def _line(self) -> str:
        """The text as one line, in which places stay theirs."""
        return "".join(" " if character.isspace() else character for character in self.text)

    def _malformed(self, place: int, reason: str) -> MalformedTree:
        return MalformedTree(tree=self._line(), pointer=_pointer(place), reason=reason)


def _pointer(place: int) -> str:
    """A line that points at a character of the line above."""
    return " " * place + "^"


# --- sizes, paths -------------------------------------------------------------------------------


def tree_sizes(tree: Tree, sizes: Sequence[int] | Mapping[int, int]) -> dict[str, int]:
    """The length of each label of a tree, of lengths by the number of the dimension.

    Raises
    ------
    TreeSizeMissing, TreeSize

    Examples
    --------
    >>> tree_sizes(parse_tree("[0,2],[2]->[0]"), {0: 5, 2: 3}) == {label_of(0): 5, label_of(2): 3}
    True
    """
    known: Mapping[int, object]
    if isinstance(sizes, Mapping):
        known = {number: size for number, size in sizes.items() if type(number) is int}
    else:
        known = dict(enumerate(check_items(sizes, "sizes", "a sequence or a mapping of integers")))
    found = {}
    for label in dict.fromkeys(label for node in walk(tree) for label in node.labels):
        number = int(name_of(label))
        if number not in known:
            raise TreeSizeMissing(number=number, known=", ".join(map(str, sorted(known))))
        size = known[number]
        length = as_integer(size)
        if length is None or not 0 <= length <= MAX_SIZE:
            raise TreeSize(number=number, found=shown(size))
        found[label] = length
    return found


def tree_of_path(terms: Sequence[str], output: str, path: Path) -> Tree:
    """The tree of operands with these labels, contracted in the order of a path.

    More operands that meet at once do so from left to right. What is made on the way has the labels of both
    operands first, then those of the first alone, then those of the second.

    Examples
    --------
    >>> print_tree(tree_of_path(("ij", "jk", "kl"), "li", ((1, 2), (0, 1))))
    '[i,j],[[j,k],[k,l]->[j,l]]->[l,i]'
    """
    left: list[Tree] = [Leaf(term, number) for number, term in enumerate(terms)]
    for places in path:
        group = sorted(places)
        while len(group) > 1:
            first, second = group[:2]
            a, b = left[first], left[second]
            others = [tree.labels for place, tree in enumerate(left) if place not in (first, second)]
            labels = _made(a.labels, b.labels, {*output, *"".join(others)}) if others else output
            del left[second], left[first]
            left.append(Pair(a, b, labels))
            # The two are removed, their result is last, and is contracted with the next of the group.
            group = [place - 2 for place in group[2:]] + [len(left) - 1]
            group.sort()
    return left[0]


def _made(first: str, second: str, needed: set[str]) -> str:
    """The labels of an intermediate result: those of both, of the first alone, of the second alone."""
    both = [label for label in first if label in second and label in needed]
    rows = [label for label in first if label not in second and label in needed]
    columns = [label for label in second if label not in first and label in needed]
    return "".join((*both, *rows, *columns))


def path_of_tree(tree: Tree) -> tuple[tuple[str, ...], Path]:
    """The labels of the operands and the order in which they meet, permutations left out.

    Examples
    --------
    >>> path_of_tree(tree_of_path(("ij", "jk", "kl"), "li", ((1, 2), (0, 1))))
    (('ij', 'jk', 'kl'), ((1, 2), (0, 1)))
    """
    operands = {node.operand: node.labels for node in walk(tree) if isinstance(node, Leaf)}
    left = [-1 - number for number in range(len(operands))]  # below 0: operands
    made: list[int] = []
    path = []
    for node in walk(tree):
        match node:
            case Leaf(operand=operand):
                made.append(-1 - operand)
            case Pair():
                right = left.index(made.pop())
                step = tuple(sorted((left.index(made.pop()), right)))
                path.append(step)
                for place in reversed(step):
                    del left[place]
                made.append(len(path))
                left.append(len(path))
            case Permutation():
                pass
    return tuple(labels for _, labels in sorted(operands.items())), tuple(path)
