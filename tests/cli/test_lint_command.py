"""``tickets lint``: one line a problem, a summary, and what the exit code means."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.conftest import Ran
    from tests.conftest import Repository

Tickets = Callable[..., "Ran"]


def test_problems_are_lines_that_editors_understand(tickets: Tickets, repository: Repository) -> None:
    """File, line, level, rule and message on stdout; a summary on stderr; warnings fail nothing."""
    repository.ticket(more="## Related Findings\n\n- B9-PT-09: the same\n")
    ran = tickets("lint")
    expected = "tickets/B1-PT-01.md:30:3: warning [dangling-relation] B9-PT-09 is not in this register\n"
    assert (0, expected) == (ran.code, ran.out)
    assert "1 document: 0 errors, 1 warning, 0 notes\n" == ran.err


def test_json(tickets: Tickets, repository: Repository) -> None:
    """The same problems as data, those of the reader among them."""
    repository.ticket(severity="urgent")
    (problem,) = tickets("lint", "--format", "json").data
    assert {"level", "rule", "file", "line", "column", "message", "hint", "fixable"} == set(problem)
    assert ("unknown-word", "tickets/B1-PT-01.md", 8) == (problem["rule"], problem["file"], problem["line"])


def test_a_clean_register_prints_nothing(tickets: Tickets, repository: Repository) -> None:
    """No problem, no output, exit code 0."""
    repository.ticket()
    ran = tickets("lint")
    assert (0, "") == (ran.code, ran.out)


def test_exit_codes(tickets: Tickets, repository: Repository) -> None:
    """Errors fail the gate; what makes the register unreadable is bad data, and comes first."""
    repository.ticket(more="## Remediation\n\n```yaml\nverifier: verifiers/gone.py\n```\n")
    assert 1 == tickets("lint").code
    repository.write("tickets/B1-PT-02.md", b"\xff")
    assert 4 == tickets("lint").code


def test_rules_can_be_looked_up(tickets: Tickets) -> None:
    """`tickets lint --rules` explains every rule in Markdown."""
    ran = tickets("lint", "--rules")
    assert 0 == ran.code
    assert "\n## dangling-relation\n" in ran.out
