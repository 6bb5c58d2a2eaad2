"""Recordings of real devices hold the simulation to its word."""

from __future__ import annotations

from pathlib import Path

import pytest

from simcuda.agree import agreement, to_lines
from simcuda.recording.recorder import Recording, read_recording

RECORDINGS = [read_recording(path) for path in sorted(Path(__file__).parent.glob("*.json.gz"))]
REAL = [recording for recording in RECORDINGS if recording.environment["made_by"] == "real"]

ENOUGH = ("rule/*", "workload/*", "optimizer/*", "op/index*", "op/masked*/0*", "op/nn_functional_*/0*")
"""What is compared in every run of the tests; ``python -m simcuda.agree`` compares everything."""

NONE_YET = pytest.param(None, marks=pytest.mark.skip(reason="no recording of a real device exists yet"))


def test_recordings_of_the_simulation_have_a_name_that_says_so() -> None:
    """Nobody takes a recording that the simulation made for one of a real device."""
    files = sorted(Path(__file__).parent.glob("*.json.gz"))
    simulated = [path.name.startswith("simulated-") for path in files]
    assert simulated
    assert simulated == [recording.environment["made_by"] == "simulated" for recording in RECORDINGS]


@pytest.mark.parametrize("recording", REAL or [NONE_YET])
def test_the_simulation_agrees_with_real_devices(recording: Recording) -> None:
    """Under the profile of each real recording, the simulation agrees as far as it promises."""
    found = agreement(recording, ENOUGH)
    assert not found.falls_short, "\n".join(to_lines(found))
