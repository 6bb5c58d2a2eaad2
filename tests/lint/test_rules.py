"""Every lint rule finds what it is for, at its line, and leaves what is right alone."""

from __future__ import annotations

import re

import pytest
from tests.conftest import Repository
from tests.lint.conftest import lint
from tests.lint.page import explanations

from finding_tickets.errors import ExitCode
from finding_tickets.lint.engine import exit_code
from finding_tickets.lint.rules import RULES
from finding_tickets.model.ticket import Problem
from finding_tickets.model.vocabulary import Level

# Lines of a ticket that the fixture writes: 1 title, 7 ID, 8 severity, 9 status, 15 file, 26 the checklist's
# item, 28 where `more` begins. A Remediation's YAML begins 3 lines later.
ID, STATUS, FILE, ITEM, MORE = 7, 9, 15, 26, 28
YAML = MORE + 3


def remediation(*lines: str) -> str:
    """A Remediation section with these lines of YAML."""
    return "\n".join(["## Remediation", "", "```yaml", *lines, "```", ""])


def found(repository: Repository) -> list[tuple[str, str, int]]:
    """Rule, file and line of every problem."""
    return [(problem.rule, problem.file, problem.line) for problem in lint(repository.load())]


def test_duplicate_id_names_both_places(repository: Repository) -> None:
    """Two documents with one ID are each told of the other, in any case of the ID; files come one by one."""
    repository.ticket(path="tickets/a/B1-PT-01.md", more="## Related Findings\n\n- B9-PT-09: the same\n")
    repository.ticket("b1-pt-01", path="tickets/b/B1-PT-01.md")
    problems = lint(repository.load())
    assert [
        ("tickets/a/B1-PT-01.md", ID, "B1-PT-01 is also the ID of tickets/b/B1-PT-01.md:7"),
        ("tickets/a/B1-PT-01.md", MORE + 2, "B9-PT-09 is not in this register"),
        ("tickets/b/B1-PT-01.md", ID, "B1-PT-01 is also the ID of tickets/a/B1-PT-01.md:7"),
    ] == [(problem.file, problem.line, problem.message) for problem in problems]
    assert ExitCode.BAD_DATA == exit_code(problems)


def test_agents_of_ones_own_need_no_configuration(repository: Repository) -> None:
    """Who found and who reviewed something is not looked at unless the register says who its agents are."""
    review = "## Cross-Review\n\n| Reviewer | Verdict | Why |\n|---|---|---|\n| kim | ENDORSE | Yes. |\n"
    repository.ticket(rows="| **Agent** | `gpt-7` |\n", more=review)
    assert [] == found(repository)
    repository.write("tickets.toml", 'agents = ["ada"]\n')
    assert {"unknown-agent", "unknown-word"} == {rule for rule, _, _ in found(repository)}


def test_one_way_relation(repository: Repository) -> None:
    """A relation that the other ticket does not return is noted, with what to write there."""
    repository.ticket(
        more="## Related Findings\n\n| Ticket ID | Relationship | Notes |\n|---|---|---|\n"
        "| B1-PT-02 | blocks | it |\n"
    )
    repository.ticket("B1-PT-02")
    (problem,) = lint(repository.load())
    # The heading, an empty line, the header and its rule come before the row.
    assert (
        "one-way-relation",
        MORE + 4,
        "add B1-PT-01 to its related findings, as blocked-by",
    ) == (
        problem.rule,
        problem.line,
        problem.hint,
    )
    repository.ticket("B1-PT-02", more="## Related Findings\n\n- b1-pt-01: it\n")
    assert [] == found(repository)


@pytest.mark.parametrize(
    ("status", "resolution", "contradicts"),
    [
        ("open", "FIXED", True),
        ("fixed", "WONT-FIX", True),
        ("wont-fix", "ACCEPTABLE", False),
        ("invalid", "FIXED", True),
    ],
)
def test_contradiction(repository: Repository, status: str, resolution: str, contradicts: bool) -> None:
    """A status that does not fit the resolution is found at the status."""
    repository.ticket(status=status, more=f"## Resolution\n\n### Status: {resolution}\n")
    problems = [problem for problem in found(repository) if problem[0] == "contradiction"]
    assert ([("contradiction", "tickets/B1-PT-01.md", STATUS)] if contradicts else []) == problems


