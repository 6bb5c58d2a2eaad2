"""The devices on which nearly all of these tests run."""

import re
from collections.abc import Iterator

import pytest

import simcuda
from simcuda import SimulatedCuda

WORD = re.compile(r"\w+")


def statements_for(code: str, statements: str) -> str:
    """Return those of some assignments that make what code names, and all that are none."""
    kept: list[str] = []
    for line in reversed(statements.strip().splitlines()):
        targets, is_assignment, _ = line.partition(" = ")
        if not is_assignment or set(WORD.findall(targets)).intersection(WORD.findall(code)):
            kept.insert(0, line)
            code += line
    return "\n".join(kept)


@pytest.fixture
def gpu(request: pytest.FixtureRequest) -> Iterator[SimulatedCuda]:
    """Open one simulated device, an H200 under CUDA 13, or as many as the file names by ``DEVICES``."""
    with simcuda.device(getattr(request.module, "DEVICES", 1)) as simulated:
        yield simulated
