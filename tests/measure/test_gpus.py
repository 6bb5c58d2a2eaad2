"""Which GPUs are there to share out, with stand-ins for the machine."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from finding_tickets.measure.loading import devices_needed
from finding_tickets.measure.meter import visible_gpus

VERIFIER = """
from finding_tickets.workload import Point, Workload

workload = Workload(
    ticket="A-1",
    build=lambda point, device, generator: (),
    devices=lambda point: point.copies,
    sweep=[Point(copies=1), Point(copies=3), Point(copies=2)],
)
"""


@pytest.mark.parametrize(
    ("named", "count", "expected"),
    [
        (None, 2, ["0", "1"]),
        ("", 0, []),
        ("5, 2", 2, ["5", "2"]),
        # CUDA sees nothing from the first name on that is none of a GPU.
        ("5,-1,2", 1, ["5"]),
    ],
)
def test_gpus_have_the_names_that_cuda_takes(
    monkeypatch: pytest.MonkeyPatch, named: str | None, count: int, expected: list[str]
) -> None:
    """A choice that the user made stays a choice; without one they are numbered."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if named is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    assert expected == visible_gpus()


def test_the_point_that_needs_most_decides(tmp_path: Path) -> None:
    """A sweep over 1, 3 and 2 devices needs three."""
    (tmp_path / "verifier.py").write_text(VERIFIER, encoding="utf-8")
    assert 3 == devices_needed({"verifier": "verifier.py", "root": str(tmp_path), "code": str(tmp_path)})
