"""The command that measures all patterns, on the simulated device."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from tests.gpu.run import Recording, read_recording, run_all

ROOT = Path(__file__).parents[2]


# Each process loads torch.
@pytest.mark.slow
def test_a_process_that_ends_is_recorded_and_the_rest_run_in_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first name ends its process, since there is no such pattern."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), str(ROOT)]))
    recording = Recording(tmp_path / "recording.json.gz")
    run_all([["no such pattern", "value.item()"]], recording, ["--by", "simulation"], time.monotonic() + 300)
    recording.write()
    written = read_recording(tmp_path / "recording.json.gz")
    assert "simulated h200-cuda13" == written["machine"]["gpu"]
    assert {"waits": 1, "d2h": 1} == written["patterns"]["value.item()"]["counted"]
    assert "the process ended; exit status 1" == written["patterns"]["no such pattern"]["error"]
