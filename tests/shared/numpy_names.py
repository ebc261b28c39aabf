"""A plugin of pytest for NumPy's own tests: its products are this package's.

What cannot pass is expected to fail, each for a reason of `REASONS`; docs/reference/numpy.md has them too.
Tests that loop over types leave out those without a kernel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw

#: NumPy's functions that are replaced, by the module that has them.
NAMES = {
    np: ("matmul", "einsum", "tensordot", "inner", "kron", "vecdot", "matvec", "vecmat"),
    np.linalg: ("matmul", "vecdot", "tensordot"),
}

OBJECTS = "products of Python objects have no kernel"
LONG = "long double has no kernel"
UFUNC = "a builtin is no numpy.ufunc: it has no `at`, `signature` and `__signature__`"
WORDS = "the words of an error"
REASONS = {
    "test_einsum_object_errors": OBJECTS,
    "test_einsum_sums_object": OBJECTS,
    "test_object_loop": OBJECTS,
    "test_einsum_sums_longdouble": LONG,
    "test_einsum_sums_clongdouble": LONG,
    "test_different_paths[g]": LONG,
    "test_different_paths[G]": LONG,
    "test_power_is_two[dt12]": LONG,
    "test_power_is_two[dt15]": LONG,
    "test_einsum_0d_out": "casting to `out` is 'safe' in every order of contraction",
    "test_matmul_object": OBJECTS,
    "test_matmul_object_type_scalar": OBJECTS,
    "test_matmul_empty": OBJECTS,
    "test_out_arg": WORDS,
    "test_empty_out": WORDS,
    "test_ufunc_binop_interaction": "the operator @ calls NumPy's own function, whatever has its name",
    "test_kron_ma": "masked arrays are refused",
    "test_inner_scalar_and_matrix_of_objects": OBJECTS,
    "test_vecdot": OBJECTS,
    "test_matvec": OBJECTS,
    "test_vecmatvec_identity[None-vec2]": OBJECTS,
    "test_vecmatvec_identity[None-vec3]": OBJECTS,
    "test_vecmatvec_identity[matrix1-vec2]": OBJECTS,
    "test_vecmatvec_identity[matrix1-vec3]": OBJECTS,
    "test_vecdot_object_no_conjugate": OBJECTS,
    "test_vecdot_object_breaks_outer_loop_on_error": OBJECTS,
    "test_get_signature": UFUNC,
    "test_at_not_none_signature": UFUNC,
    "test_dunder_signature_attr[matvec]": UFUNC,
    "test_params_common_positional[vecmat]": UFUNC,
    "test_c_func_dispatcher_signature[inner]": UFUNC,
}
#: The same for every parameter of a test.
REASONS_OF_ALL = {
    "test_vecdot_matvec_vecmat_complex": OBJECTS,
    "test_params_common_gufunc": UFUNC,
}
#: Types without a kernel, in NumPy's letters.
WITHOUT_KERNEL = "gGO"

for module, names in NAMES.items():
    for name in names:
        setattr(module, name, getattr(tw, name))
letters: Any = np.typecodes
letters["AllFloat"] = "".join(code for code in letters["AllFloat"] if code not in WITHOUT_KERNEL)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        kind: Any = getattr(item, "cls", None)
        if isinstance(getattr(kind, "types", None), str):
            kind.types = "".join(code for code in kind.types if code not in WITHOUT_KERNEL)
        reason = REASONS.get(item.name) or REASONS_OF_ALL.get(item.name.split("[")[0])
        if reason is not None:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
