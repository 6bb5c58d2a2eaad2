"""Problems as SARIF 2.1.0, the format of code scanning services."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from finding_tickets import __version__
from finding_tickets.lint.rules import RULES, Rule
from finding_tickets.lint.rules.page import entry_text
from finding_tickets.model.problem import Level, Problem

VERSION = "2.1.0"
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
ROOT = "%SRCROOT%"
"""The name, usual in SARIF, of the folder that all paths are relative to."""


def sarif(problems: Iterable[Problem]) -> dict[str, Any]:
    """A log of one run: every rule, and a result for each problem. Columns count characters, from 1."""
    rules = [RULES[name] for name in sorted(RULES)]
    index = {rule.id: number for number, rule in enumerate(rules)}
    driver = {"name": "tickets", "version": __version__, "rules": [_descriptor(rule) for rule in rules]}
    return {
        "$schema": SCHEMA,
        "version": VERSION,
        "runs": [
            {
                "tool": {"driver": driver},
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {ROOT: {"description": {"text": "The root of the register."}}},
                "results": [_result(problem, index) for problem in problems],
            }
        ],
    }


def artifact(file: str) -> dict[str, str]:
    """A file by its path from the register's root, of which any byte may be no text."""
    return {"uri": quote(file, errors="surrogateescape"), "uriBaseId": ROOT}


def _descriptor(rule: Rule) -> dict[str, Any]:
    """The metadata of a rule; its help is what the page of rules says of it."""
    reason = {"text": rule.reason.replace("`", "")}
    return {
        "id": rule.id,
        "shortDescription": {"text": _first_sentence(reason["text"])},
        "fullDescription": reason,
        "help": {"text": reason["text"], "markdown": entry_text(rule)},
        "defaultConfiguration": {"level": rule.level.value},
        "properties": {"tags": _tags(rule)},
    }


def _first_sentence(text: str) -> str:
    return text.partition(". ")[0].removesuffix(".") + "."


def _tags(rule: Rule) -> Sequence[str]:
    return [*(["bad-data"] if rule.bad_data else []), *(["fixable"] if rule.mends else [])]


def _result(problem: Problem, index: Mapping[str, int]) -> dict[str, Any]:
    hint = f" ({problem.hint})" if problem.hint else ""
    return {
        "ruleId": problem.rule,
        **({"ruleIndex": index[problem.rule]} if problem.rule in index else {}),
        "level": _LEVELS[problem.level],
        "message": {"text": problem.message + hint},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": artifact(problem.file),
                    "region": {"startLine": problem.line, "startColumn": problem.column},
                }
            }
        ],
    }


_LEVELS = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "note"}
