"""Values in a report cannot break its tables, and templates come with the package."""

from __future__ import annotations

import html
import os
import resource
import signal
import time
from functools import partial
from pathlib import Path
from shutil import rmtree

import pyromark
import pytest
from hypothesis import given
from hypothesis import strategies as st

from finding_tickets.errors import BadDataError, UsageError
from finding_tickets.model.verification import NotMeasured
from finding_tickets.register.index import Row as Stated
from finding_tickets.register.staleness import CurrentVerdict
from finding_tickets.report import templates
from finding_tickets.report.formats.html import DiffLine
from finding_tickets.report.rows import ReportRow
from finding_tickets.report.templates import cell, code, render, source, text


@pytest.mark.parametrize(
    ("value", "expected"),
    [("a | b", "a \\| b"), ("a\nb", "a b"), ("a \\| b", "a \\\\\\| b"), (4, "4"), ("  ", "")],
)
def test_a_cell_stays_one_cell(value: object, expected: str) -> None:
    """Pipes and backslashes are escaped, lines joined."""
    assert expected == cell(value)


def test_a_template_of_the_tool_is_found_from_anywhere(tmp_path: Path) -> None:
    """Without a folder of one's own, the tool's templates serve."""
    assert "def nan_flags" in render("fix.py.j2", {"id": "B1-PT-01"}, tmp_path / "none")


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
    ("\n{% import 'binary.j2' as b %}", 2, "cannot be read"),
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


def test_an_error_in_a_template_that_another_one_takes_in(tmp_path: Path) -> None:
    """The place is where the error is, not where it is taken in."""
    (tmp_path / "outer.j2").write_text("\n\n{% include 'inner.j2' %}\n")
    (tmp_path / "inner.j2").write_text("a\n{{ x }}\n")
    with pytest.raises(BadDataError) as caught:
        render("outer.j2", {}, tmp_path)
    assert (str(tmp_path / "inner.j2"), 2) == (caught.value.file, caught.value.line)


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


def test_a_template_that_is_no_text(tmp_path: Path) -> None:
    """It is named in the message."""
    (tmp_path / "odd.j2").write_bytes(b"\xff")
    with pytest.raises(BadDataError, match=r"template odd\.j2 cannot be read"):
        render("odd.j2", {}, tmp_path)


@pytest.mark.parametrize("name", ["../secret.j2", "/etc/passwd", "", "folder"])
def test_a_template_outside_of_the_folders(tmp_path: Path, name: str) -> None:
    """A name leads nowhere but into the folders of templates."""
    own = tmp_path / "templates"
    (own / "folder").mkdir(parents=True)
    (tmp_path / "secret.j2").write_text("secret")
    with pytest.raises(UsageError, match="there is no template"):
        render(name, {}, own)


def test_a_template_touches_no_file(tmp_path: Path) -> None:
    """A path that a template is given is text: it can be shown, and neither read nor written."""
    file = tmp_path / "secret.txt"
    file.write_text("secret")
    (tmp_path / "odd.j2").write_text("{{ path }}{{ path.read_text() }}")
    with pytest.raises(BadDataError, match="unsafe"):
        render("odd.j2", {"path": file}, tmp_path)


@pytest.mark.parametrize(
    "call",
    [
        "row.verification.parse_raw(pickled, content_type='pickle', proto='pickle', allow_pickle=true)",
        "(row.verification | attr('parse_file'))(file)",
        "row.verification.model_copy(update={})",
    ],
)
def test_a_template_runs_no_code_by_way_of_a_record(tmp_path: Path, call: str) -> None:
    """A record's library can unpickle what it is given; templates read records and call nothing of theirs."""
    ran = tmp_path / "ran"
    pickled = f"cos\nsystem\n(S'touch {ran}'\ntR."
    (tmp_path / "odd.j2").write_text(f"\n{{{{ {call} }}}}")
    row = {"verification": NotMeasured(at={"n": 1}, why="it does not fit")}
    with pytest.raises(BadDataError, match="not safely callable") as caught:
        render("odd.j2", {"row": row, "pickled": pickled, "file": str(tmp_path / "odd.j2")}, tmp_path)
    assert (str(tmp_path / "odd.j2"), 2) == (caught.value.file, caught.value.line)
    assert not ran.exists()


def test_templates_call_what_is_made_for_them(tmp_path: Path) -> None:
    """Macros, loops, texts and the mappings of records are called as in any template."""
    (tmp_path / "odd.j2").write_text(
        "{% macro m(x) %}<{{ x.upper() }}{{ caller() }}>{% endmacro %}"
        "{% for key in named.keys() %}{% call m(key) %}{{ loop.cycle('a', 'b') }}{% endcall %}{% endfor %}"
        "{{ '{}!'.format(named.get('p')) }}{% set c = cycler('x', 'y') %}{{ c.next() }}{{ c.next() }}"
    )
    assert "<Pa><Qb>1!xy" == render("odd.j2", {"named": {"p": 1, "q": 2}}, tmp_path)


