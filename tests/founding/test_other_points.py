"""The laws of a founding ticket do not depend on which points its sweep has."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import run_here

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_other_points_give_the_same_laws(tmp_path: Path) -> None:
    """Waits of the first founding ticket, as found and as fixed."""
    for path in ("tickets/B7-PT-02.md", "verifiers/b7_pt_02.py"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    shutil.copytree(ROOT / "fixes/b7_pt_02", tmp_path / "fixes/b7_pt_02")

    def laws() -> list[Any]:
        ended = run_here(tmp_path, "verify", "B7-PT-02", "--format", "json")
        variants = json.loads(ended.out)["data"][0]["variants"]
        return [variants[name]["laws"]["syncs"] for name in ("found", "fix")]

    # A check of a weight waits for NaN and for Inf, and so does one of a gradient: 2*params + 2*grads.
    assert ["2*params + 2*grads", "devices"] == laws()
    verifier = tmp_path / "verifiers/b7_pt_02.py"
    text = verifier.read_text()
    start = text.index("    sweep=[")
    points = [(0, 0, 0, 0), (2, 2, 77, 1), (3, 3, 901, 1), (8, 8, 350, 1), (13, 2, 5000, 1), (21, 9, 64, 1)]
    points += [(30, 30, 200, 2), (31, 0, 40, 3), (17, 5, 2048, 1), (44, 44, 10, 1), (26, 1, 1500, 1)]
    sweep = ", ".join(f"point({p}, {g}, {largest}, devices={d})" for p, g, largest, d in points)
    end = text.index("],\n", start)
    verifier.write_text(f"{text[:start]}    sweep=[{sweep}{text[end:]}")
    assert ["2*params + 2*grads", "devices"] == laws()
