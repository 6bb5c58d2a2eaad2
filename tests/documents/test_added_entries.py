"""Variants and claims are added in the style of the YAML that is there, and every other byte stays."""

from __future__ import annotations

import pytest

from finding_tickets.documents.remediation import YamlText, add_entries
from finding_tickets.documents.source import Source, spliced
from finding_tickets.model.vocabulary import Vocabulary

ENTRIES = {"variants": {"fix": "@worktree"}, "claims": {"fix": {"syncs": "max(1, 2*n)", "d2h": "0..3"}}}
CLAIMS = 'fix: {syncs: "max(1, 2*n)", d2h: 0..3}'
FLOW = "[1,\r\n      2] # y"
FIX = "claims:\n  fix:\n    syncs: max(1, 2*n)\n"


def added(text: str) -> str:
    """The text of a file beside a ticket, with the entries."""
    data = text.encode()
    splices = add_entries(
        YamlText(Source("a.yaml", data, Vocabulary()), data.decode("utf-8-sig"), 1), ENTRIES
    )
    return spliced(data, splices).decode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            'variants: {found: "@a"}  # x\nclaims: {}\n',
            f'variants: {{found: "@a", fix: "@worktree"}}  # x\nclaims: {{{CLAIMS}}}\n',
            id="braces",
        ),
        pytest.param(
            f"variants:\r\n    found: a  # é\r\n\r\nclaims:\r\n  found:\r\n    d2h: {FLOW}\r\n\r\n# end",
            'variants:\r\n    found: a  # é\r\n    fix: "@worktree"\r\n\r\nclaims:\r\n  found:\r\n'
            f"    d2h: {FLOW}\r\n  {CLAIMS}\r\n\r\n# end",
            id="lines that end in CRLF",
        ),
        pytest.param(
            "\ufeffrun: é.py",
            f'\ufeffrun: é.py\nvariants: {{fix: "@worktree"}}\nclaims: {{{CLAIMS}}}',
            id="neither, and a byte order mark",
        ),
        pytest.param(
            f"variants: {{fix: b}}\n{FIX}    why: |\n      é\n\n\n",
            f'variants: {{fix: "@worktree"}}\n{FIX}    why: |\n      é\n    d2h: 0..3\n\n\n',
            id="another text is replaced",
        ),
    ],
)
def test_entries(before: str, after: str) -> None:
    """Mappings in braces stay in braces, others get lines; comments stay where they are."""
    assert after == added(before)
