"""What the simulation is known to count otherwise than is right, by reason: a list that only shrinks.

A test fails where the simulation is wrong and it is not listed, and where something listed is right.
"""

from __future__ import annotations

JITERATED = ("2inputs_2outputs", "4inputs_with_extra_args", "binary", "binary_return_by_ref", "unary")

KNOWN: dict[str, dict[str, str]] = {
    "unknown, and listed as unknown by the measurement": {
        "torch.linalg.eig(eye)": "waits h2d d2h d2d launches allocations",
        "torch.linalg.matrix_exp(eye)": "waits h2d d2h d2d launches allocations",
        "torch.rand(2049, device='cuda').mode()": "waits h2d d2h d2d launches allocations",
    },
    "PyTorch's code in Python is another one in 2.11, which was recorded": {
        "flex_attention_backward": "allocations",
    },
}

GPUS_DIFFER = {
    "a mask made of random numbers, which on the H200 selected no row": {
        "rows[rows[:, 0] > 0.5]": "launches allocations"
    }
}
"""The same for what two GPUs count otherwise."""


KNOWN_OF_OPERATORS: dict[str, dict[str, str]] = {
    "kernels of just-in-time compilation and of fused attention, called by name, are refused": {
        **{f"op/jiterator_{name}/{place}": "error" for name in JITERATED for place in (0, 1)},
        **{
            f"op/torch_ops_aten__{name}_attention_forward/{place}{way}": "error"
            for name in ("efficient", "flash")
            for place in (0, 1)
            for way in ("", "/backward")
        },
    },
    "unknown, and listed as unknown by the measurement": {
        **{
            f"op/{name}/{place}{way}": "waits h2d d2h d2d launches allocations"
            for name, ways in (
                ("linalg_eig", ("",)),
                ("linalg_eigvals", ("",)),
                ("matrix_exp", ("", "/backward")),
            )
            for way in ways
            for place in (0, 1)
        },
        "op/sparse_sampled_addmm/0": "d2d",
        "op/sparse_sampled_addmm/1": "d2d launches allocations",
        "op/sparse_sampled_addmm/0/backward": "d2d",
        "op/sparse_sampled_addmm/1/backward": "d2d",
    },
    "cuBLASLt adds a bias to a single row in 2.11, which was recorded": {"op/nn_functional_linear/0": "d2d"},
}
"""The same for samples of operators and examples of rules."""


def metrics_by_name(known: dict[str, dict[str, str]]) -> dict[str, set[str]]:
    """Return the metrics in which each pattern is known to be counted wrong."""
    found: dict[str, set[str]] = {}
    for patterns in known.values():
        for name, metrics in patterns.items():
            found[name] = set(metrics.split())
    return found
