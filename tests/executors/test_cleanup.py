"""What a killed process has started and made is gone soon after it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

# What it starts makes the folder again whenever it is gone, as a process of Ray's may that is just starting.
KILLED = """
import os, subprocess, sys
from finding_tickets.executors.cleanup import MARK, temporary_folder
with temporary_folder("tickets-test-") as folder:
    again = ["sh", "-c", f"while :; do mkdir -p {folder}; sleep 0.1; done"]
    child = subprocess.Popen(again, env={**os.environ, MARK: folder}, start_new_session=True)
    print(folder, child.pid, flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found by the environment that /proc shows")
def test_who_is_killed_takes_processes_and_files_along() -> None:
    """Also a process in a session of its own that goes on making files."""
    with subprocess.Popen(
        [sys.executable, "-c", KILLED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as killed:
        assert killed.stdout is not None
        folder, child = killed.stdout.readline().split()
        killed.kill()
    places = [Path(folder), Path("/proc", child)]
    deadline = time.monotonic() + 10
    while any(place.exists() for place in places) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [] == [place for place in places if place.exists()]
