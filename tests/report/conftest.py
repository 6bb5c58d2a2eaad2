"""Reports to be written: rows of any text, some of them measured, in a register that holds no file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from hypothesis import strategies as st

from finding_tickets.model.ticket import Problem
from finding_tickets.model.verification import ClaimResult, Verification
from finding_tickets.model.vocabulary import Level, Verdict
from finding_tickets.register.config import Config
from finding_tickets.register.entries import Entry
from finding_tickets.register.load import Register
from finding_tickets.register.staleness import CurrentVerdict
from finding_tickets.report.rows import ReportRow
from finding_tickets.report.status import StatusReport, status_of_rows
from finding_tickets.report.verification import LawChange

ANY = st.text(st.characters(), max_size=12)
"""Any Unicode, control characters, surrogates and what no character is among it."""
HOSTILE = st.one_of(
    ANY,
    st.sampled_from(
        [
            "=1+1",
            ";=1+1",
            "\t=1+1",
            "@SUM(1)",
            "]]>",
            "<![CDATA[",
            "&x;",
            "\x00",
            "\x1b[31m",
            "\ud800",
            "\ufffe",
        ]
    ),
    st.sampled_from(
        ["](https://example.com)", "a | b", "::error::x", "%0A", '"', "'", "<b>", "\u2028", "\r"]
    ),
)


PATHS = HOSTILE.filter(
    lambda text: text and "\0" not in text and not re.search("[\ud800-\udc7f\udd00-\udfff]", text)
)
"""What a file may be called; a byte above 127 that is no UTF-8 is one of 128 low surrogates in its name."""


def claim(
    text: str = "1", *, holds: bool | None = True, expect: str = "holds", variant: str = "fix"
) -> ClaimResult:
    """A claim that says ``text`` wherever a claim says anything."""
    return ClaimResult.model_validate(
        {
            "id": f"{variant}.{text}",
            "variant": variant,
            "metric": text,
            "claimed": text,
            "measured": text,
            "holds": holds,
            "expect": expect,
            "why": text,
            "counterexamples": (text,),
        }
    )


def verification(text: str, verdict: Verdict, claims: Iterable[ClaimResult]) -> Verification:
    """A verification that says ``text`` wherever it says anything."""
    return Verification(
        ticket="T",
        verdict=verdict,
        reason=text,
        meter=text,
        torch=text,
        device=text,
        sweep=(),
        variants={},
        claims=tuple(claims),
    )


def row(
    ticket_id: str = "T-1",
    text: str = "It waits",
    *,
    verdict: Verdict = Verdict.UNVERIFIED,
    claims: Iterable[ClaimResult] | None = None,
    status: str | None = "open",
    severity: str = "P2",
    kind: str = "finding",
    path: str | None = None,
    changed: tuple[str, ...] = (),
) -> ReportRow:
    """A document that says ``text`` wherever it says anything; with claims it was measured."""
    done = None if claims is None else verification(text, verdict, claims)
    stated = Entry(
        kind=kind,
        path=path or f"tickets/{ticket_id}.md",
        id=ticket_id,
        title=text,
        severity=severity if kind == "finding" else None,
        status=status if kind == "finding" else None,
        agent=text,
        domains=(text,),
        categories=(text,),
        files=(text,),
        reviews=((text, text), (None, text)),
        related=((text, "related"),),
        created=text,
        summary=text,
    )
    told = Problem(level=Level.WARNING, rule="folder", file=stated.path, line=3, message=text)
    return ReportRow(
        stated=stated,
        measured=CurrentVerdict(verdict, done, changed=changed),
        severity=severity if kind == "finding" else "review",
        disposition=(status or "not stated") if kind == "finding" else "review",
        changes=(LawChange(text, text, None),),
        claimed=(LawChange(text, None, text),),
        contradictions=(told,),
    )


def report(rows: Iterable[ReportRow], *, root: Path = Path("/nowhere")) -> StatusReport:
    """A report on these rows."""
    rows = tuple(rows)
    facts = Register(root, Config(), tuple(each.stated for each in rows))
    return StatusReport(facts, status_of_rows(rows, facts, "a query"))


ROWS = st.lists(
    st.builds(
        row,
        st.one_of(st.just("T-1"), HOSTILE),
        HOSTILE,
        verdict=st.sampled_from(list(Verdict)),
        claims=st.one_of(
            st.none(),
            st.lists(
                st.builds(
                    claim,
                    HOSTILE,
                    holds=st.sampled_from([True, False, None]),
                    expect=st.sampled_from(["holds", "refuted"]),
                ),
                max_size=3,
            ),
        ),
        status=st.sampled_from(["open", "closed", "fixed", "wont-fix", None]),
        severity=st.sampled_from(["P0", "P4"]),
        kind=st.sampled_from(["finding", "review"]),
        path=st.one_of(st.just("tickets/T-1.md"), PATHS),
    ),
    max_size=4,
)
