"""The page of lint rules is complete and says what the code does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.lint.page import rules_page

from finding_tickets.documents.remediation import RULES_OF_ERRORS
from finding_tickets.lint.rules import RULES
from finding_tickets.register.files import UNREADABLE

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "finding_tickets"
REPORTERS = {"report": 0, "utf8_text": 0, "wrong": 1, "problem_in": 1}
"""Functions by which the reader reports, and which of their arguments is the rule."""


def reported() -> Iterator[str]:
    """Every rule that the reader reports, as its source names it."""
    for file in [*(SOURCE / "documents").rglob("*.py"), *(SOURCE / "register").rglob("*.py")]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = (
                    node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                )
                named = {keyword.arg: keyword.value for keyword in node.keywords}
                rule = node.args[REPORTERS[name]] if name in REPORTERS else named.get("rule")
                if isinstance(rule, ast.Name) and rule.id == "UNREADABLE":
                    rule = ast.Constant(UNREADABLE)
                if isinstance(rule, ast.Constant) and re.fullmatch("[a-z0-9-]+", str(rule.value)):
                    # Rules about a remediation are named without their prefix.
                    yield ("remediation-" if name == "wrong" else "") + str(rule.value)
    yield from (f"remediation-{each}" for each in RULES_OF_ERRORS.values())


def test_the_page_is_current() -> None:
    """docs/lint-rules.md is what `python -m tests.lint.page` prints."""
    assert rules_page() == (ROOT / "docs/lint-rules.md").read_text(encoding="utf-8").rstrip("\n")


def test_what_the_reader_reports_is_documented() -> None:
    """The page has every rule of the reader, and none that the reader does not have."""
    checked_too = {"outside-repository"}
    assert set(reported()) - checked_too == {rule.id for rule in RULES.values() if rule.is_reported}
