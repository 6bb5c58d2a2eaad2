"""What the simulation is known to count otherwise than is right, by reason: a list that only shrinks.

A test fails where the simulation is wrong and it is not listed, and where something listed is right.
"""

from __future__ import annotations

KNOWN: dict[str, dict[str, str]] = {
    "unknown, and listed as unknown by the measurement": {
        "torch.linalg.eig(eye)": "waits h2d d2h d2d launches allocations",
        "torch.unique(rows, dim=0)": "waits d2h launches allocations",
        "torch.rand(2049, device='cuda').mode()": "waits h2d d2h d2d launches allocations",
    },
    "marked as approximate, though what differs is no kernel or memory of a library": {
        "F.embedding_bag(index, rows, classes[:1])": "allocations",
        "transformer_layer_in_training": "d2d",
        "torch.linalg.det(eye)": "d2d",
        "torch.linalg.matrix_exp(eye)": "waits h2d d2d",
        "torch.sparse_coo_tensor(torch.stack([index, index]), y, (4, 6), device='cuda').coalesce()": "d2d",
        "rows.to_sparse_csr() @ rows.t()": "d2d",
    },
    "the question for cuDNN reads the targets: seen on torch 2.11, and its source is not found": {
        "F.ctc_loss(rows[:, None], index[None, 1:], torch.tensor([4]), torch.tensor([2]))": "waits d2h",
    },
    "PyTorch's code in Python is another one in 2.11, which was recorded": {
        "flex_attention_backward": "allocations",
    },
    "nobody knows why": {
        "rows.logsumexp(0)": "allocations",
        "x.quantile(0.5)": "launches allocations",
        "optimizer ASGD": "launches",
        "distributions.Categorical(logits=rows).log_prob(classes)": "allocations",
    },
}


def known_of(name: str) -> set[str]:
    """Return the metrics in which a pattern is known to be counted wrong."""
    for patterns in KNOWN.values():
        if name in patterns:
            return set(patterns[name].split())
    return set()
