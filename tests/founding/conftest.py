"""The variants and workloads of the founding documents, loaded from their files as the tool loads them."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from finding_tickets.workload import Point, Workload

ROOT = Path(__file__).parents[2]
Variant = Callable[..., Any]


@pytest.fixture(scope="session")
def variant() -> Callable[[str, str], Variant]:
    """``variant("b7_pt_02", "fix")`` is the public function of ``fixes/b7_pt_02/fix.py``."""

    def load(ticket: str, name: str) -> Variant:
        module = _module(f"fixes/{ticket}/{name}.py")
        own = [
            value for value in vars(module).values() if getattr(value, "__module__", "") == module.__name__
        ]
        (function,) = [value for value in own if callable(value) and not value.__name__.startswith("_")]
        return function  # type: ignore[no-any-return]

    return load


@pytest.fixture(scope="session")
def workload() -> Callable[[str], Workload]:
    """``workload("b7_pt_02")`` is the workload of ``verifiers/b7_pt_02.py``."""
    return lambda ticket: _module(f"verifiers/{ticket}.py").workload


@pytest.fixture(scope="session")
def arguments(workload: Callable[[str], Workload]) -> Callable[[str, Point], tuple[Any, ...]]:
    """``arguments("b7_pt_02", point)`` are the arguments that its workload builds on the CPU."""

    def build(ticket: str, point: Point) -> tuple[Any, ...]:
        return workload(ticket).build(point, "cpu", torch.Generator().manual_seed(0))

    return build


def _module(path: str) -> ModuleType:
    name = path.removesuffix(".py").replace("/", "_")
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, ROOT / path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]
