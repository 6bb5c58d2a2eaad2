"""A drawing of relations: whatever names contain, it stays inside of its quotation marks."""

from __future__ import annotations

import re

import pytest

from finding_tickets.register.entries import Entry
from finding_tickets.register.relations import relations
from finding_tickets.report.graph import graph_around, mermaid

HOSTILE = [
    'a "b" c',
    "back\\slash \\",
    '"]; end',
    "<b>x</b> & <script>",
    "#quot; #35;",
    "%%{init: {}}%%",
    "`code` {a} [b] |c|",
    "style:#a; classDef x:#b;",
    "two\nlines\r\n\x1b[31m",
    "\\N \\G",
    "ünï-çödé 漢",
]
MERMAID_LINE = re.compile(r'  (?:n\d+\["[^"`%{}<>]*<br>[^"`%{}<>]*"\](?::::missing)?|[^"]*)')


def row(document_id: str, title: str, *related: tuple[str, str]) -> Entry:
    """A document with a title and relations."""
    return Entry("finding", "a.md", document_id, title, related=related)


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_quoted_for_mermaid(name: str) -> None:
    """No name has a character that means something in Mermaid; entities give the name back."""
    rows = [row("A-1", name, ("A-2", "blocks")), row(name, "x", ("A-1", "related"))]
    drawn = mermaid(graph_around(relations(rows), rows))
    lines = drawn.splitlines()
    assert "flowchart LR" == lines[0]
    assert [] == [line for line in lines[1:] if not MERMAID_LINE.fullmatch(line)]
    shown = "".join(char if char.isprintable() else "?" for char in " ".join(name.split()))
    shown = shown.replace(" ?[31m", "")  # A colour is left out.
    # Mermaid cuts entities short in what looks like a style: `style`, a colon and a number sign.
    assert [] == [line for line in lines if re.search(r"(style|classDef).*:\S*#.*;", line)]
    read = [re.sub(r"#(\d+);", lambda entity: chr(int(entity[1])), line) for line in lines]
    assert f'  n0["A-1<br>{shown}"]' in read
