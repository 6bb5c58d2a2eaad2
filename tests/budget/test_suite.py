"""What a session of tests hands over to its budget."""

from __future__ import annotations

from finding_tickets.budget.suite import SeenSites


def test_only_waits_of_the_repositorys_lines_need_to_be_allowed() -> None:
    """What installed packages wait for has no line, and a wait that drains is there by its kind too."""
    seen = SeenSites()
    where = ("train.py", 5, "step", "")
    rows = [
        [*where, "stream_syncs", "", 2],
        [*where, "stream_syncs", "logged", 1],
        [*where, "drains", "", 3],
        ["installed packages", 0, "", "", "stream_syncs", "", 4],
    ]
    seen.add("test_step.py::test_step", {"used": True, "sites": rows})
    # Both waits of the line are told, those of a region apart.
    assert {
        ("train.py", 5, "step", "stream_syncs", ""): 2,
        ("train.py", 5, "step", "stream_syncs", "logged"): 1,
    } == seen.waits
    assert [("train.py", 5)] == list(seen.tests)
