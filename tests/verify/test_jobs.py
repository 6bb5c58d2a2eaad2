"""What several processes measured of one ticket becomes one measurement."""

from __future__ import annotations

from pathlib import Path

from tests.verify.conftest import report, run

from finding_tickets.measure.tasks import FunctionPath
from finding_tickets.model.verification import MeasuredTicket
from finding_tickets.register.staleness import ABSENT
from finding_tickets.verify.jobs import joined
from finding_tickets.verify.plan import Plan


def test_a_file_that_was_edited_between_two_processes_is_none_that_was_measured() -> None:
    """Evidence that names it so is stale, whichever it is now; the other files are as they were."""
    here = Path()
    variants = {name: FunctionPath(f"{name}.py", "check") for name in ("found", "fix")}
    todo = Plan("A-1", "tickets/A-1.md", here, here, here, "verifiers/a_1.py", variants)
    files = ({"a.py": "1", "same.py": "5"}, {"a.py": "2", "same.py": "5", "b.py": "3"})
    parts = [
        report({name: [run({"n": 1}, syncs=1)]}).model_copy(update={"files": each})
        for name, each in zip(variants, files, strict=True)
    ]
    whole = joined(todo, parts)
    assert isinstance(whole, MeasuredTicket)
    assert {"a.py": ABSENT, "same.py": "5", "b.py": "3"} == whole.files
