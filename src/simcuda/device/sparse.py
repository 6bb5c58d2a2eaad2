"""Sparse tensors: each is made of dense ones, whose storages say where it lies."""

from __future__ import annotations

import torch

from simcuda.device.dispatch_key import unwatched

_COMPRESSED = {
    torch.sparse_csr: ("crow_indices", "col_indices", "values"),
    torch.sparse_bsr: ("crow_indices", "col_indices", "values"),
    torch.sparse_csc: ("ccol_indices", "row_indices", "values"),
    torch.sparse_bsc: ("ccol_indices", "row_indices", "values"),
}
_PARTS = {torch.sparse_coo: ("_indices", "_values"), **_COMPRESSED}


def is_sparse(tensor: torch.Tensor) -> bool:
    """Whether a tensor is of one of PyTorch's sparse layouts, compressed ones among them."""
    return tensor.layout in _PARTS


@unwatched
def parts_of(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The dense tensors that a sparse one is made of, its values last; none for any other."""
    with torch.no_grad():
        return tuple(getattr(tensor, name)() for name in _PARTS.get(tensor.layout, ()))
