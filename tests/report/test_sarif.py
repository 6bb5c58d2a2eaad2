"""Problems and reports as SARIF 2.1.0."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft4Validator
from tests.conftest import Repository
from tests.report.conftest import ROWS, claim, report, row

from finding_tickets.lint.rules import RULES
from finding_tickets.model.ticket import Problem
from finding_tickets.model.vocabulary import Level, Verdict
from finding_tickets.report.formats import sarif
from finding_tickets.report.formats.sarif import lint_log, write_report
from finding_tickets.report.rows import ReportRow, rows_of
from finding_tickets.report.status import StatusReport, status_of_rows

SCHEMA = Path(__file__).parents[3] / "shared/schemas/sarif-schema-2.1.0.json"
PROBLEMS = [
    Problem(
        level=level,
        rule=rule,
        file="tickets/with space/B1-PT-01 ü.md",
        line=7,
        column=3,
        message="it is so",
        hint=hint,
    )
    for level, rule, hint in [
        (Level.ERROR, "duplicate-id", None),
        (Level.WARNING, "folder", "move it"),
        (Level.NOTE, "spelling", None),
    ]
]


def run() -> Mapping[str, Any]:
    """The one run of a log of three problems."""
    (only,) = lint_log(PROBLEMS)["runs"]
    return dict(only)


@pytest.mark.skipif(not SCHEMA.is_file(), reason="the schema of SARIF is not beside this checkout")
@pytest.mark.parametrize("problems", [PROBLEMS, []], ids=["problems", "none"])
def test_the_log_is_valid(problems: list[Problem]) -> None:
    """The schema of SARIF 2.1.0 accepts a log, also one without results, once it is JSON."""
    import jsonschema

    schema, log = json.loads(SCHEMA.read_text()), json.loads(json.dumps(lint_log(problems)))
    jsonschema.Draft4Validator(schema).validate(log)


def test_every_rule_is_described_and_found_by_its_index() -> None:
    """The driver lists each rule with its level and a help that says why it is there."""
    log = run()
    rules = log["tool"]["driver"]["rules"]
    assert sorted(RULES) == [rule["id"] for rule in rules]
    for result in log["results"]:
        assert result["ruleId"] == rules[result["ruleIndex"]]["id"]
    for rule in rules:
        assert RULES[rule["id"]].level == rule["defaultConfiguration"]["level"]
        assert rule["help"]["text"] == rule["help"]["markdown"].replace("`", "")
        assert rule["help"]["text"].startswith(rule["shortDescription"]["text"][:-1])


VALIDATOR = Draft4Validator(json.loads(SCHEMA.read_text())) if SCHEMA.is_file() else None


def read(made: StatusReport) -> dict[str, Any]:
    """The only run of a report."""
    log = json.loads("".join(write_report(made)))
    if VALIDATOR:
        VALIDATOR.validate(log)
    (run,) = log["runs"]
    return dict(run)


def by_ticket(made: StatusReport) -> dict[str, Any]:
    """The results by the tickets they are about."""
    return {each["properties"]["ticket"]: each for each in read(made)["results"]}


@pytest.mark.parametrize("verdict", Verdict)
def test_an_open_ticket(verdict: Verdict) -> None:
    """The level follows the verdict; what passed is no alert."""
    alerts = read(report([row(verdict=verdict, claims=[claim()])]))["results"]
    levels = {
        Verdict.VERIFIED: [],
        Verdict.FAILED: ["error"],
        Verdict.REFUTED: ["warning"],
        Verdict.REPRODUCED: ["warning"],
    }
    assert levels.get(verdict, ["note"]) == [alert["level"] for alert in alerts]
    assert all(verdict.value == alert["ruleId"] for alert in alerts)


def test_a_settled_ticket_is_no_alert_unless_its_measurement_speaks_against_it() -> None:
    """Closed and not measured: people's decision stands. Closed and failed: it does not."""
    rows = [
        row("T-1", status="wont-fix"),
        row("T-2", status="fixed", verdict=Verdict.FAILED, claims=[]),
        row("T-3", status="fixed", verdict=Verdict.REPRODUCED, claims=[]),
    ]
    assert ["T-2"] == list(by_ticket(report(rows)))


def test_fingerprints_are_those_of_the_ticket() -> None:
    """Whatever else changes, the ticket's ID says which alert it is; two tickets have two."""
    prints = [by_ticket(report([row("T-1", text), row("T-2", text)])) for text in ("one", "other")]
    first, second = ({name: each["partialFingerprints"] for name, each in found.items()} for found in prints)
    assert first == second
    assert first["T-1"]["primaryLocationLineHash"] != first["T-2"]["primaryLocationLineHash"]
    assert "T-1" == first["T-1"]["ticket/v1"]


def test_github_gets_as_many_as_it_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worst come first; how many are left out is said in the log."""
    monkeypatch.setattr(sarif, "MOST_ALERTS", 2)
    rows = [row(f"T-{number}", severity=f"P{4 - number}") for number in range(4)]
    run = read(report(rows))
    assert ["T-3", "T-2"] == [each["properties"]["ticket"] for each in run["results"]]
    (note,) = run["invocations"][0]["toolExecutionNotifications"]
    assert note["message"]["text"].startswith("2 results are left out")
    assert [] == read(report(rows[:2]))["invocations"][0]["toolExecutionNotifications"]


def places(repository: Repository) -> list[tuple[str, dict[str, int] | None]]:
    """Where the results of the register are."""
    facts = repository.load()
    made = StatusReport(facts, status_of_rows(rows_of(facts, facts.entries), facts))
    found = [each["locations"][0]["physicalLocation"] for each in read(made)["results"]]
    return [(each["artifactLocation"]["uri"], each.get("region")) for each in found]


def test_a_result_is_where_the_code_is(repository: Repository) -> None:
    """The first file of the ticket that this repository has; otherwise the ticket. GitHub needs a line."""
    repository.write("src/with space.py", "x\n")
    repository.ticket("T-1", status="open", file="gone.py` and `code.py:1-3")
    repository.ticket("T-2", status="open", file="src/with space.py")
    repository.ticket("T-3", status="open", file="/etc/passwd")
    repository.ticket("T-4", status="open", file="../outside.py")
    repository.root.parent.joinpath("outside.py").write_text("x")
    assert [
        ("code.py", {"startLine": 1, "endLine": 3}),
        ("src/with%20space.py", {"startLine": 1}),
        ("tickets/T-3.md", {"startLine": 1}),
        ("tickets/T-4.md", {"startLine": 1}),
    ] == places(repository)


def test_a_title_is_no_link() -> None:
    """A message of SARIF may have links, and no ticket decides to have one."""
    text = by_ticket(report([row("T-1", "[x](https://example.com) [y](1)")]))["T-1"]["message"]["text"]
    assert "](" not in text


@pytest.mark.skipif(VALIDATOR is None, reason="the schema of SARIF is not beside this checkout")
@given(rows=ROWS)
def test_any_text_is_valid(rows: list[ReportRow]) -> None:
    """The schema of SARIF 2.1.0 accepts every report, with a result for each piece of open work."""
    made = report(rows)
    assert len(made.status.alerts) == len(read(made)["results"])
