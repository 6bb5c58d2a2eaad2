"""The reports that a finding came from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.documents.conftest import Finding


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('**Report file:** `a.md`\n**Section:** "One"\n', [("a.md", '"One"')]),
        (
            '**Report file:** `a.md`\n**Section:** "One"\n\n**Report file:** `b.md`\n**Section:** P2 (2)\n',
            [("a.md", '"One"'), ("b.md", "P2 (2)")],
        ),
        ("**Report file:** `a.md`\n", [("a.md", "")]),
        ("**Report files:**\n- `a.md` Section: P1 (x)\n- b.md\n", [("a.md", "P1 (x)"), ("b.md", "")]),
        ("Report file: a.md\nSection: P2\n", [("a.md", "P2")]),
        ("**Source:** `a.md`\n**Section:** P2\n", [("a.md", "P2")]),
        ("See `docs/a.md` and `f()`.\n", [("docs/a.md", "")]),
        ("Nothing.\n", []),
    ],
)
def test_reports(finding: Finding, text: str, expected: list[tuple[str, str]]) -> None:
    """Files with their sections, in pairs or in a list."""
    ticket = finding(f"## Appendix\n\n### Original Report Reference\n\n{text}").ticket
    assert expected == [(link.file, link.section) for link in ticket.reports]
