"""The page about reports says what reports have: every name, every section, and examples that work."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest
from tests.cli.conftest import Ran
from tests.conftest import Repository

from finding_tickets.lint.contradictions import CONTRADICTIONS
from finding_tickets.register.entries import Entry as Stated
from finding_tickets.report import rows
from finding_tickets.report.rows import CONSENSUS, ReportRow
from finding_tickets.report.status import (
    CrossTable,
    Disagreement,
    Headline,
    NextStep,
    OpenWork,
    RefutedClaim,
    RegisterStatus,
    StatusReport,
)
from finding_tickets.report.verification import LawChange

PAGE = Path(__file__).parents[2] / "docs" / "reports.md"
RECORDS = (
    StatusReport,
    RegisterStatus,
    ReportRow,
    Disagreement,
    RefutedClaim,
    OpenWork,
    Headline,
    NextStep,
    CrossTable,
)
SHOWN_ELSEWHERE = {"id", "kind", "path", "title", "severity"}


def public(record: type) -> set[str]:
    """The names that a template can ask a record for."""
    return {
        name for name in (*record.__dict__, *(f.name for f in fields(record))) if not name.startswith("_")
    }


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_every_name_is_documented(record: type) -> None:
    """What a template may use, the page names."""
    page = PAGE.read_text(encoding="utf-8")
    assert set() == {name for name in public(record) if not re.search(rf"`\.{name}(\(\))?`", page)}


def test_every_name_of_what_is_stated_is_documented() -> None:
    """So are the fields of the index and those of laws; what a row has itself is named there."""
    page = PAGE.read_text(encoding="utf-8")
    names = ({each.name for each in fields(Stated)} - SHOWN_ELSEWHERE) | {
        each.name for each in fields(LawChange)
    }
    assert set() == {name for name in names if f"`.{name}`" not in page}


def test_every_section_is_documented() -> None:
    """The headings of the Markdown report are the rows of the table of sections, in their order."""
    template = PAGE.parents[1] / "templates" / "report.md.j2"
    headings = re.findall(r"^## ([^{\n]+?) ?(?:{|$)", template.read_text(encoding="utf-8"), re.MULTILINE)
    page = PAGE.read_text(encoding="utf-8").partition("## Tables and sections")[2].partition("\n## ")[0]
    # Of the heading that names a revision, the page has *REV*.
    assert headings == re.findall(r"^\| ([A-Z][^|*]*?) (?:\*REV\* )?\|", page, re.MULTILINE)


def test_words_are_documented() -> None:
    """Each word of the consensus, and each rule whose breach is a contradiction."""
    page = PAGE.read_text(encoding="utf-8")
    words = [*CONSENSUS, *CONTRADICTIONS, rows.REFUTED_RULE, rows.UNPROVEN_RULE]
    assert [] == [word for word in words if f"`{word}`" not in page]


def test_the_templates_of_the_page_work(tickets: Callable[..., Ran], repository: Repository) -> None:
    """As they stand there: one that extends the page of HTML, and one of one's own."""
    extended, own = re.findall(r"```jinja\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    repository.write("templates/mine.html.j2", extended)
    repository.write("templates/handover.md.j2", own)
    repository.ticket("A-1", severity="P0", status="open", title="It *waits*")
    repository.ticket("A-2", status="open")
    ran = tickets("report", "--template", "handover.md.j2")
    assert (0, "# For everybody\n\n- A-1 It \\*waits\\*: fix it, or decide to keep the code as it is\n") == (
        ran.code,
        ran.out,
    )
    ran = tickets("report", "--format", "html", "--template", "mine.html.j2")
    assert (0, 1) == (ran.code, ran.out.count("<title>What slows our training</title>"))