def test_a_recommendation_is_no_resolution(repository: Repository) -> None:
    """What the author of an open ticket proposes contradicts nothing; a row of the metadata does."""
    more = "## Resolution\n\n**Acceptable as-is** - measure it before anything is changed.\n"
    repository.ticket(status="open", more=more)
    assert [("missing-remediation", "tickets/B1-PT-01.md", ID)] == found(repository)
    repository.ticket(status="open", rows="| **Resolution** | `fixed` |\n", more=more)
    assert "contradiction" in [rule for rule, *_ in found(repository)]


@pytest.mark.parametrize(
    ("folder", "status", "message"),
    [
        ("wontfix", "open", "the status is open, the folder wontfix"),
        ("triaged", "wont-fix", "the status is wont-fix, the folder triaged"),
        ("backlog", "wont-fix", "the status is wont-fix, the folder backlog"),
        ("in-review", "wont-fix", "the status is wont-fix, the folder in-review"),
        ("fixed", "wont-fix", "the ticket is wont-fix, the folder fixed"),
        ("triaged", "open", None),
        ("closed", "wont-fix", None),
        # What was not fixed may be told apart as invalid or not: the folder of either will do.
        ("not-a-bug", "wont-fix", None),
        ("2025", "open", None),
    ],
)
def test_folder(repository: Repository, folder: str, status: str, message: str | None) -> None:
    """A folder called after a status or an outcome is compared with the ticket, at its status."""
    repository.ticket(status=status, path=f"tickets/{folder}/B1-PT-01.md")
    problems = [problem for problem in lint(repository.load()) if problem.rule == "folder"]
    assert ([message] if message else []) == [problem.message for problem in problems]
    assert {STATUS} >= {problem.line for problem in problems}


@pytest.mark.parametrize(("second", "rejected"), [("ENDORSE", False), ("REFINE", False), ("NEUTRAL", True)])
def test_unanswered_objection(repository: Repository, second: str, rejected: bool) -> None:
    """An objection counts unless somebody agrees with the finding; a neutral review takes no side."""
    repository.ticket(
        status="open",
        more="## Cross-Review\n\n| Reviewer | Verdict | Evaluation |\n|---|---|---|\n"
        f"| drl | OBJECT | No. |\n| pytorch | {second} | Perhaps. |\n",
    )
    assert rejected is ("unanswered-objection" in [rule for rule, *_ in found(repository)])


def test_a_remediation_that_is_there_is_not_missed(repository: Repository) -> None:
    """A misspelt heading is named; a block that is not understood is said to be that, and no more."""
    # The ticket's own text ends on line 26.
    repository.ticket(status="open", more="## Remedation\n\n```yaml\n```\n")
    (problem,) = lint(repository.load())
    assert ("missing-remediation", "did you mean line 28: Remedation?") == (problem.rule, problem.hint)
    repository.ticket(status="open", more="## Remediation\n\n```\nclaims: {}\n```\n")
    (problem,) = lint(repository.load())
    assert ("remediation-block", "its fence begins with ```yaml") == (problem.rule, problem.hint)


ANSWER = ("checklist:", "  - {item: Count the waits, why: by hand}")


def measured(repository: Repository, *lines: str) -> list[tuple[str, int]]:
    """Rules and lines of the problems of a ticket with a verifier, a variant and this Remediation."""
    repository.write("verifiers/b1_pt_01.py", "")
    repository.write("fixes/b1_pt_01/found.py", "def slow(): ...\n")
    repository.ticket(more=remediation(*lines))
    return [(rule, line) for rule, _, line in found(repository)]


def test_a_remediation_by_convention_has_no_problem(repository: Repository) -> None:
    """Verifier and variants where they are expected need not be named."""
    assert [] == measured(repository, "claims:", "  found: {syncs: 4*params}", *ANSWER)


def test_a_claim_about_a_time(repository: Repository) -> None:
    """Times are not measured, and where such a claim belongs is said."""
    problems = measured(repository, "claims:", "  found:", "    seconds: <= 0.5*fix", *ANSWER)
    assert [("unknown-metric", YAML + 2)] == problems
    (problem,) = lint(repository.load())
    assert "times are not measured: list the claim under unmeasured" == problem.hint


