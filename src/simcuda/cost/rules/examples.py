"""Running the examples of rules: the names that they may use."""

from __future__ import annotations

from typing import Any

import torch

from simcuda.cost.rules.registry import Rule


def example_names() -> dict[str, Any]:
    """The names that every example may use, with fresh tensors on the current CUDA device.

    ``x`` and ``y`` are vectors of 8 and of 3 floats, ``value`` is one float without dimensions, and
    ``index`` a vector of 3 integers below 3.
    """
    return {
        "torch": torch,
        "x": torch.rand(8, device="cuda"),
        "y": torch.rand(3, device="cuda"),
        "value": torch.rand((), device="cuda"),
        "index": torch.tensor([0, 2, 1], device="cuda"),
    }


def run_example(rule: Rule, names: dict[str, Any]) -> None:
    """Run the example of a rule with the names of ``example_names``."""
    exec(rule.example, names)  # noqa: S102 - the examples are this package's own