def test_a_field_of_a_record_is_read_as_often_as_it_is_asked_for(tmp_path: Path) -> None:
    """What is safe of a class is so for each of its values; an unknown name stays an error."""
    every = "{% for line in lines %}{{ line.text }}{% endfor %}"
    (tmp_path / "even.j2").write_text(every)
    (tmp_path / "odd.j2").write_text(every + "{{ lines[0].nothing }}")
    (tmp_path / "unsafe.j2").write_text(every + "{{ lines[0].__class__ }}{{ lines[1].__class__ }}")
    lines = {"lines": [DiffLine(1, 1, "a"), DiffLine(2, 2, "b")]}
    assert "ab" == render("even.j2", lines, tmp_path)
    for name, message in (("odd.j2", "nothing"), ("unsafe.j2", "unsafe")):
        with pytest.raises(BadDataError, match=message):
            render(name, lines, tmp_path)


LIMITS = [
    ("\n{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", 2, "seconds"),
    ("\n{% for a in range(99999) %}{{ 'a' * 99 }}{% endfor %}", 2, "writes more than"),
    ("{% set x = 'a' * 10**12 %}", 1, "MiB"),
    ("{{ 'a' | center(10**12) }}", 1, "MiB"),
    ("{{ ('a\na' * 9) | indent(10**12) }}", 2, "MiB"),
    ("{{ '%1000000000000d' | format(1) }}", 1, "MiB"),
    ("{{ '{:>10000000000}'.format(1) }}", 1, "MiB"),
    ("\n{{ 10 ** (10 ** 8) }}", 2, "integer of more than"),
    ("\n{{ 1.5 | round(10 ** 8, 'ceil') }}", 2, "Over"),
    (
        "{% set n = namespace(x='aa') %}\n{% for a in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
        2,
        "MiB",
    ),
    ("{% macro m() %}\n{{ m() }}{% endmacro %}{{ m() }}", 2, "RecursionError"),
    ("{{ lipsum(n=10 ** 9) }}", 1, "seconds"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("template", "line", "message"), LIMITS, ids=[each[0].strip() for each in LIMITS])
def test_a_template_ends_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, template: str, line: int, message: str
) -> None:
    """Whatever it repeats: the error names its file and line, and the process is as it was."""
    monkeypatch.setattr(templates, "MOST_SECONDS", 1)
    monkeypatch.setattr(templates, "MOST_OUTPUT", 1 << 20)
    monkeypatch.setattr(templates, "MOST_MEMORY", 1 << 28)
    before = signal.getsignal(signal.SIGPROF), resource.getrlimit(resource.RLIMIT_AS)
    (tmp_path / "odd.j2").write_text(template)
    start = time.process_time()
    with pytest.raises(BadDataError) as caught:
        render("odd.j2", {}, tmp_path)
    assert (str(tmp_path / "odd.j2"), line) == (caught.value.file, caught.value.line)
    assert message in caught.value.message
    assert before == (signal.getsignal(signal.SIGPROF), resource.getrlimit(resource.RLIMIT_AS))
    assert (0, 0) == signal.getitimer(signal.ITIMER_PROF)
    assert time.process_time() - start < 10


@pytest.mark.parametrize("name", ["odd.j2", "report.css"])
def test_a_template_is_a_regular_file_of_the_repository(tmp_path: Path, name: str) -> None:
    """No link leads out of it, also none in the place of the folder; a pipe is not waited for."""
    own, other = tmp_path / "root/templates", tmp_path / "other"
    for folder in (own, other):
        folder.mkdir(parents=True)
        (folder / name).write_text("secret")
    read = source if name.endswith(".css") else partial(render, context={})
    assert "secret" == read(name, own=own)
    templates._environment.cache_clear()
    for make, message in (
        (lambda file: file.symlink_to("/proc/self/environ"), "leaves the repository"),
        (lambda file: file.symlink_to(other / name), "leaves the repository"),
        (os.mkfifo, "not a regular file"),
        (lambda file: file.symlink_to("/dev/zero"), "leaves the repository"),
        (
            lambda file: os.truncate(os.open(file, os.O_CREAT | os.O_RDWR), templates.LARGEST + 1),
            "more than 4 MiB",
        ),
    ):
        (own / name).unlink()
        make(own / name)
        with pytest.raises(BadDataError, match=message):
            read(name, own=own)
    rmtree(own)
    own.symlink_to(other)
    with pytest.raises(BadDataError, match="leaves the repository"):
        read(name, own=own)
