"""Which operations ``torch.autocast("cuda")`` runs in which type, by ATen/autocast_mode.h of torch 2.13."""

from __future__ import annotations

LOWER: tuple[str, ...] = (
    *("_convolution", "_convolution.deprecated", "convolution", "conv1d", "conv2d", "conv3d", "conv_tbc"),
    *("conv_transpose1d", "conv_transpose2d.input", "conv_transpose3d.input", "prelu", "addmm", "addmv"),
    *("addr", "matmul", "einsum", "mm", "mv", "linalg_vecdot", "linear", "addbmm", "baddbmm", "bmm"),
    *("chain_matmul", "linalg_multi_dot", "_thnn_fused_lstm_cell", "_thnn_fused_gru_cell", "lstm_cell"),
    *("gru_cell", "rnn_tanh_cell", "rnn_relu_cell", "_scaled_dot_product_flash_attention"),
    "scaled_dot_product_attention",
)
"""In the type of autocast."""

RECURRENT: tuple[str, ...] = tuple(
    f"{layer}.{overload}"
    for layer in ("lstm", "gru", "rnn_tanh", "rnn_relu")
    for overload in ("input", "data")
)
"""In the type of autocast: what cuDNN's recurrent layers do, which no other device has."""

SINGLE: tuple[str, ...] = (
    *("acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log2", "log1p", "reciprocal"),
    *("rsqrt", "sinh", "tan", "pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow.Scalar", "softplus"),
    *("layer_norm", "native_layer_norm", "rms_norm", "group_norm", "frobenius_norm.dim", "nuclear_norm"),
    *("nuclear_norm.dim", "cosine_similarity", "poisson_nll_loss", "cosine_embedding_loss", "nll_loss"),
    *("nll_loss2d", "hinge_embedding_loss", "kl_div", "l1_loss", "smooth_l1_loss", "huber_loss"),
    *("mse_loss", "margin_ranking_loss", "multilabel_margin_loss", "soft_margin_loss"),
    *("triplet_margin_loss", "multi_margin_loss", "binary_cross_entropy_with_logits", "dist", "pdist"),
    *("cdist", "renorm", "logsumexp", "upsample_nearest1d", "_upsample_nearest_exact1d"),
    *("upsample_nearest2d", "_upsample_nearest_exact2d", "upsample_nearest3d"),
    *("_upsample_nearest_exact3d", "upsample_linear1d", "upsample_bilinear2d", "_upsample_bilinear2d_aa"),
    *("upsample_trilinear3d", "upsample_bicubic2d", "_upsample_bicubic2d_aa"),
)
"""In single precision."""

SINGLE_RESULT: tuple[str, ...] = (
    *("prod", "prod.dim_int", "softmax.int", "log_softmax.int", "cumprod", "cumsum", "sum"),
    *("sum.dim_IntList", "linalg_vector_norm", "linalg_matrix_norm", "linalg_matrix_norm.str_ord"),
)
"""With a result in single precision, unless another type is asked for."""

WITH_TYPE: dict[str, str] = {
    "norm.Scalar": "norm.ScalarOpt_dtype",
    "norm.ScalarOpt_dim": "norm.ScalarOpt_dim_dtype",
}
"""The same, by an overload that takes a type."""

WIDEST: tuple[str, ...] = (
    *("addcdiv", "addcmul", "atan2", "bilinear", "cross", "dot", "vdot", "grid_sampler", "index_put"),
    *("tensordot", "scatter_add"),
)
"""In the widest type among the tensors and that of autocast."""

UNSAFE: tuple[str, ...] = ("binary_cross_entropy",)
"""Refused, by the error that PyTorch has for it."""
