"""Operations that ATen makes of others by the same code for host and device: they are taken apart.

Autograd has formulas of its own for them, so they arrive whole. Running that code again, with the simulation
watching, counts every operation within it, waits and temporaries included.
"""

from __future__ import annotations

TAKEN_APART: dict[str, tuple[str, ...]] = {
    "ATen/native/TensorCompare.cpp: isclose, all, and one read": ("allclose",),
    "ATen/native/LinearAlgebra.cpp: the singular values, or the eigenvalues of a hermitian matrix": (
        "linalg_pinv",
    ),
    "ATen/native/BinaryOps.cpp: a power of 2, then a product": ("ldexp", "ldexp_"),
    "ATen/native/UnaryOps.cpp: a range, sums, lgamma, and a sum": ("mvlgamma", "mvlgamma_"),
    "ATen/native/Distance.cpp: a difference, then a norm; for two lists, a product of matrices": (
        "dist",
        "_euclidean_dist",
    ),
    "ATen/native/TensorTransformations.cpp: flips and transpositions, copied": ("rot90",),
    "ATen/native/TensorShape.cpp: zeros, and a copy of each matrix into its place": ("block_diag",),
    "ATen/native/TensorFactories.cpp: a range, then a few elementwise operations on it": (
        *("bartlett_window", "blackman_window", "hamming_window", "hann_window"),
        *("fft_fftfreq", "fft_rfftfreq"),
    ),
    "ATen/native/Loss.cpp: a few elementwise operations, then a reduction": (
        *("binary_cross_entropy_with_logits", "soft_margin_loss", "soft_margin_loss_backward"),
    ),
    "ATen/native/transformers/attention.cpp: softmax, and zeros for rows that are masked altogether": (
        "_safe_softmax",
    ),
    "ATen/native/TensorAdvancedIndexing.cpp: indices within bounds, then indexing and a fill": (
        *("_unsafe_masked_index", "_unsafe_masked_index_put_accumulate"),
    ),
}

TAKEN_APART_NAMES = frozenset(f"aten.{name}" for names in TAKEN_APART.values() for name in names)
