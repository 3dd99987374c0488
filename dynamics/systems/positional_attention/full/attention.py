"""The part of a generated file that the full problems share: the kernels on a whole matrix A."""

from __future__ import annotations

from dynamics import codegen
from dynamics.codegen.kernels import exponential
from dynamics.systems.positional_attention.kernels import attention as attention_kernels


def attention_sources() -> list[str]:
    """Sources of the kernels on A, callees before callers."""
    return [
        codegen.constants(exponential, "LOG2_E", "LN2_HIGH", "LN2_LOW", "ROUNDING"),
        codegen.constants(attention_kernels, "LEAST"),
        codegen.inline(exponential.exponentials, "exact_kernel"),
        codegen.inline(attention_kernels.softmax_row),
        codegen.inline(attention_kernels.attention_matrix),
        codegen.inline(attention_kernels.row_through_softmax),
        codegen.inline(attention_kernels.orbit_parameters),
    ]
