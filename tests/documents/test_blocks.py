"""Markdown becomes blocks that know their bytes, and text is freed of its markup."""

from __future__ import annotations

import pytest

from finding_tickets.documents.source import DEEPEST, TOO_DEEP, code_spans, parse, plain, walk


@pytest.mark.parametrize("fence", ["```", "~~~"])
def test_nothing_inside_a_fence_is_a_block(fence: str) -> None:
    """Headings, tables and check boxes in code are code."""
    data = f"{fence}text\n# no\n| a |\n|---|\n- [x] no\n{fence}\n".encode()
    assert ["CodeBlock"] == [block.kind for block in walk(parse(data))]
    assert "# no\n| a |\n|---|\n- [x] no\n" == parse(data)[0].code


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


@pytest.mark.parametrize(("mark", "kinds"), [(b"> ", ["BlockQuote"]), (b"- ", ["List", "Item"])])
def test_deep_nesting_ends(mark: bytes, kinds: list[str]) -> None:
    """Of two thousand quotes within each other a hundred are there, and one block for all the rest."""
    data = mark * 2000 + b"x"
    found = [block.kind for block in walk(parse(data))]
    assert [*kinds * (DEEPEST // len(kinds)), TOO_DEEP] == found


def test_leaves_are_not_too_deep() -> None:
    """What stands in the deepest quote is read: its table has a head and its rows have cells."""
    quote = b"> " * DEEPEST
    data = b"".join(quote + line + b"\n" for line in (b"| a |", b"|---|", b"| b |", b"", b"- [x] c"))
    kinds = [block.kind for block in walk(parse(data))]
    assert ["Table", "TableHead", "TableCell", "TableRow", "TableCell", TOO_DEEP] == kinds[DEEPEST:]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("`P2`", "P2"),
        ("**Ticket ID**", "Ticket ID"),
        ("**`P2`** (was `P1`)", "P2 (was P1)"),
        ("`f(**kwargs)` and `__init__`", "f(**kwargs) and __init__"),
        ("two\n  lines", "two lines"),
        (r"a \| b", "a | b"),
        ("``a ` b``", "a ` b"),
        ("an unclosed ` tick", "an unclosed tick"),
        ("", ""),
    ],
)
def test_plain(raw: str, expected: str) -> None:
    """Marks go, and what they mark stays."""
    assert expected == plain(raw)


def test_code_spans() -> None:
    """A run of backticks is closed by the next run of the same length."""
    data = b"x `a` ``b ` c`` `d"
    assert [b"a", b"b ` c"] == [data[start:end] for start, end in code_spans(data, 0, len(data))]


def test_backticks_without_a_partner_take_linear_time() -> None:
    """A text of runs of ever different length has no code span; a quadratic scan would take minutes."""
    data = b" ".join(b"`" * length for length in range(1, 3000))
    assert [] == code_spans(data, 0, len(data))
