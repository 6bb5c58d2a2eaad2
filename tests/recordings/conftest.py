"""Small recordings that the simulated device makes."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from simcuda.profile import DEFAULT_PROFILE, PROFILES
from simcuda.recording.recorder import Recording, record
from simcuda.recording.selection import Selection

RULES = Selection(samples=1, only=("rule/*",))

VERIFIER = """
from types import SimpleNamespace

import torch


def build(point, device, generator):
    return (point["n"], torch.rand(4, generator=generator).to(device))


workload = SimpleNamespace(
    build=build,
    sweep=[{"n": 1}, {"n": 2}, {"n": 3}],
    devices=lambda point: 1,
    memory=lambda point: None,
    read=lambda result: result.tolist(),
    seed=0,
)
"""

VARIANTS = {
    "exits": "return os._exit(3) if n == 3 else values + 1",
    "fine": "return values + 1",
    "killed": "return os.kill(os.getpid(), signal.SIGKILL) if n == 2 else values + 1",
    "raises": "return values.view(3)",
}


@pytest.fixture(scope="session")
def profile() -> dict[str, Any]:
    """The default profile, as a header has it."""
    return asdict(PROFILES[DEFAULT_PROFILE])


@pytest.fixture(scope="session")
def small(profile: dict[str, Any]) -> Recording:
    """The examples of all rules."""
    return record(RULES, profile, say=str)


@pytest.fixture(scope="session")
def again(profile: dict[str, Any]) -> Recording:
    """The same, recorded a second time."""
    return record(RULES, profile, say=str)


@pytest.fixture(scope="session")
def battered(
    profile: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Recording, list[str]]:
    """Variants of ``work(n, values)``, some of which end their process, and what was told on the way."""
    root, told = tmp_path_factory.mktemp("repository"), list[str]()
    verifier, fixes = root / "verifiers/mine.py", root / "fixes/mine"
    verifier.parent.mkdir()
    fixes.mkdir(parents=True)
    verifier.write_text(VERIFIER)
    for name, body in VARIANTS.items():
        (fixes / f"{name}.py").write_text(f"import os, signal\n\n\ndef work(n, values):\n    {body}\n")
    selection = Selection(1, ("verifier/*",), (str(verifier),))
    return record(selection, profile, say=told.append), told
