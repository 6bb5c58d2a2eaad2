"""A comment in a ticket has lint ignore a rule there, if it names the rule and gives a reason."""

from __future__ import annotations

import pytest
from tests.conftest import Repository
from tests.lint.conftest import lint

RELATED = "## Related Findings\n\n- B9-PT-09: the same\n"
"""Breaks dangling-relation."""


def rules(repository: Repository, comment: str) -> list[str]:
    """The rules that a ticket with a dangling relation breaks, given this text below the relation."""
    repository.ticket(more=f"{RELATED}\n## Notes\n\n{comment}\n")
    return [problem.rule for problem in lint(repository.load())]


@pytest.mark.parametrize(
    "comment",
    [
        "<!-- lint-ignore dangling-relation: archived -->",
        "<!--lint-ignore dangling-relation:archived-->",
        "<!-- lint-ignore dangling-relation:\n     archived in\n     another register -->",
        "> <!-- lint-ignore dangling-relation: archived -->",
    ],
)
def test_a_rule_is_ignored_for_a_reason(repository: Repository, comment: str) -> None:
    """A comment of its own ignores its rule, on one line or several."""
    assert [] == rules(repository, comment)


@pytest.mark.parametrize(
    "comment",
    [
        "<!-- lint-ignore dangling-relation -->",
        "<!-- lint-ignore dangling-relation: -->",
        "<!-- lint-ignore -->",
    ],
)
def test_without_a_reason_nothing_is_ignored(repository: Repository, comment: str) -> None:
    """A comment without a reason, or without a rule, ignores nothing and is a problem."""
    assert ["dangling-relation", "suppression-form"] == rules(repository, comment)


@pytest.mark.parametrize(
    "comment",
    [
        "```html\n<!-- lint-ignore dangling-relation: archived -->\n```",
        "Write `<!-- lint-ignore dangling-relation: archived -->` into it.",
        "<!-- lint-ignored dangling-relation: archived -->",
        "<!-- we lint-ignore dangling-relation: archived -->",
    ],
)
def test_code_and_other_comments_ignore_nothing(repository: Repository, comment: str) -> None:
    """What is quoted as code, and a comment that only resembles one of ours, says nothing to lint."""
    assert ["dangling-relation"] == rules(repository, comment)


def test_an_unknown_rule_is_named_with_those_it_may_mean(repository: Repository) -> None:
    """A misspelt rule ignores nothing, and the hint has the one that was meant."""
    repository.ticket(more=f"{RELATED}\n<!-- lint-ignore dangling-relations: archived -->\n")
    _, problem = lint(repository.load())
    assert "suppression-form" == problem.rule
    assert "did you mean dangling-relation" in (problem.hint or "")


def test_several_rules_share_a_reason(repository: Repository) -> None:
    """Rules with commas between them are ignored together."""
    assert [] == rules(repository, "<!-- lint-ignore folder, dangling-relation: archived -->")


def test_what_makes_a_ticket_unreadable_cannot_be_ignored(repository: Repository) -> None:
    """An error that is bad data stays, and the comment is a problem."""
    block = "## Remediation\n\n```yaml\nclaims: 4\n```\n\n"
    found = rules(repository, f"{block}<!-- lint-ignore remediation-type, dangling-relation: later -->")
    assert ["remediation-type", "suppression-form"] == found


def test_another_ticket_is_not_spared(repository: Repository) -> None:
    """A comment holds for its own file alone."""
    comment = "<!-- lint-ignore dangling-relation: archived -->\n"
    repository.ticket(more=f"{RELATED}\n{comment}")
    repository.ticket("B1-PT-02", more=RELATED)
    problems = [(problem.rule, problem.file) for problem in lint(repository.load())]
    assert [("dangling-relation", "tickets/B1-PT-02.md")] == problems


def test_the_place_of_a_comment_is_where_it_begins(repository: Repository) -> None:
    """The line and the column of its first sign."""
    repository.ticket(more="> <!-- lint-ignore folder -->\n")
    (problem,) = lint(repository.load())
    assert (28, 3) == (problem.line, problem.column)
