"""What other libraries call the parameters and words of this package: hints in messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

#: Keywords of NumPy, SciPy, BLAS, PyTorch, JAX, TensorFlow, ONNX and flash-attention, by the parameter that
#: means the same here. Of several the first one that the called function has.
_PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "A": ("a", "x"),
    "B": ("b", "bias"),
    "C": ("out", "bias"),
    "K": ("k",),
    "Q": ("q",),
    "V": ("v",),
    "X": ("x",),
    "W": ("weight", "w"),
    "a_dtype": ("dtype",),
    "act": ("activation",),
    "activation_fn": ("activation",),
    "alibi": ("alibi_slopes",),
    "arr": ("x", "a"),
    "array": ("x", "a"),
    "attention_bias": ("mask",),
    "attention_mask": ("mask",),
    "attn_bias": ("mask",),
    "attn_mask": ("mask",),
    "axes": ("axis",),
    "axis": ("axes",),
    "b": ("bias",),
    "beta": ("bias",),
    "bias_": ("bias",),
    "bits_per_weight": ("bits",),
    "block_tables": ("block_table",),
    "c": ("out",),
    "cache_k": ("k_cache",),
    "cache_lens": ("kv_lengths",),
    "cache_seqlens": ("kv_lengths",),
    "cache_v": ("v_cache",),
    "causal_mask": ("causal",),
    "context_lens": ("kv_lengths",),
    "cu_seq_k": ("cu_seqlens_k",),
    "cu_seq_q": ("cu_seqlens_q",),
    "cu_seqlens": ("cu_seqlens_q",),
    "cu_seqlens_kv": ("cu_seqlens_k",),
    "descale_k": ("key_scales",),
    "descale_v": ("value_scales",),
    "dim": ("axis", "axes"),
    "dims": ("axes", "axis"),
    "do": ("dout",),
    "element_type": ("dtype",),
    "epsilon": ("eps",),
    "equation": ("subscripts",),
    "gamma": ("weight",),
    "grad": ("dout",),
    "grad_out": ("dout",),
    "grad_output": ("dout",),
    "group_size": ("group",),
    "groupsize": ("group",),
    "input": ("x", "a"),
    "input1": ("a",),
    "input2": ("b",),
    "is_causal": ("causal",),
    "k_descale": ("key_scales",),
    "k_scale": ("key_scales",),
    "keep_dims": ("keepdims",),
    "keepdim": ("keepdims",),
    "key": ("k",),
    "kv_seq_lens": ("kv_lengths",),
    "left_side": ("side",),
    "leftpad_k": ("q_offset",),
    "local_window_size": ("window",),
    "logits_soft_cap": ("softcap",),
    "logsumexp": ("lse",),
    "mat": ("a",),
    "mat1": ("a",),
    "mat2": ("b",),
    "n_jobs": ("threads",),
    "n_threads": ("threads",),
    "nonlinearity": ("activation",),
    "nonpad_kv_seqlen": ("kv_lengths",),
    "normalized_shape": ("axis",),
    "nthreads": ("threads",),
    "num_bits": ("bits",),
    "num_threads": ("threads",),
    "ord": ("order",),
    "other": ("b",),
    "out_dtype": ("dtype",),
    "out_type": ("dtype",),
    "output": ("out",),
    "output_dtype": ("dtype",),
    "page_table": ("block_table",),
    "perm": ("axes",),
    "permutation": ("axes",),
    "preferred_element_type": ("dtype",),
    "qk_matmul_output_mode": ("return_scores",),
    "query": ("q",),
    "reduction_axes": ("axis",),
    "result_type": ("dtype",),
    "return_attn_probs": ("return_scores",),
    "return_logsumexp": ("return_lse",),
    "return_residuals": ("return_lse",),
    "return_softmax_lse": ("return_lse",),
    "return_weights": ("return_scores",),
    "s_aux": ("sinks",),
    "scale_factor": ("scale", "alpha"),
    "scaling": ("scale", "alpha"),
    "seq_lens": ("kv_lengths",),
    "seqused_k": ("kv_lengths",),
    "seqused_q": ("q_lengths",),
    "sliding_window": ("window",),
    "sm_scale": ("scale",),
    "soft_cap": ("softcap",),
    "softmax_scale": ("scale",),
    "tensor": ("x", "a"),
    "unit_diagonal": ("unit",),
    "unitriangular": ("unit",),
    "v_descale": ("value_scales",),
    "v_scale": ("value_scales",),
    "value": ("v",),
    "variance_epsilon": ("eps",),
    "w": ("weight",),
    "weights": ("weight", "w"),
    "window_size": ("window",),
    "workers": ("threads",),
    "x": ("a", "q"),
    "x1": ("a",),
    "x2": ("b",),
    "y": ("b", "out"),
    "zero_point": ("zeros",),
    "zero_points": ("zeros",),
    "zeros": ("a_zero_point",),
}
_TRANSPOSED = "pass the transposed array, such as {}.T: any strides are read as they are"
#: What to do in place of keywords that have no equal here.
_ADVICE: Mapping[str, str] = {
    **dict.fromkeys(
        ("transpose_a", "trans_a", "transA", "transa", "adjoint_a", "trans"), _TRANSPOSED.format("a")
    ),
    **dict.fromkeys(("transpose_b", "trans_b", "transB", "transb", "adjoint_b"), _TRANSPOSED.format("b")),
    **dict.fromkeys(("dropout", "dropout_p"), "there is no dropout; without training it has no effect"),
    **dict.fromkeys(
        ("enable_gqa", "kv_num_heads", "q_num_heads", "num_heads"), "the shapes of q and k say how many heads"
    ),
    **dict.fromkeys(
        ("max_seqlen_q", "max_seqlen_k", "max_seqlen_kv"), "cu_seqlens_q and cu_seqlens_k say it already"
    ),
    **dict.fromkeys(
        ("past_key", "past_value"), "append them with append_kv, and pass the whole cache as k, v"
    ),
    **dict.fromkeys(("diag", "diagonal"), "pass unit=True for a diagonal of ones"),
    **dict.fromkeys(("uplo", "upper"), "pass lower=True or lower=False"),
    **dict.fromkeys(("sig", "signature"), "pass dtype=, the type of the result"),
    **dict.fromkeys(("overwrite_a", "overwrite_b", "overwrite_c"), "pass the array as out"),
    **dict.fromkeys(("device", "requires_grad", "allow_tf32", "precision"), "omit it"),
    "deterministic": "omit it: results have the same bits with any number of threads",
    "initial": "include it in the array, or combine it with the result",
    "where": "numpy.copyto(out, result, where=...) copies some elements of a result",
    "q_descale": "multiply scale by it",
    "stable": "omit it: the maximum is always subtracted first",
    "implementation": "pass strategy=",
    "p": "there is no dropout",
}

#: Words of other libraries by what means the same here.
_WORDS: Mapping[str, str] = {
    "swish": "silu",
    "swish_1": "silu",
    "logistic": "sigmoid",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_approx": "gelu_tanh",
    "gelu_erf": "gelu",
    "gelu_none": "gelu",
    "erf": "gelu",
    "rectified_linear": "relu",
    "tanhf": "tanh",
    "nhd": "bshd",
    "bnsd": "bhsd",
    "bsnd": "bshd",
    "bhld": "bhsd",
    "blhd": "bshd",
    "bthd": "bshd",
    "bhtd": "bhsd",
    "btnh": "bshd",
    "bnth": "bhsd",
    "sbhd": "bshd",
    "hnd": "bhsd",
    "l": "left",
    "r": "right",
    "upper-left": "upper_left",
    "top_left": "upper_left",
    "bottom_right": "lower_right",
    "flash": "blocks",
    "math": "unfused",
    "naive": "unfused",
    "paged": "decode",
    "fortran": "F",
    "column-major": "F",
    "column": "col",
    "column_major": "col",
    "row-major": "row",
    "row_major": "row",
    "float32": "f32",
    "float": "f32",
    "double": "f64",
    "float64": "f64",
    "bfloat16": "bf16",
    "half": "f16",
    "float16": "f16",
    "int8": "i8",
    "uint8": "u8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "probs": "softmax",
    "logits": "product",
}
#: Words of other libraries that ask for nothing.
_NOTHING = frozenset({"identity", "linear", "none"})


def nearest_keyword(name: str, known: Iterable[str]) -> str:
    """What to do about a keyword that a function does not have: the one that is meant, or those that it has.

    >>> nearest_keyword("is_causal", ["mask", "causal"])
    'it is called causal here'
    >>> nearest_keyword("thread", ["out", "threads"])
    'did you mean threads?'
    """
    words = list(known)
    for found in (*_PARAMETERS.get(name, ()), *_PARAMETERS.get(name.lower(), ())):
        if found in words:
            return f"it is called {found} here"
    advice = _ADVICE.get(name)
    if advice is not None:
        return advice
    near = get_close_matches(name, words, 1)
    if near:
        return f"did you mean {near[0]}?"
    return f"it takes {', '.join(words)}" if words else "it takes no keywords"


def nearest_word(found: object, allowed: Iterable[str]) -> str:
    """The end of a message about a word that is none of the allowed ones: which of them is meant, if any.

    >>> nearest_word("swish", ["relu", "silu"]), nearest_word("rleu", ["relu", "silu"]), nearest_word(3, [])
    ('; swish is called silu here', '; did you mean relu?', '')
    """
    if type(found) is not str:
        return ""
    words, text = list(allowed), found.lower()
    meant = _WORDS.get(text)
    if meant in words:
        return f"; {found} is called {meant} here"
    if text in _NOTHING and "relu" in words:
        return "; omit it, or pass None, for nothing"
    near = text if text in words else next(iter(get_close_matches(text, words, 1)), None)
    return "" if near is None else f"; did you mean {near}?"
