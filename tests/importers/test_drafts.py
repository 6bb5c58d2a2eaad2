"""Tickets about findings of other tools: their text is data, whatever it says."""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finding_tickets.documents.reading import read_document, suppressions
from finding_tickets.importers.drafts import draft_of_finding, reported_by
from finding_tickets.importers.sarif import read_log
from finding_tickets.model.ticket import Ticket
from finding_tickets.model.vocabulary import Vocabulary
from finding_tickets.register.config import Config
from finding_tickets.register.load import Register
from finding_tickets.report.templates import Attached, ticket_files

ROOT = "/home/ci/project"
SECTIONS = [
    *("Ticket Metadata", "Location", "Summary", "Detailed Description"),
    *("Recommended Fix", "Verification", "Related Findings"),
]
PIECES = [
    "# Finding Ticket: other",
    "\n## Resolution\n\n**Status:** Fixed\n",
    "\n---\n",
    "| **Severity** | `P0` |",
    "**Status:** fixed",
    "Severity: P0",
    "<!-- lint-ignore missing-remediation: so -->",
    "## Cross-Review: DRL\n\n| **Verdict** | OBJECT |",
    "```yaml\nverifier: x.py\n```",
    "<script>alert(1)</script>",
    "[x](javascript:alert(1))",
    "{{ draft }}{% endif %}",
    "- [x] done",
    "`",
    "```",
    "\\",
    "B1-PT-01",
    "T-01: ",
    "Review of: ",
    "src/a.py:10",
    "../../etc/passwd",
    "\x00\x1b[31m",
    "\u2028",
    "日本",
    "x" * 200,
]
TEXTS = (
    st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=8)), max_size=4)
    .map("".join)
    .map(lambda text: text.encode(errors="ignore").decode())
)


def written(result: Any, driver: Any) -> tuple[str, Ticket]:
    """The ticket about the only result of a run, as text and as it is read."""
    log = {"version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": [result]}]}
    (found,) = read_log(json.dumps(log).encode(), "a.sarif", [ROOT])
    register = Register(Path("/nowhere"), Config())
    attached = Attached(
        ticket="imported.md.j2",
        context={"source": reported_by(found.tool, found.rule), "fingerprint": found.fingerprint},
        mark=found.fingerprint,
    )
    content = draft_of_finding(found, None, None)
    texts = ticket_files(register, content, "T-01", "tickets/T-01.md", date(2026, 1, 2), attached)
    (text,) = texts.values()
    document, problems = read_document(text.encode(), "tickets/T-01.md", Vocabulary())
    assert () == tuple(problems)
    assert isinstance(document, Ticket)
    assert found.fingerprint in document.metadata["Fingerprint"].raw
    return text, document


def test_a_ticket_says_what_the_tool_said() -> None:
    """Message, rule and places are where people look for them."""
    result = {
        "ruleId": "R1",
        "message": {"text": "`x` waits | a_b\nin *each* step"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": "src/a.py"},
                    "region": {"startLine": 3, "endLine": 5, "startColumn": 2},
                },
                "logicalLocations": [{"fullyQualifiedName": "A.f"}],
            },
            {"physicalLocation": {"artifactLocation": {"uri": "file:///else/b.py"}}},
        ],
    }
    rule = {"id": "R1", "fullDescription": {"text": "Waiting costs."}}
    text, ticket = written(result, {"name": "tool", "rules": [rule]})
    assert "x waits | a_b in *each* step" == ticket.title.value
    assert [("src/a.py", 3, 5, "A.f")] == [
        (each.file, each.lines[0].first, each.lines[0].last, each.symbol) for each in ticket.locations
    ]
    assert "`x` waits `|` `a_b`\nin `*each*` step\n" in text
    assert "Reported by tool, rule R1, at src/a.py:3, file:///else/b.py." in text
    assert "file:///else/b.py is no path within this repository." in text
    assert "\nWaiting costs.\n" in text
    assert "- [ ] tool does not report it any more" in text
    assert "| **Source** | tool R1 |" in text


@pytest.mark.parametrize("text", ["", ".", "`", "\n\n"])
def test_a_finding_without_words_has_a_title(text: str) -> None:
    """Where nothing can be said of a finding, the ticket says so."""
    _, ticket = written({"message": {"text": text}}, {"name": text})
    assert "A finding without words" == ticket.title.value
    assert ticket.checklist[0].text.endswith(" does not report it any more")


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        *(("a b/c (1).py", 1), ("Makefile", 1), ("x/é.py", 1)),
        *(("a|b.py", 0), ("a:3.py", 0), ("a,b.py", 0)),
    ],
)
def test_a_file_is_named_or_left_out(uri: str, expected: int) -> None:
    """A location names the file that was meant; where its name could be read otherwise, it is not written."""
    place = {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": 3}}}
    _, ticket = written({"message": {"text": "x"}, "locations": [place]}, {"name": "t"})
    assert [uri] * expected == [location.file for location in ticket.locations]


@given(st.lists(TEXTS, min_size=6, max_size=6))
def test_no_text_becomes_anything_else(texts: list[str]) -> None:
    """Whatever the fields of a result hold, the ticket has its sections and no others, and is open."""
    message, tool, rule, about, uri, symbol = texts
    where = {
        "physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": 3}},
        "logicalLocations": [{"name": symbol}],
    }
    result = {
        "ruleId": rule,
        "level": "note",
        "message": {"text": message},
        "locations": [where],
    }
    described = {"id": rule, "fullDescription": {"text": about}}
    text, ticket = written(result, {"name": tool, "rules": [described]})
    assert SECTIONS == [section.title for section in ticket.sections if section.level == 2]
    assert ("P3", "open", "T-01") == (
        ticket.severity and ticket.severity.value,
        ticket.status and ticket.status.value,
        ticket.id.value,
    )
    nothing = (ticket.reviews, ticket.related, ticket.checked_claims, ticket.severity_changes)
    assert ((), (), (), ()) == nothing
    assert (None, None, None, None) == (ticket.resolution, ticket.remediation, ticket.outcome, ticket.closed)
    assert [False] == [item.done for item in ticket.checklist]
    assert () == suppressions(text.encode())
    assert not re.search(r"^[-*#\s]*\*\*Accepted change:", text, re.MULTILINE)
    for location in ticket.locations:
        assert location.file is not None
        assert {"", "..", "."}.isdisjoint(location.file.split("/"))
