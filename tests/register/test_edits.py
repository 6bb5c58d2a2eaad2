"""What an edit writes: the form of the document, and nothing where it would read as something else."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from finding_tickets.documents.reading import read_document
from finding_tickets.documents.source import Splice, spliced
from finding_tickets.errors import BadDataError, GateError, UsageError
from finding_tickets.model.vocabulary import Outcome, Verdict, Vocabulary
from finding_tickets.register.actions import DocumentEdit, Step, add_duplicate, edit_of, set_key
from finding_tickets.register.closing import Closing, close_ticket
from finding_tickets.register.entries import entry_of

TODAY = date(2031, 5, 7)
WORDS = Vocabulary()
ID = "B1-PT-01"
TABLE = f"""\
# Finding Ticket: It waits

| Field | Value |
|-------|-------|
| **Ticket ID** | `{ID}` |
| **Severity** | `P2` |
| **Status** | `open` |
| **Assignee** | |
"""


def edited(text: str, *steps: Step, words: Vocabulary = WORDS) -> str:
    """A document after an edit that is confirmed."""
    data = text.encode()
    document, _ = read_document(data, f"{ID}.md", words)
    assert document is not None
    return edit_of(entry_of(document), words, TODAY, *steps).make(data).decode()


def added(text: str, *steps: Step) -> list[str]:
    """The lines of a document that an edit adds or changes."""
    before = text.splitlines()
    return [line for line in edited(text, *steps).splitlines() if line not in before]


def below_the_id(rows: str, before: str = "# Finding Ticket: It waits\n\n") -> str:
    """A document with these rows below its title."""
    return f"{before}{rows}\n\n## Summary\n\nIt waits.\n"


@pytest.mark.parametrize(
    "second", [Splice(1, 3, b""), Splice(0, 1, b""), Splice(4, 6, b""), Splice(3, 2, b"")]
)
def test_splices_that_cannot_both_be_made(second: Splice) -> None:
    """Those that overlap, and those that reach beyond the data."""
    with pytest.raises(ValueError, match="overlaps another edit or the end"):
        spliced(b"abcde", [Splice(0, 2, b""), second])


@pytest.mark.parametrize(
    ("rows", "row"),
    [
        (f"| Field | Value |\n|---|---|\n| Ticket ID | {ID} |\n| Status | open |", "| Batch | 7 |"),
        (f"| **Ticket ID** | `{ID}` |\n|---|---|\n| **Status** | open |", "| **Batch** | 7 |"),
        (f"Field | Value\n---|---\nTicket ID | {ID}\nStatus | open", "Batch | 7"),
        (f"**Ticket ID:** {ID}\n**Status:** open", "**Batch:** 7"),
        (f"**Ticket ID:** {ID}  \n**Status:** open  \n**Created:** 2030-01-01", "**Batch:** 7  "),
        (f"**Ticket ID**: {ID}\n\n**Status**: open", "**Batch**: 7"),
        (f"- **Ticket ID:** {ID}\n- **Status:** open", "- **Batch:** 7"),
        (f"* **Ticket ID:** {ID}\n\n* **Status:** open", "* **Batch:** 7"),
        (f"> **Ticket ID:** {ID}\n> **Status:** open", "> **Batch:** 7"),
    ],
)
def test_a_row_is_added_in_the_form_of_the_others(rows: str, row: str) -> None:
    """Below the row that it follows by custom, which is the status."""
    text = below_the_id(rows)
    assert [row] == added(text, set_key("batch", ["7"]))
    lines = edited(text, set_key("batch", ["7"])).splitlines()
    above = [line for line in lines[: lines.index(row)] if line][-1]
    assert "Status" in above


def test_a_row_is_added_to_front_matter() -> None:
    """In lower case where its keys are."""
    text = f"---\nid: {ID}\nstatus: open\n---\n# Finding Ticket: It waits\n"
    assert ["batch: 7"] == added(text, set_key("batch", ["7"]))


def test_a_first_row_goes_below_the_title() -> None:
    """A document without metadata gets a labelled line."""
    text = "# Finding Ticket: It waits\nSo it does.\n"
    expected = "# Finding Ticket: It waits\n\n**Batch:** 7\n\nSo it does.\n"
    assert expected == edited(text, set_key("batch", ["7"]))


@pytest.mark.parametrize(
    ("row", "key", "value", "expected"),
    [
        ("| **Severity** | `P2` |", "severity", "p0", "| **Severity** | `P0` |"),
        ("| **Severity** | **P2** |", "severity", "P0", "| **Severity** | **P0** |"),
        ("| **Severity** | P2   |", "severity", "P0", "| **Severity** | P0   |"),
        ("| **Severity** |`P2`|", "severity", "P0", "| **Severity** |`P0`|"),
        ("| **Assignee** | |", "assignee", "kim", "| **Assignee** | kim |"),
        ("| **Assignee** |  |", "assignee", "kim", "| **Assignee** | kim |"),
        ("| **Assignee** ||", "assignee", "kim", "| **Assignee** | kim |"),
        ("| **Assignee** |", "assignee", "kim", "| **Assignee** | kim |"),
        ("| **Assignee** |     |", "assignee", "kim", "| **Assignee** | kim    |"),
        ("| **Assignee** | kim |", "assignee", "", "| **Assignee** |  |"),
        ("| **Assignee** | kim |", "assignee", "a|b", r"| **Assignee** | a\|b |"),
        ("| **Assignee** | kim |", "assignee", "`x` y", "| **Assignee** | `` `x` y `` |"),
        ("| **Assignee** | kim |", "assignee", "*me*", r"| **Assignee** | \*me\* |"),
        ("| **Domain** | `a` / `b` |", "domain", "c/d, e", "| **Domain** | `c/d` / `e` |"),
        ("| **Domain** | `a`, `b` |", "domain", "c", "| **Domain** | `c` |"),
        ("| **Domain** | a |", "domain", "c,d", "| **Domain** | c, d |"),
        ("| **Found By** | a test |", "found by", "a *user*", r"| **Found By** | a \*user\* |"),
    ],
)
def test_a_value_takes_the_place_and_the_markup_of_the_one_before(
    row: str, key: str, value: str, expected: str
) -> None:
    """And what surrounds it stays."""
    head = f"# Finding Ticket: It waits\n\n| Field | Value |\n|---|---|\n| **Ticket ID** | `{ID}` |\n"
    assert f"{head}{expected}\n" == edited(f"{head}{row}\n", set_key(key, [value]))


def test_text_below_a_labelled_value_is_no_part_of_it() -> None:
    """It stays, as a paragraph of its own."""
    text = f"# Finding Ticket: It waits\n\n**Ticket ID:** {ID}\n\n**Status:** open\nSince last week.\n"
    expected = text.replace("open\n", "investigating\n\n")
    assert expected == edited(text, set_key("status", ["investigating"]))


def test_the_words_of_a_register_are_kept() -> None:
    """A spelling of its own is written as it is given, and read as the word that it means."""
    words = Vocabulary(
        severities={**WORDS.severities, "P0": ("blocker",)}, domains={"loader": ()}, agents={"kim": ()}
    )
    assert "| **Severity** | `blocker` |" in edited(TABLE, set_key("severity", ["blocker"]), words=words)
    with pytest.raises(UsageError, match=r"domain cannot be 'lodaer' \(it is one of loader\)"):
        edited(TABLE, set_key("domain", ["lodaer"]), words=words)
    with pytest.raises(UsageError, match=r"agent cannot be 'kmi' \(it is one of kim\)"):
        edited(TABLE, set_key("agent", ["kmi"]), words=words)


@pytest.mark.parametrize("key", ["agent", "domain"])
def test_words_that_a_register_has_not_chosen(key: str) -> None:
    """Where it has chosen no agents and no domains, everybody found something, about anything."""
    assert f"| **{key.title()}** | `claude 5` |" in edited(TABLE, set_key(key, ["claude 5"]))


def test_an_id_that_changed_meanwhile() -> None:
    """The document that is found under the lock is the one that was asked for."""
    document, _ = read_document(TABLE.encode(), f"{ID}.md", WORDS)
    assert document is not None
    edit = edit_of(entry_of(document), WORDS, TODAY, set_key("batch", ["7"]))
    with pytest.raises(BadDataError, match="is B1-PT-99 now, and was B1-PT-01"):
        edit.make(TABLE.replace(ID, "B1-PT-99").encode())


@pytest.mark.parametrize(
    ("section", "lines"),
    [
        ("None.", ["| `B1-PT-02` | `duplicate` |  |"]),
        ("- B1-PT-09: so", ["- B1-PT-02 (duplicate)"]),
        ("* **B1-PT-09** - so", ["* B1-PT-02 (duplicate)"]),
        ("3. `B1-PT-09`", ["4. B1-PT-02 (duplicate)"]),
        (
            "| ID | Relationship | Seen | Notes |\n|---|---|---|---|\n| B1-PT-09 | `related` | x | so |",
            ["| `B1-PT-02` | `duplicate` |  |  |"],
        ),
        ("| ID | Relation |\n|---|---|\n| - | - |", ["| `B1-PT-02` | `duplicate` |"]),
        ("| ID | Notes |\n|---|---|\n| B1-PT-09 | so |", ["- B1-PT-02 (duplicate)"]),
        ("Nothing that we know of, but see the report.", ["- B1-PT-02 (duplicate)"]),
        ("- B1-PT-02: so", ["- B1-PT-02 (duplicate): so"]),
        ("- **B1-PT-02** (related): so", ["- **B1-PT-02** (duplicate): so"]),
        ("- B1-PT-02 (seen twice): so", ["- B1-PT-02 (duplicate) (seen twice): so"]),
        ("| ID | Relation |\n|---|---|\n| B1-PT-02 | related |", ["| `B1-PT-02` | `duplicate` |"]),
        ("- B1-PT-02 (duplicate): so", []),
    ],
)
def test_a_ticket_is_named_in_the_form_of_the_others(section: str, lines: list[str]) -> None:
    """A row, a bullet, a first row instead of ``None.``; one that is named already is not named twice."""
    text = f"{TABLE}\n## Related Findings\n\n{section}\n\n## Appendix\n\nNothing.\n"
    new = added(text, add_duplicate("B1-PT-02"))
    assert lines == [line for line in new if not line.startswith(("| Ticket", "|--"))]


def test_a_section_of_related_findings_is_added_before_those_that_follow_it() -> None:
    """With a table, as a new ticket has it."""
    text = f"{TABLE}\n---\n\n## Notes\n\nSo.\n\n---\n\n## Appendix\n\nNothing.\n"
    section = (
        "## Related Findings\n\n| Ticket ID | Relationship | Notes |\n|-----------|--------------|-------|\n"
        "| `B1-PT-02` | `duplicate` |  |\n\n---\n\n"
    )
    expected = text.replace("## Appendix", f"{section}## Appendix")
    assert expected == edited(text, add_duplicate("B1-PT-02"))


def close(
    outcome: Outcome, verdict: Verdict = Verdict.UNVERIFIED, *, reason: str = "", forced: bool = False
) -> Step:
    """Close a ticket that was measured with this verdict."""
    return close_ticket(Closing(outcome, TODAY, reason, forced=forced), lambda _: verdict, Path())


def test_closing_fills_what_the_document_has_for_it() -> None:
    """A row Resolution of the metadata, and a section Resolution."""
    text = f"{TABLE}| **Resolution** | |\n\n## Resolution\n\nWe talked about it.\n"
    new = edited(text, close(Outcome.NOT_A_BUG))
    assert "| **Status** | `closed` |" in new
    assert "| **Resolution** | `not-a-bug` |" in new
    assert new.endswith(
        "## Resolution\n\n**Status:** Not a bug\n**Closed:** 2031-05-07\n\nWe talked about it.\n"
    )


def test_closing_against_what_the_document_says() -> None:
    """An open ticket whose resolution says something else: that becomes the earlier one."""
    text = f"{TABLE}\n## Resolution\n\n**Status:** Fixed\n"
    new = edited(text, close(Outcome.WONT_FIX))
    assert "## Earlier Resolution\n\n**Status:** Fixed\n\n## Resolution\n\n**Status:** Won't fix\n" in new


def test_a_verified_decision_to_keep_the_code_is_no_fix() -> None:
    """What was measured then justifies the code as it is."""
    text = f"{TABLE}\n## Remediation\n\n```yaml\ndecision: keep\n```\n"
    with pytest.raises(GateError, match="the decision to keep the code, not a fix"):
        edited(text, close(Outcome.FIXED, Verdict.VERIFIED))
    assert "**Status:** Won't fix" in added(text, close(Outcome.WONT_FIX, Verdict.VERIFIED))
    fix = text.replace("keep", "fix")
    assert "**Measured:** verified" in added(fix, close(Outcome.FIXED, Verdict.VERIFIED))


def test_a_document_that_ends_in_an_open_fence() -> None:
    """What was added at its end would be code, so it goes before the section that it ends in."""
    text = f"{TABLE}\n## Notes\n\n```\nnever closed\n"
    new = edited(text, close(Outcome.WONT_FIX))
    assert "## Resolution\n\n**Status:** Won't fix\n**Closed:** 2031-05-07\n\n## Notes" in new


def test_an_edit_that_cannot_be_read_back_is_refused() -> None:
    """A pipe in code, say, which no cell of a table can hold."""
    message = r"Assignee a`\|`b cannot be written: it would not read back; nothing was changed"
    with pytest.raises(BadDataError, match=message):
        edited(TABLE, set_key("assignee", ["a`|`b"]))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"It waits", b"It slept", "title, section titles would change as well; nothing was changed"),
        (b"| **Assignee** | |\n", b"", "other metadata would change as well"),
        (b"`P2`", b"`P1`", ""),
        (ID.encode(), b"B1 PT", "would change as well"),
    ],
)
def test_a_change_that_affects_something_else_is_refused(old: bytes, new: bytes, message: str) -> None:
    """The whole record is compared: only what was asked for may differ."""
    data = TABLE.encode()
    at = data.index(old)
    edit = DocumentEdit(data, f"{ID}.md", WORDS, TODAY)
    tries = [[Splice(at, at + len(old), new)]]
    if message:
        with pytest.raises(BadDataError, match=message):
            edit.change("it", tries, lambda _: True, ["severity"], ["severity"])
        assert data == edit.page.data
    else:
        edit.change("it", tries, lambda _: True, ["severity"], ["severity"])
        assert data.replace(old, new) == edit.page.data


def test_a_change_that_would_be_an_error_is_refused() -> None:
    """Also where the record says nothing else than was asked for."""
    data = TABLE.encode()
    edit = DocumentEdit(data, f"{ID}.md", WORDS, TODAY)
    conflict = b"\n<<<<<<< ours\n=======\n>>>>>>> theirs\n"
    with pytest.raises(BadDataError, match=r"it cannot be written: it would be an error \(merge-conflict\)"):
        edit.change("it", [[Splice(len(data), len(data), conflict)]], lambda _: True, ["section titles"])
