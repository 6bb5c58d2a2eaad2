"""``tickets lint``: one line a problem, a summary, and what the exit code means."""

from __future__ import annotations

import os
import re

import pytest
from tests.cli.conftest import Ran, Tickets
from tests.conftest import Repository


def test_problems_are_lines_that_editors_understand(tickets: Tickets, repository: Repository) -> None:
    """File, line, level, rule and message on stdout; a summary on stderr; warnings fail nothing."""
    repository.ticket(more="## Related Findings\n\n- B9-PT-09: the same\n")
    ran = tickets("lint")
    expected = "tickets/B1-PT-01.md:30:3: warning [dangling-relation] B9-PT-09 is not in this register\n"
    assert (0, expected) == (ran.code, ran.out)
    assert "1 document: 0 errors, 1 warning, 0 notes\n" == ran.err


def test_a_clean_register_prints_nothing(tickets: Tickets, repository: Repository) -> None:
    """No problem, no output, exit code 0."""
    repository.ticket()
    ran = tickets("lint")
    assert (0, "") == (ran.code, ran.out)


def test_rules_can_be_looked_up(tickets: Tickets) -> None:
    """`tickets lint --rules` explains every rule in Markdown."""
    ran = tickets("lint", "--rules")
    assert 0 == ran.code
    assert "\n- **dangling-relation** (warning): A related" in ran.out


def dangling_and_misspelt(repository: Repository, ticket_id: str = "B1-PT-01") -> None:
    """A ticket that breaks spelling on line 8 and dangling-relation on line 30."""
    repository.ticket(ticket_id, severity="p2", more="## Related Findings\n\n- B9-PT-09: the same\n")


def shown(ran: Ran) -> list[str]:
    """The rules of the problems on stdout."""
    return re.findall(r"\[([a-z-]+)\]", ran.out)


@pytest.mark.parametrize(
    ("arguments", "rules"),
    [
        ((), ["spelling", "dangling-relation"]),
        (("--select", "spelling"), ["spelling"]),
        (("--select", "spelling, dangling-relation"), ["spelling", "dangling-relation"]),
        (("--select", "spelling", "--select", "dangling-relation"), ["spelling", "dangling-relation"]),
        (("--ignore", "spelling"), ["dangling-relation"]),
        (("--select", "spelling,dangling-relation", "--ignore", "spelling"), ["dangling-relation"]),
    ],
)
def test_rules_are_selected_and_ignored(
    tickets: Tickets, repository: Repository, arguments: tuple[str, ...], rules: list[str]
) -> None:
    """Only what is selected is shown, less what is ignored; both take several rules."""
    dangling_and_misspelt(repository)
    assert rules == shown(tickets("lint", *arguments))


@pytest.mark.parametrize(
    ("config", "arguments", "rules"),
    [
        ('lint_ignore = ["spelling"]', (), ["dangling-relation"]),
        ('lint_select = ["spelling"]', (), ["spelling"]),
        ('lint_ignore = ["spelling"]', ("--ignore", "dangling-relation"), []),
        ('lint_ignore = ["spelling"]', ("--select", "spelling"), ["spelling"]),
        ('lint_select = ["spelling"]', ("--select", "dangling-relation"), ["dangling-relation"]),
    ],
)
def test_the_configuration_chooses_rules(
    tickets: Tickets, repository: Repository, config: str, arguments: tuple[str, ...], rules: list[str]
) -> None:
    """Options that select replace what is configured, those that ignore add to it."""
    repository.write("tickets.toml", config)
    dangling_and_misspelt(repository)
    assert rules == shown(tickets("lint", *arguments))


@pytest.mark.parametrize("option", ["--select", "--ignore"])
def test_an_unknown_rule_is_wrong_usage(tickets: Tickets, repository: Repository, option: str) -> None:
    """A misspelt rule ends with 2 and the names of those that come close."""
    repository.ticket()
    ran = tickets("lint", option, "speling")
    assert (2, "", True) == (ran.code, ran.out, "did you mean spelling" in ran.err)


def test_an_unknown_rule_configured_is_bad_data(tickets: Tickets, repository: Repository) -> None:
    """The key is named with the rules that come close."""
    repository.write("tickets.toml", 'lint_ignore = ["speling"]')
    ran = tickets("lint")
    assert 4 == ran.code
    assert "lint_ignore" in ran.err
    assert "did you mean spelling" in ran.err


def test_words_choose_tickets(tickets: Tickets, repository: Repository) -> None:
    """The problems of the tickets that a query means are shown, and those of no other file."""
    dangling_and_misspelt(repository)
    dangling_and_misspelt(repository, "B1-PT-02")
    repository.write("tickets/B1-PT-03.md", b"\xff")
    ran = tickets("lint", "B1-PT-02")
    files = {line.split(":")[0] for line in ran.out.splitlines()}
    assert (0, {"tickets/B1-PT-02.md"}) == (ran.code, files)
    assert ran.err.startswith("1 document: 0 errors, 1 warning, 1 note")


def test_fix_shows_what_is_left(tickets: Tickets, repository: Repository) -> None:
    """What takes no judgement is fixed, which is said on stderr; the rest is printed."""
    dangling_and_misspelt(repository)
    ran = tickets("lint", "--fix")
    assert ["dangling-relation"] == shown(ran)
    assert ran.err.startswith("fixed 1 problem in 1 file\n")
    assert "| **Severity** | `P2` |" in (repository.root / "tickets/B1-PT-01.md").read_text()


def test_what_cannot_be_fixed_is_bad_data(
    tickets: Tickets, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that may not be written is named on stderr, and the exit code is 4."""
    dangling_and_misspelt(repository)
    monkeypatch.setattr(os, "access", lambda path, *_, **__: not str(path).endswith(".md"))
    ran = tickets("lint", "--fix")
    assert (4, ["spelling", "dangling-relation"]) == (ran.code, shown(ran))
    assert "error: tickets/B1-PT-01.md: cannot be written: the file is read-only" in ran.err
