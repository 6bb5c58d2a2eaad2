"""Operations without a rule: those that ATen makes of others, that never wait, and that CUDA lacks.

What is in none of these tables and has no rule might wait: it is reported as unknown.
"""

from __future__ import annotations

# Autograd has its own formulas for these, so they arrive whole. Running ATen's shared code again, with the
# simulation watching, counts every operation within it, waits and temporaries included.
TAKEN_APART: dict[str, tuple[str, ...]] = {
    "ATen/native/TensorCompare.cpp: isclose, all, and one read": ("allclose",),
    "ATen/native/LinearAlgebra.cpp: the singular values, or the eigenvalues of a hermitian matrix": (
        "linalg_pinv",
    ),
    "ATen/native, from torch 2.14 on: eigenvalues or singular values, then products": (
        *("linalg_matrix_sqrth", "linalg_polar"),
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
    "ATen/native/transformers/transformer.cpp: attention, sums, norms and products": (
        "_transformer_encoder_layer_fwd",
    ),
    "ATen/native/sparse/SparseTensorMath.cpp: addmm": ("_sparse_addmm",),
    "ATen/native/TensorConversions.cpp: what is not zero, and indexing; or a mask, and its indices": (
        *("_to_sparse", "_to_sparse_csr"),
    ),
    "ATen/native/transformers/attention.cpp: softmax, and zeros for rows that are masked altogether": (
        "_safe_softmax",
    ),
    "ATen/native/TensorAdvancedIndexing.cpp: indices within bounds, then indexing and a fill": (
        *("_unsafe_masked_index", "_unsafe_masked_index_put_accumulate"),
    ),
}

TAKEN_APART_NAMES = frozenset(f"aten.{name}" for names in TAKEN_APART.values() for name in names)

# Whether ATen's shared code reads a value was seen by running PyTorch's own samples of every operation on the
# host under its profiler, and looking for reads within it; what CUDA's own code reads is listed in its
# binary's callers of ``item``. Kernels and workspaces of these operations are approximate.
NEVER_WAITING: dict[str, tuple[str, ...]] = {
    "ATen/native/LinearAlgebra.cpp, Linear.cpp: made of products, which leave their results on the device": (
        *("addr", "addr_", "linear", "linear_backward", "matmul_backward", "_trilinear"),
    ),
    "ATen/native/cuda: convolutions by ATen's own kernels and cuBLAS": (
        *("_conv_depthwise2d", "conv_depthwise3d", "conv_tbc", "slow_conv_transpose2d"),
        *("slow_conv_transpose3d", "slow_conv_dilated2d", "slow_conv_dilated3d", "_slow_conv2d_forward"),
        *("_slow_conv2d_backward", "col2im"),
    ),
    "ATen/native/cuda/Normalization.cu and its kin: kernels alone": (
        *("native_batch_norm", "native_batch_norm_backward", "_native_batch_norm_legit"),
        *("_native_batch_norm_legit_no_training", "_native_batch_norm_legit_functional"),
        *("_batch_norm_with_update", "_batch_norm_with_update_functional", "_batch_norm_no_update"),
        *("batch_norm_backward", "batch_norm_stats", "batch_norm_elemt", "batch_norm_update_stats"),
        *("batch_norm_backward_reduce", "batch_norm_backward_elemt"),
        *("batch_norm_gather_stats_with_counts", "cudnn_batch_norm", "cudnn_batch_norm_backward"),
        *("native_group_norm_backward",),
        *("renorm", "renorm_", "native_norm"),
        *("_weight_norm_interface", "_weight_norm_interface_backward"),
    ),
    "ATen/native/transformers/cuda: lengths and seeds stay on the device": (
        *("_scaled_dot_product_flash_attention", "_scaled_dot_product_flash_attention_backward"),
        *("_scaled_dot_product_efficient_attention", "_scaled_dot_product_efficient_attention_backward"),
        *("_scaled_dot_product_cudnn_attention", "_scaled_dot_product_cudnn_attention_backward"),
        *("_flash_attention_forward", "_flash_attention_backward"),
        *("_efficient_attention_forward", "_efficient_attention_backward"),
        *("_scaled_dot_product_flash_attention_for_cpu", "_masked_softmax"),
        *("_scaled_dot_product_flash_attention_for_cpu_backward", "_masked_softmax_backward"),
        *("_transform_bias_rescale_qkv", "_fused_sdp_choice"),
    ),
    "ATen/native/RNN.cpp: the lengths of a packed sequence are on the host already": (
        "_pack_padded_sequence_backward",
    ),
    "ATen/native/cuda: pooling, its gradients, and those of resampling are kernels and fills": (
        *("_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward", "avg_pool1d"),
        *("adaptive_max_pool2d_backward", "adaptive_max_pool3d_backward", "avg_pool2d_backward"),
        *("avg_pool3d_backward", "max_pool3d_with_indices_backward", "max_unpool2d", "max_unpool3d"),
        *("fractional_max_pool2d", "fractional_max_pool2d_backward", "fractional_max_pool3d"),
        *("fractional_max_pool3d_backward", "grid_sampler_2d_backward", "grid_sampler_3d_backward"),
        *("affine_grid_generator", "_upsample_bilinear2d_aa", "_upsample_bilinear2d_aa_backward"),
        *("_upsample_bicubic2d_aa", "_upsample_bicubic2d_aa_backward", "upsample_nearest1d_backward"),
        *("upsample_nearest2d_backward", "upsample_nearest3d_backward", "upsample_linear1d_backward"),
        *("upsample_bilinear2d_backward", "upsample_bicubic2d_backward", "upsample_trilinear3d_backward"),
        *("_upsample_nearest_exact1d_backward", "_upsample_nearest_exact2d_backward"),
        "_upsample_nearest_exact3d_backward",
    ),
    "ATen/native/cuda/Loss.cu and its kin: targets are checked on the device": (
        *("nll_loss2d_forward", "nll_loss2d_backward", "multi_margin_loss", "multi_margin_loss_backward"),
        *("multilabel_margin_loss_forward", "multilabel_margin_loss_backward"),
    ),
    "ATen/native/cuda/Embedding.cu, EmbeddingBag.cu: counts of what is unique stay on the device": (
        *("_embedding_bag", "_embedding_bag_forward_only"),
        "_embedding_bag_dense_backward",
        "_embedding_bag_per_sample_weights_backward",
    ),
    "ATen/native: distances, transforms and indexing by kernels whose sizes the arguments decide": (
        *("_cdist_forward", "_cdist_backward", "_pdist_forward", "_pdist_backward"),
        *("_fft_c2c", "_fft_c2r", "_fft_r2c", "put", "put_"),
        *("unfold_backward", "hash_tensor", "_logcumsumexp"),
        *("_standard_gamma_grad", "_dirichlet_grad", "_masked_scale", "_fused_dropout"),
        *("_aminmax", "_segment_reduce_backward", "_conj_physical"),
        *("_efficientzerotensor", "range", "kaiser_window"),
    ),
    "ATen/native: questions about sizes, and assertions about the host's own numbers": (
        *("_assert_scalar", "_functional_assert_scalar", "sym_constrain_range", "_print"),
        *("sym_constrain_range_for_size", "_has_same_storage_numel", "_new_zeros_with_same_feature_meta"),
        "_use_cudnn_ctc_loss",
    ),
    "ATen/native/TensorShape.cpp: a view, copied within the device": (
        *("alias_copy", "as_strided_copy", "detach_copy", "diagonal_copy", "expand_copy", "lift_fresh_copy"),
        *("narrow_copy", "permute_copy", "select_copy", "slice_copy", "split_copy", "t_copy"),
        *("split_with_sizes_copy", "squeeze_copy", "transpose_copy", "unbind_copy", "unfold_copy"),
        *("unsqueeze_copy", "view_copy", "view_as_real_copy", "view_as_complex_copy", "_reshape_copy"),
    ),
    "ATen/native/cuda/linalg: error codes and pivots stay on the device": ("geqrf", "ormqr", "lu_unpack"),
    "ATen/native/quantized/cuda/FakeQuantizeCore.cu: scale and zero point stay where they are": (
        "fake_quantize_per_tensor_affine_cachemask",
        "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
    ),
}

_NEVER_WAITING_NAMES = frozenset(f"aten.{name}" for names in NEVER_WAITING.values() for name in names)


def never_waits(packet: str) -> bool:
    """Whether an operation, named without overload, is known never to make the host wait."""
    return packet in _NEVER_WAITING_NAMES or packet.startswith("aten._foreach_")


# Found by asking a CUDA build's dispatcher for each operation. Those are left out by which the host's own
# code does what CUDA does by another operation, such as attention.
HOST_ONLY = frozenset(
    f"aten.{name}"
    for name in (
        *("histogram", "_histogramdd_bin_edges", "_histogramdd_from_bin_cts"),
        "_histogramdd_from_bin_tensors",
        *("_add_relu", "_add_relu_", "_spdiags", "from_file", "to_mkldnn", "quantized_gru", "quantized_lstm"),
        *("_upsample_lanczos2d_aa", "_upsample_lanczos2d_aa_backward"),
    )
)

# What CUDA calls the kernels of matrix products, which it has for floating and complex types alone. Source:
# ATen/native/cuda/Blas.cpp, AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND2.
PRODUCT_KERNELS = {
    f"aten.{name}": kernel
    for kernel, names in {
        "addmm_cuda": ("mm", "addmm", "addmm_"),
        "baddbmm_cuda": ("bmm", "baddbmm", "baddbmm_"),
        "addmv_impl_cuda": ("mv", "addmv", "addmv_"),
        "dot": ("dot", "vdot"),
    }.items()
    for name in names
}
