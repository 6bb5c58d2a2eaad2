"""What is installed in the environment that measures."""

from __future__ import annotations

import torch


def torch_version(_: object = None) -> str:
    """The version of torch, without what tells one build of it from another."""
    return torch.__version__.split("+")[0]
