"""What several processes measured of one ticket becomes one measurement."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.verify.conftest import report, run

from finding_tickets.measure.source import Source
from finding_tickets.measure.tasks import Measured
from finding_tickets.verify.evidence import ABSENT
from finding_tickets.verify.jobs import joined
from finding_tickets.verify.plan import Plan


def test_a_file_that_was_edited_between_two_processes_is_none_that_was_measured() -> None:
    """Evidence that names it so is stale, whichever it is now; the other files are as they were."""
    here = Path()
    variants = {name: Source(f"{name}.py", "check") for name in ("found", "fix")}
    todo = Plan("A-1", "tickets/A-1.md", here, here, here, "verifiers/a_1.py", variants)
    files = ({"a.py": "1", "same.py": "5"}, {"a.py": "2", "same.py": "5", "b.py": "3"})
    parts = [
        Measured(replace(report({name: [run({"n": 1}, syncs=1)]}), files=each), {}, {})
        for name, each in zip(variants, files, strict=True)
    ]
    whole = joined(todo, parts)
    assert isinstance(whole, Measured)
    assert {"a.py": ABSENT, "same.py": "5", "b.py": "3"} == whole.report.files
