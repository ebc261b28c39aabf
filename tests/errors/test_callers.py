"""Errors name the public function that was called, and say what a wrong keyword or word may have meant."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from shares import looped
from wrong_calls import public_callables
from wrong_subjects import Subject, subjects

import tilewright as tw
from tilewright.errors import InvalidChoice, ShapeMismatch, UnexpectedKeyword, WrongArguments
from tilewright.errors.other_names import _ADVICE, _PARAMETERS, _WORDS, nearest_keyword, nearest_word

A, B = np.ones((2, 3), np.float32), np.ones((4, 5), np.float32)
Q = np.ones((1, 1, 2, 4), np.float32)
PACKED = tw.pack(A.T)

#: Functions: those that take nothing, and `explain`, which names the function that it explains, aside.
FUNCTIONS = sorted(
    name
    for name in public_callables()
    if not inspect.isclass(getattr(tw, name))
    and name not in {"accelerate", "explain", "get_num_threads", "install", "installed", "show_calls"}
    and name not in {"show_config", "targets", "uninstall"}
)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_unknown_keywords_name_the_function(name: str) -> None:
    subject = next(one for one in subjects() if one.name.split(" ")[0].split(",")[0] == name)
    arguments = [make() for make in subject.first.values()]
    with pytest.raises(UnexpectedKeyword, match=f"^{name}: unexpected keyword 'no_such': "):
        subject.call()(*arguments, no_such=1)


#: Keywords of other libraries.
MEANT = (
    (tw.attention, (Q, Q, Q), "attn_mask", "mask"),
    (tw.attention, (Q, Q, Q), "is_causal", "causal"),
    (tw.attention, (Q, Q, Q), "softmax_scale", "scale"),
    (tw.attention, (Q, Q, Q), "scale_factor", "scale"),
    (tw.attention_partial, (Q, Q, Q), "is_causal", "causal"),
    (tw.attention_backward, (Q, Q, Q, Q, Q, Q), "attn_mask", "mask"),
    (tw.softmax, (A,), "dim", "axis"),
    (tw.sum, (A,), "keepdim", "keepdims"),
    (tw.tensordot, (A, A), "dims", "axes"),
    (tw.transpose, (A,), "perm", "axes"),
    (tw.layer_norm, (A,), "epsilon", "eps"),
    (tw.layer_norm, (A,), "gamma", "weight"),
    (tw.layer_norm, (A,), "beta", "bias"),
    (tw.linear, (A, B), "num_threads", "threads"),
    (tw.linear, (A, B), "bias_", "bias"),
    (tw.matmul, (A, B), "preferred_element_type", "dtype"),
    (tw.matmul, (A, B), "thread", "threads"),
    (tw.matmul, (A, B), "transpose_b", "b.T"),
    (tw.syrk, (A,), "trans_a", "a.T"),
    (tw.trmm, (A, A), "diag", "unit=True"),
    (tw.sum, (A,), "where", "copyto"),
    (tw.quantize_weights, (A,), "group_size", "group"),
)


@looped(("function", "arguments", "given", "meant"), MEANT)
def test_keywords_of_other_libraries(
    function: Callable[..., Any], arguments: tuple[Any, ...], given: str, meant: str
) -> None:
    with pytest.raises(UnexpectedKeyword) as caught:
        function(*arguments, **{given: 1})
    assert str(caught.value).startswith(f"{function.__name__}: unexpected keyword {given!r}: ")
    assert meant in str(caught.value).partition(f"{given!r}: ")[2]


def test_operands_given_by_name() -> None:
    with pytest.raises(UnexpectedKeyword, match="matmul: unexpected keyword 'a': it is given by position"):
        tw.matmul(a=A, b=B)  # type: ignore[call-arg]


untyped: Any = tw
CALLS: tuple[tuple[Callable[[], Any], str], ...] = (
    (
        lambda: untyped.linear(A),
        "linear: missing a required argument: 'weight'; it takes x, weight, bias, activation",
    ),
    (lambda: untyped.matmul(A), "matmul: missing a required argument: 'b'; it takes a, b, out by position"),
    (lambda: untyped.exp(A, None, 2), "exp: too many positional arguments; it takes x, out by position"),
    (lambda: untyped.exp(A, x=A), "exp: multiple values for argument 'x'"),
    (untyped.pack, "pack: missing a required argument: 'b'"),
    (lambda: untyped.explain(untyped.exp), "exp: missing a required argument: 'x'"),
    (
        lambda: untyped.explain(untyped.attention, Q, Q, Q, attn_mask=Q),
        "attention: unexpected keyword 'attn_mask'",
    ),
    (lambda: untyped.explain(untyped.matmul, A, B), "matmul: a has shape"),
    (lambda: untyped.set_num_threads(0), "set_num_threads: count is 0, must be"),
)


@pytest.mark.parametrize(("call", "text"), CALLS)
def test_wrong_numbers_of_arguments(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(tw.TilewrightError) as caught:
        call()
    assert str(caught.value).startswith(text)
    assert isinstance(caught.value, WrongArguments) is ("argument" in text)


def test_errors_of_linear_are_in_its_words() -> None:
    for weight in (B, tw.pack(B), tw.quantize_weights(B)):
        with pytest.raises(ShapeMismatch) as caught:
            tw.linear(A, weight)
        assert str(caught.value).startswith("linear: x has shape (2, 3) and weight has shape (4, 5): ")
        assert pickle.loads(pickle.dumps(caught.value)).args == caught.value.args
    with pytest.raises(tw.TilewrightError, match="linear: operand x has 0 dimensions"):
        tw.linear(np.float32(3), B)


def wrong_argument_calls() -> list[tuple[Subject, str]]:
    """Each parameter of each public function."""
    return [
        (subject, parameter)
        for subject in subjects()
        if subject.name.split(" ")[0].split(",")[0] in FUNCTIONS
        for parameter in (*subject.first, *subject.named)
    ]


def test_errors_name_the_function() -> None:
    """Whatever inner function finds them."""
    unnamed = []
    for subject, parameter in wrong_argument_calls():
        arguments = {name: make() for name, make in subject.first.items()}
        named = {} if parameter in arguments else {parameter: object()}
        if not named:
            arguments[parameter] = object()
        name = subject.name.split(" ")[0].split(",")[0]
        try:
            subject.call()(*arguments.values(), **named)
        except Exception as error:
            if not str(error).startswith(f"{name}: ") and not subject.name.endswith("of parts"):
                unnamed.append((subject.name, parameter, str(error)))
    assert not unnamed


WORDS = (
    ("swish", ("relu", "silu"), "; swish is called silu here"),
    ("SiLU", ("relu", "silu"), "; did you mean silu?"),
    ("gelu_new", ("gelu", "gelu_tanh"), "; gelu_new is called gelu_tanh here"),
    ("nhd", ("bhsd", "bshd"), "; nhd is called bshd here"),
    ("upper_right", ("lower_right", "upper_left"), "; did you mean lower_right?"),
    ("identity", ("relu",), "; omit it, or pass None, for nothing"),
    ("xyz", ("relu",), ""),
)


@pytest.mark.parametrize(("found", "allowed", "hint"), WORDS)
def test_words_of_other_libraries(found: str, allowed: tuple[str, ...], hint: str) -> None:
    assert nearest_word(found, allowed) == hint


def test_wrong_words_get_a_hint() -> None:
    with pytest.raises(
        InvalidChoice, match=r"^linear: activation is 'swish', .*; swish is called silu here$"
    ):
        tw.linear(A, A, activation="swish")  # type: ignore[arg-type]
    with pytest.raises(
        InvalidChoice, match=r"^attention: layout is 'nhd', must be .*; nhd is called bshd here"
    ):
        tw.attention(Q, Q, Q, layout="nhd")  # type: ignore[call-overload]


def test_words_that_are_no_text_get_no_hint() -> None:
    for found in ("True", "None"):
        assert InvalidChoice(name="side", found=found, allowed="target, trues").hint == ""
    with pytest.raises(InvalidChoice, match=r"side is None, must be one of: left, right$"):
        tw.trmm(A, A, side=None)  # type: ignore[arg-type]


#: Calls whose messages once spoke of something else.
MENDED: tuple[tuple[Callable[[], Any], str], ...] = (
    (lambda: untyped.matmul(A, A, axes="x"), "matmul: axes is 'x', must be a list"),
    (lambda: untyped.matmul(A, PACKED, order="F"), "matmul: argument order='F' is not supported"),
    (
        lambda: tw.matmul(A, PACKED, dtype=np.float64),
        "matmul: the type of the result is float64",
    ),
    (
        lambda: tw.mmt4d(A[None, None], B[None, None]),
        "mmt4d: lhs4d has shape (1, 1, 2, 3) and",
    ),
    (
        lambda: tw.attention_backward(Q, Q, Q, Q, Q.astype(int), Q[..., 0]),
        "attention_backward: out has dtype",
    ),
)


@pytest.mark.parametrize(("call", "text"), MENDED)
def test_messages_speak_of_what_is_wrong(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(tw.TilewrightError) as caught:
        call()
    assert str(caught.value).startswith(text)
    assert "key_scales" not in str(caught.value)


def test_the_table_of_names_is_of_parameters_that_there_are() -> None:
    """And says nothing of names that some function has itself."""
    words = set()
    for name in FUNCTIONS:
        words |= set(inspect.signature(getattr(tw, name)).parameters)
    for given, meant in _PARAMETERS.items():
        assert set(meant) <= words, given
        assert meant, given
        assert nearest_keyword(given, meant[:1]) == f"it is called {meant[0]} here"
    assert not set(_ADVICE) & set(_PARAMETERS)
    assert not {word for word in _WORDS.values() if word in _WORDS}
