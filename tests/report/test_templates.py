"""Values in a report cannot break its tables, and templates come with the package."""

from __future__ import annotations

import html
from pathlib import Path

import pyromark
import pytest
from hypothesis import given
from hypothesis import strategies as st

from finding_tickets.errors import BadDataError, UsageError
from finding_tickets.register.entries import Entry as Stated
from finding_tickets.register.staleness import CurrentVerdict
from finding_tickets.report.rows import ReportRow
from finding_tickets.report.templates import cell, code, render, text


@pytest.mark.parametrize(
    ("value", "expected"),
    [("a | b", "a \\| b"), ("a\nb", "a b"), ("a \\| b", "a \\\\\\| b"), (4, "4"), ("  ", "")],
)
def test_a_cell_stays_one_cell(value: object, expected: str) -> None:
    """Pipes and backslashes are escaped, lines joined."""
    assert expected == cell(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("4*total_of_n", "4\\*total_of_n"),
        ("_a_ [b](c) `d` <e> ~f~ &lt;", "\\_a\\_ \\[b](c) \\`d\\` \\<e> \\~f\\~ \\&lt;"),
        ("a | b\\\nc", "a \\| b\\\\ c"),
    ],
)
def test_text_is_no_markup(value: str, expected: str) -> None:
    """What would be markup is escaped, and nothing that would not be."""
    assert expected == text(value)
    assert f"<p>{html.escape(' '.join(value.split()), quote=False)}</p>\n" == pyromark.html(expected)


@given(st.text("_*`[]()<>!|~&;\\ a1é", max_size=12))
def test_no_text_is_markup(value: str) -> None:
    """Nor is any other text within a line, where tables and strikethrough are understood, too."""
    line = " ".join(f"x {value}".split())
    tables = pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_STRIKETHROUGH
    shown = pyromark.html(f"x {text(value)}", options=tables)
    assert f"<p>{html.escape(line, quote=False)}</p>\n" == shown


@pytest.mark.parametrize("value", ["a", "a`b", "`a``", "", "``` `` `", "a | b\n c"])
def test_code_is_shown_as_it_is(value: str) -> None:
    """However many backticks there are in it; where there is nothing, a space stands for it."""
    shown = pyromark.html(code(value))
    line = html.escape(" ".join(value.split()), quote=False)
    assert f"<p><code>{line or '  '}</code></p>\n" == shown


WRONG = [
    ("a\n{% if %}\n", 2, "Expected an expression, got 'end of statement block'"),
    ("a\n\n{{ status.totl }}\n", 3, "'totl'"),
    ("{{ nothing }}", 1, "'nothing' is undefined"),
    ("{% for a in [1] %}\n{{ 1 / 0 }}\n{% endfor %}", 2, "ZeroDivisionError: division by zero"),
    ("\n{{ 'a' | nofilter }}", 2, "No filter named 'nofilter'"),
    ("{% macro m() %}\n{{ x }}\n{% endmacro %}\n\n{{ m() }}", 2, "'x' is undefined"),
    ("{% include 'odd.j2' %}", 1, "RecursionError: "),
    ("\n{{ ''.__class__.__mro__ }}", 2, "unsafe"),
    ("\n{{ nothing | text }}", 2, "'nothing' is undefined"),
    ("\n{{ status.totl | code }}", 2, "'totl'"),
    ("a\n{% include 'missing.j2' %}", 2, "there is no template missing.j2"),
    ("\n\n{% extends 'missing.j2' %}", 3, "there is no template missing.j2"),
    ("\n{% import 'binary.j2' as b %}", 2, "can't decode byte"),
]


@pytest.mark.parametrize(("template", "line", "message"), WRONG, ids=[each[2] for each in WRONG])
def test_an_error_in_a_template(tmp_path: Path, template: str, line: int, message: str) -> None:
    """Whatever is wrong with a template is said with its file and line; nothing unknown is empty."""
    (tmp_path / "odd.j2").write_text(template)
    (tmp_path / "binary.j2").write_bytes(b"\xff")
    with pytest.raises(BadDataError) as caught:
        render("odd.j2", {"status": object()}, tmp_path)
    assert (str(tmp_path / "odd.j2"), line) == (caught.value.file, caught.value.line)
    assert message in caught.value.message


def test_an_error_of_ours_is_no_error_of_the_template(tmp_path: Path) -> None:
    """What the tool's own code does wrong stays a bug, and what it says of other files is passed on."""

    def refuse() -> None:
        raise BadDataError("it is broken", file="a.md")

    (tmp_path / "odd.j2").write_text("{{ refuse() }}")
    (tmp_path / "rows.j2").write_text("{{ row.opinions }}")
    with pytest.raises(BadDataError) as caught:
        render("odd.j2", {"refuse": refuse}, tmp_path)
    assert "a.md" == caught.value.file
    broken = Stated("finding", "a.md", "A-1", "It waits", reviews=None)  # type: ignore[arg-type] # on purpose
    with pytest.raises(TypeError, match="NoneType"):
        render("rows.j2", {"row": ReportRow(broken, CurrentVerdict(), "P1", "open")}, tmp_path)


@pytest.mark.parametrize("name", ["../secret.j2", "/etc/passwd", "", "folder"])
def test_a_template_outside_of_the_folders(tmp_path: Path, name: str) -> None:
    """A name leads nowhere but into the folders of templates."""
    own = tmp_path / "templates"
    (own / "folder").mkdir(parents=True)
    (tmp_path / "secret.j2").write_text("secret")
    with pytest.raises(UsageError, match="there is no template"):
        render(name, {}, own)
