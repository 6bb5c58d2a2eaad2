"""Problems as SARIF: valid by its schema, with relative paths, columns, and what each rule means."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from finding_tickets.lint.rules import RULES
from finding_tickets.model.problem import Level, Problem
from finding_tickets.report.sarif import sarif

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
    (only,) = sarif(PROBLEMS)["runs"]
    return dict(only)


@pytest.mark.skipif(not SCHEMA.is_file(), reason="the schema of SARIF is not beside this checkout")
@pytest.mark.parametrize("problems", [PROBLEMS, []], ids=["problems", "none"])
def test_the_log_is_valid(problems: list[Problem]) -> None:
    """The schema of SARIF 2.1.0 accepts a log, also one without results, once it is JSON."""
    import jsonschema

    schema, log = json.loads(SCHEMA.read_text()), json.loads(json.dumps(sarif(problems)))
    jsonschema.Draft4Validator(schema).validate(log)


def test_results() -> None:
    """Each problem has its rule, level, message with hint, and a relative, encoded path with its place."""
    results = run()["results"]
    assert ["duplicate-id", "folder", "spelling"] == [result["ruleId"] for result in results]
    assert ["error", "warning", "note"] == [result["level"] for result in results]
    assert ["it is so", "it is so (move it)", "it is so"] == [result["message"]["text"] for result in results]
    place = results[0]["locations"][0]["physicalLocation"]
    # A space is %20 and ü, two bytes in UTF-8, is %C3%BC.
    expected = {"uri": "tickets/with%20space/B1-PT-01%20%C3%BC.md", "uriBaseId": "%SRCROOT%"}
    assert expected == place["artifactLocation"]
    assert {"startLine": 7, "startColumn": 3} == place["region"]


def test_every_rule_is_described_and_found_by_its_index() -> None:
    """The driver lists each rule with its level and a help that shows both examples."""
    log = run()
    rules = log["tool"]["driver"]["rules"]
    assert sorted(RULES) == [rule["id"] for rule in rules]
    for result in log["results"]:
        assert result["ruleId"] == rules[result["ruleIndex"]]["id"]
    for rule in rules:
        assert RULES[rule["id"]].level == rule["defaultConfiguration"]["level"]
        assert "Wrong:" in rule["help"]["markdown"]
        assert "Right:" in rule["help"]["markdown"]
        assert rule["help"]["text"].startswith(rule["shortDescription"]["text"][:-1])


def test_a_path_of_bytes_that_are_no_text() -> None:
    """They are escaped one by one, as in any URI."""
    problem = Problem(level=Level.NOTE, rule="folder", file="tickets/\udcff ü.md", line=1, message="m")
    (result,) = sarif([problem])["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert {"uri": "tickets/%FF%20%C3%BC.md", "uriBaseId": "%SRCROOT%"} == place["artifactLocation"]
