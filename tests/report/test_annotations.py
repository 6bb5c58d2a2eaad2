"""Problems as workflow commands of GitHub."""

from __future__ import annotations

import pytest

from finding_tickets.model.problem import Level, Problem
from finding_tickets.report.github import annotation


@pytest.mark.parametrize(
    ("level", "command"), [(Level.ERROR, "error"), (Level.WARNING, "warning"), (Level.NOTE, "notice")]
)
def test_a_command_for_each_level(level: Level, command: str) -> None:
    """A note is what GitHub calls a notice."""
    problem = Problem(
        level=level, rule="folder", file="tickets/a.md", line=7, column=3, message="no", hint="move"
    )
    assert f"::{command} file=tickets/a.md,line=7,col=3,title=folder::no (move)" == annotation(problem)


def test_what_has_a_meaning_is_escaped() -> None:
    """Per cent signs and line ends are escaped everywhere, commas and colons in properties as well."""
    problem = Problem(level=Level.ERROR, rule="folder", file="a,b:c%.md", line=1, message="50%: a,\r\nb")
    expected = "::error file=a%2Cb%3Ac%25.md,line=1,col=1,title=folder::50%25: a,%0D%0Ab"
    assert expected == annotation(problem)


def test_a_long_message_is_cut() -> None:
    """GitHub takes 64 KB of a message; what it advises stays."""
    problem = Problem(level=Level.NOTE, rule="r", file="a.md", line=1, message="m" * 100_000, hint="do")
    assert f"::notice file=a.md,line=1,col=1,title=r::{'m' * 3_999}\u2026 (do)" == annotation(problem)