def test_what_is_misspelt_in_remediation_is_guessed(repository: Repository) -> None:
    """A variant or a function that is there under nearly the same name is named."""
    measured(
        repository,
        "variants:",
        "  found: fixes/b1_pt_01/found.py:slwo",
        "claims:",
        "  foundd: {syncs: 1}",
        *ANSWER,
    )
    function, variant = lint(repository.load())
    assert ("missing-variant", "did you mean 'slow'? known: slow") == (function.rule, function.hint)
    assert ("unknown-variant", "did you mean 'found'?") == (variant.rule, variant.hint)


def test_variants_that_are_there(repository: Repository) -> None:
    """A function may be imported or assigned; one at a revision is not looked for in the working tree."""
    repository.write("fixes/b1_pt_01/fix.py", "from found import slow as imported\nassigned = imported\n")
    problems = measured(
        repository,
        "variants:",
        "  found: fixes/b1_pt_01/fix.py:imported",
        "  fix: fixes/b1_pt_01/fix.py:assigned",
        "  before: fixes/b1_pt_01/gone.py:slow@HEAD~1",
        *ANSWER,
    )
    assert [] == problems


@pytest.mark.parametrize(
    ("rule", "lines", "line"),
    [
        ("remediation-path", ["verifier: ../outside.py", "claims: {found: {syncs: 1}}"], YAML),
        ("remediation-path", ["variants:", "  fix: ../fix.py:slow", "claims: {fix: {syncs: 1}}"], YAML + 1),
        ("remediation-variant", ["variants:", "  fix: fix.py", "claims: {fix: {syncs: 1}}"], YAML + 1),
    ],
)
def test_one_cause_is_one_problem(repository: Repository, rule: str, lines: list[str], line: int) -> None:
    """What the reader refused is not missed once more as a verifier or a variant that is not there."""
    assert [(rule, line)] == [
        problem for problem in measured(repository, *lines, *ANSWER) if problem[0] != "unknown-claim"
    ]


def test_a_link_out_of_the_repository(
    repository: Repository, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A path that looks inside and is a link to the outside is refused as bad data."""
    outside = tmp_path_factory.mktemp("outside") / "verifier.py"
    outside.write_text("")
    repository.write("verifiers/readme", "")
    (repository.root / "verifiers/linked.py").symlink_to(outside)
    problems = measured(repository, "verifier: verifiers/linked.py", *ANSWER)
    assert [("outside-repository", YAML - 1)] == problems
    assert ExitCode.BAD_DATA == exit_code(lint(repository.load()))


def test_unknown_claim(repository: Repository) -> None:
    """An answer may name a claim, all values of a metric, and what `fix` will claim while there is no fix."""
    answer = [
        "checklist:",
        "  - {item: Count the waits, claims: [found.syncs, 'found.syncs[1]', fix.syncs]}",
    ]
    claims = ["claims:", "  found: {syncs: [<= 9, O(params)]}"]
    assert [] == measured(repository, *claims, *answer)
    # There is a fix now, and nothing is claimed of its waits; of copies, nothing was claimed before.
    fixed = measured(repository, *claims, "  fix: {d2h: 1}", *answer)
    copies = measured(repository, *claims, *answer[:1], answer[1].replace("fix.syncs", "fix.d2h"))
    assert ("unknown-claim", YAML + 4) in fixed
    assert [("unknown-claim", YAML + 3)] == copies
    assert ExitCode.GATE_FAILED == exit_code(lint(repository.load()))


def test_warnings_and_notes_fail_nothing() -> None:
    """Only errors have a code of their own; an error that no rule stands for is bad data."""

    def problem(level: Level, rule: str) -> Problem:
        return Problem(level=level, rule=rule, file="a.md", line=1, message="")

    assert ExitCode.OK == exit_code([problem(Level.WARNING, "file-name"), problem(Level.NOTE, "unreadable")])
    assert ExitCode.GATE_FAILED == exit_code([problem(Level.ERROR, "missing-verifier")])
    assert ExitCode.BAD_DATA == exit_code(
        [problem(Level.ERROR, "missing-verifier"), problem(Level.ERROR, "unreadable")]
    )


def test_every_rule_explains_itself() -> None:
    """A rule says in a sentence what is asked for, and why."""
    stated = explanations()
    assert set(RULES) == set(stated)
    assert [] == [name for name, each in stated.items() if not re.fullmatch(r"[A-Z].{15,}\.", each.reason)]
