"""The tool as a user runs it, on a repository of its own, once in a process of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Ended, run_here

ROOT = Path(__file__).parents[1]

HAND_WRITTEN = """\
# Finding Ticket: The logger reads every loss

| Field | Value |
|---|---|
| **Ticket ID** | `LOG-7` |
| **Severity** | `P1` |
| **Status** | `open` |

## Summary

**One-line summary:** One wait for each loss.

## Remediation

```yaml
claims:
  found: {syncs: losses}
  fix: {syncs: 1, same_result_as: found}
```
"""
FOUND = """\
def log(losses):
    return [loss.item() for loss in losses]
"""
FIX = """\
import torch


def log(losses):
    return torch.stack(losses).tolist()
"""
VERIFIER = """\
import torch

from finding_tickets.workload import Point, Workload, main


def build(point, device, generator):
    return ([torch.rand((), generator=generator).to(device) for _ in range(point.losses)],)


workload = Workload(ticket="LOG-7", build=build, sweep=[Point(losses=n) for n in (1, 2, 5, 9)])

if __name__ == "__main__":
    main(workload)
"""


def tickets(root: Path, *arguments: str) -> Ended:
    """Run ``tickets`` in ``root``."""
    return run_here(root, *arguments)


def verification(root: Path, ticket: str) -> dict[str, Any]:
    """What ``tickets verify --format json`` says of one ticket."""
    done = tickets(root, "verify", ticket, "--format", "json")
    envelope = json.loads(done.out)
    assert (1, "verification", 1) == (envelope["schema_version"], envelope["kind"], len(envelope["data"]))
    result: dict[str, Any] = envelope["data"][0]
    return result


def claim(result: dict[str, Any], variant: str, metric: str) -> dict[str, Any]:
    """The only claim about one metric of one variant."""
    (found,) = [c for c in result["claims"] if (c["variant"], c["metric"]) == (variant, metric)]
    return dict(found)


@pytest.fixture
def founding(tmp_path: Path) -> Path:
    """A copy of the first founding ticket with its verifier and variants."""
    for path in ("tickets/B7-PT-02.md", "verifiers/b7_pt_02.py"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    shutil.copytree(ROOT / "fixes/b7_pt_02", tmp_path / "fixes/b7_pt_02")
    return tmp_path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A repository with one ticket written by hand."""
    for path, text in {
        "tickets/log.md": HAND_WRITTEN,
        "verifiers/log_7.py": VERIFIER,
        "fixes/log_7/found.py": FOUND,
        "fixes/log_7/fix.py": FIX,
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


@pytest.mark.slow
def test_other_points_give_the_same_laws(founding: Path) -> None:
    """The laws of the first founding ticket do not depend on which points its sweep has."""
    before = verification(founding, "B7-PT-02")
    verifier = founding / "verifiers/b7_pt_02.py"
    text = verifier.read_text()
    start = text.index("    sweep=[")
    points = [(0, 0, 0, 0), (2, 2, 77, 1), (3, 3, 901, 1), (8, 8, 350, 1), (13, 2, 5000, 1), (21, 9, 64, 1)]
    points += [(30, 30, 200, 2), (31, 0, 40, 3), (17, 5, 2048, 1), (44, 44, 10, 1), (26, 1, 1500, 1)]
    sweep = ", ".join(f"point({p}, {g}, {largest}, devices={d})" for p, g, largest, d in points)
    end = text.index("],\n", start)
    verifier.write_text(f"{text[:start]}    sweep=[{sweep}{text[end:]}")
    after = verification(founding, "B7-PT-02")
    # A check of a weight waits for NaN and for Inf, and so does one of a gradient: 2*params + 2*grads.
    assert "2*params + 2*grads" == before["variants"]["found"]["laws"]["syncs"]
    assert "devices" == before["variants"]["fix"]["laws"]["syncs"]
    for name in ("found", "fix"):
        assert before["variants"][name]["laws"]["syncs"] == after["variants"][name]["laws"]["syncs"]


@pytest.mark.slow
def test_a_wait_added_to_a_fix_is_caught_with_its_line(founding: Path) -> None:
    """One ``.item()`` inside the loop of a fix makes its claim fail, and the site is that line."""
    fix = founding / "fixes/b7_pt_02/fix.py"
    text = fix.read_text()
    loop = "            torch.any(question(values), out=flag)\n"
    assert 1 == text.count(loop)
    fix.write_text(text.replace(loop, loop + "            flag.item()\n"))
    added = fix.read_text().splitlines().index("            flag.item()") + 1
    result = verification(founding, "B7-PT-02")
    assert "failed" == result["verdict"]
    assert claim(result, "fix", "syncs")["holds"] is False
    waits = {
        (site["file"], site["line"])
        for site in result["variants"]["fix"]["sites"]
        if site["what"] == "stream_syncs"
    }
    assert ("fixes/b7_pt_02/fix.py", added) in waits


def test_a_ticket_written_by_hand_is_verified_by_convention(log: Path) -> None:
    """A Markdown file dropped into the folder needs no more than claims: the rest follows from its ID."""
    command = [sys.executable, "-m", "finding_tickets", "verify", "log-7"]
    done = subprocess.run(command, cwd=log, capture_output=True, text=True, timeout=120, check=False)
    assert 0 == done.returncode, done.stderr
    assert "verified" in done.stdout
    shown = json.loads(tickets(log, "list", "--format", "json").out)["data"]
    assert [("LOG-7", "P1", "open", "verified")] == [
        (item["id"], item["severity"], item["status"], item["verdict"]) for item in shown
    ]
    assert "losses" in tickets(log, "report").out


@pytest.mark.slow
def test_a_law_that_the_sweep_does_not_determine_is_not_invented(log: Path) -> None:
    """Two points fit any line; no law is stated, while the claim is still checked at both."""
    verifier = log / "verifiers/log_7.py"
    verifier.write_text(VERIFIER.replace("(1, 2, 5, 9)", "(2, 5)"))
    result = verification(log, "LOG-7")
    assert "syncs" not in result["variants"]["found"]["laws"]
    assert claim(result, "found", "syncs")["holds"] is True
