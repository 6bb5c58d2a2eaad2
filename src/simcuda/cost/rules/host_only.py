"""Operations that PyTorch has no kernel for on CUDA, where they raise ``NotImplementedError``.

Found by asking a CUDA build's dispatcher for each operation. Those are left out by which the host's own
code does what CUDA does by another operation, such as attention.
"""

HOST_ONLY = frozenset(
    f"aten.{name}"
    for name in (
        *(
            "histogram",
            "_histogramdd_bin_edges",
            "_histogramdd_from_bin_cts",
            "_histogramdd_from_bin_tensors",
        ),
        *("_add_relu", "_add_relu_", "_spdiags", "to_mkldnn", "quantized_gru", "quantized_lstm"),
        *("_upsample_lanczos2d_aa", "_upsample_lanczos2d_aa_backward"),
    )
)
