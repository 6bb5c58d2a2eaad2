"""What is not as its author wanted it is said once, at its line, and the rest is read."""

from __future__ import annotations

import pytest

from finding_tickets.documents.reading import read_document
from finding_tickets.model.vocabulary import Level

HEAD = "# Finding Ticket: It waits\n\n**Ticket ID:** A-1\n\n"
RULES = {"merge-conflict", "line-ends", "unclosed", "nesting"}


def reported(text: str) -> list[tuple[str, int]]:
    """The rules of this page that a text breaks, below a head of four lines, and on which lines."""
    document, problems = read_document((HEAD + text).encode(), "A-1.md")
    assert document
    assert "A-1" == document.id.value
    return [(problem.rule, problem.line) for problem in problems if problem.rule in RULES]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> branch\n", [5, 7, 9]),
        ("<<<<<<< HEAD\r\nours\r\n=======\r\ntheirs\r\n>>>>>>> branch\r\n", [5, 7, 9]),
        ("<<<<<<< HEAD\nours\n||||||| base\nold\n=======\ntheirs\n>>>>>>> branch\n", [5, 7, 9, 11]),
        # Within code and YAML too: git does not look at what a line is for.
        ("```yaml\n<<<<<<< HEAD\na: 1\n=======\na: 2\n>>>>>>> branch\n```\n", [6, 8, 10]),
        # Half of the marks removed.
        ("ours\n=======\ntheirs\n>>>>>>> branch\n", [8]),
        ("<<<<<<< HEAD\nours\n", [5]),
        ("<<<<<<<", [5]),
    ],
)
def test_marks_of_a_merge(text: str, lines: list[int]) -> None:
    """Each mark is an error at its own line."""
    _, problems = read_document((HEAD + text).encode(), "A-1.md")
    found = [problem for problem in problems if problem.rule == "merge-conflict"]
    assert lines == [problem.line for problem in found]
    assert {Level.ERROR} == {problem.level for problem in found}


@pytest.mark.parametrize(
    "text",
    [
        "Heading\n=======\n",
        "<<<<<<<< eight\n",
        "<<<<<< six\n",
        "<<<<<<<and on\n",
        " <<<<<<< HEAD\n",
        "a <<<<<<< b\n",
        ">>>>>>>> quoted\n",
        "| a |\n|||||||\n",
    ],
)
def test_what_is_no_mark_of_a_merge(text: str) -> None:
    """A mark is seven of a sign at the start of a line, then a space or nothing; equal signs do not begin."""
    assert [] == reported(text)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("one\r\n", 5),
        ("one\r\n" * 9, 1),
        ("one\rtwo\n", 5),
        ("one\n\n```\ncode\r\n```\n", 8),
    ],
)
def test_mixed_line_ends(text: str, line: int) -> None:
    """The first line that ends otherwise than most is named; the head has four that end in LF."""
    assert [("line-ends", line)] == reported(text)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("```\ncode\n", 5),
        ("```", 5),
        ("one\n\n~~~~ python\ncode\n~~~\n", 7),
        ("````\n```\n", 5),
        ("```\ncode\n~~~\n", 5),
        ("```\ncode\n``` text\n", 5),
        ("- item\n\n  ```\n  code\n\nbelow the item\n", 7),
        ("> ```\n> code\n\nbelow the quote\n", 5),
        ("<!-- later\n\n## Not a heading\n", 5),
    ],
)
def test_what_is_never_closed(text: str, line: int) -> None:
    """A fence or comment that ends because the file, or what it is in, does, is named where it begins."""
    assert [("unclosed", line)] == reported(text)


@pytest.mark.parametrize(
    "text",
    [
        "```\ncode\n```\n",
        "```\ncode\n```",
        "```\n```\n",
        "~~~~ python\n~~~\n~~~~~  \n",
        "  ```\n  code\n  ```\n",
        "- item\n\n  ```\n  code\n  ```\n",
        "> ```\n> code\n> ```\n",
        "1. > ```\n   > code\n   > ```\n",
        "    indented ```\n",
        "```\r\ncode\r\n```\r\n".replace("\r", ""),
        "<!-- said --> and more\n",
        "<!-- a\n\nb -->\n",
        "<div>\n\ntext\n",
    ],
)
def test_what_is_closed(text: str) -> None:
    """Fences may be longer at their end than at their start, and stand in items and quotes."""
    assert [] == reported(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (">" * 100 + " x\n", []),
        (">" * 101 + " x\n", [("nesting", 5)]),
        # A list and its item are two blocks.
        ("- " * 51 + "x\n\ny\n\n" + "> " * 101 + "x\n", [("nesting", 5), ("nesting", 9)]),
        (">" * 20_000 + " x\n", [("nesting", 5)]),
        ("- " * 20_000 + "x\n", [("nesting", 5)]),
        ("1. " * 20_000 + "x\n", [("nesting", 5)]),
    ],
)
def test_deep_nesting(text: str, expected: list[tuple[str, int]]) -> None:
    """A hundred blocks may be within each other; of more, the line is named where they become too many."""
    assert expected == reported(text)
