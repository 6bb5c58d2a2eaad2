"""Markdown becomes blocks that know their bytes."""

from __future__ import annotations

import pytest

from finding_tickets.documents.blocks import DEEPEST, TOO_DEEP, Block, parse, walk


def shown(data: bytes, kind: str) -> list[bytes]:
    """The text of every block of one kind."""
    return [data[block.first : block.last] for block in walk(parse(data)) if block.kind == kind]


def test_headings_know_their_text() -> None:
    """A heading's text is what stands between its marks, whichever of the two notations it is in."""
    data = "# Süß `x` #\n\nBelow\n=====\n".encode()
    assert ["Süß `x`".encode(), b"Below"] == shown(data, "Heading")


@pytest.mark.parametrize("fence", ["```", "~~~"])
def test_nothing_inside_a_fence_is_a_block(fence: str) -> None:
    """Headings, tables and check boxes in code are code."""
    data = f"{fence}text\n# no\n| a |\n|---|\n- [x] no\n{fence}\n".encode()
    assert ["CodeBlock"] == [block.kind for block in walk(parse(data))]
    assert "# no\n| a |\n|---|\n- [x] no\n" == parse(data)[0].code


def test_cells_know_their_bytes() -> None:
    """A cell's range is exact in a text with characters of several bytes."""
    data = "| ä | b |\n|---|---|\n| é | `ü` |\n".encode()
    cells = [
        data[block.start : block.end].decode() for block in walk(parse(data)) if block.kind == "TableCell"
    ]
    assert [" ä ", " b ", " é ", " `ü` "] == cells


@pytest.mark.parametrize("row", [b"|---|---|\t", b"|---|---|  \t", b"|\t---\t|\t---\t|", b"> |---|:--|\t"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_tabs_in_the_row_of_delimiters(row: bytes, end: bytes) -> None:
    """A tab there is white space, as GitHub Flavored Markdown has it, and every cell keeps its bytes."""
    mark = b"> " if row.startswith(b">") else b""
    data = end.join([mark + b"|\ta\t| b |\t", row, mark + b"| c | d\t|\t", b""])
    cells = [block for block in walk(parse(data)) if block.kind == "TableCell"]
    assert [b"a", b"b", b"c", b"d"] == [data[cell.start : cell.end].strip() for cell in cells]


@pytest.mark.parametrize("text", [b"- [x] a\n- [ ] b\n- c\n", b"- [x] a\n\n- [ ] b\n\n- c\n"])
def test_check_boxes(text: bytes) -> None:
    """An item is ticked, not ticked or without a box, in tight and in loose lists."""
    assert [True, False, None] == [block.checked for block in walk(parse(text)) if block.kind == "Item"]


def test_a_byte_order_mark_does_not_hide_a_heading() -> None:
    """The first line is a heading after a byte order mark too, three bytes further on."""
    [heading] = parse(b"\xef\xbb\xbf# Title\n")
    assert ("Heading", 3, 5) == (heading.kind, heading.start, heading.first)


def test_every_line_ending_counts() -> None:
    """Headings are found behind line feeds, carriage returns and both."""
    assert [b"a", b"b", b"c"] == shown(b"# a\r\n# b\r# c\n", "Heading")


@pytest.mark.parametrize(("mark", "kinds"), [(b"> ", ["BlockQuote"]), (b"- ", ["List", "Item"])])
def test_deep_nesting_ends(mark: bytes, kinds: list[str]) -> None:
    """Of a hundred thousand quotes within each other a hundred are there, and one block for all the rest."""
    data = mark * 100_000 + b"x"
    found = [block.kind for block in walk(parse(data))]
    assert [*kinds * (DEEPEST // len(kinds)), TOO_DEEP] == found


def test_leaves_are_not_too_deep() -> None:
    """What stands in the deepest quote is read: its table has a head and its rows have cells."""
    quote = b"> " * DEEPEST
    data = b"".join(quote + line + b"\n" for line in (b"| a |", b"|---|", b"| b |", b"", b"- [x] c"))
    kinds = [block.kind for block in walk(parse(data))]
    assert ["Table", "TableHead", "TableCell", "TableRow", "TableCell", TOO_DEEP] == kinds[DEEPEST:]


def test_a_heading_has_a_level() -> None:
    """Only headings have a level above 0."""
    assert [3, 0] == [block.level for block in parse(b"### a\n\nb\n")]
    assert 0 == Block("Rule", 0, 3).level
