"""``tickets report`` with a matrix: what was measured in each cell, from evidence alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest
from tests.cli.conftest import Ran
from tests.conftest import Git, Repository
from tests.verify.conftest import FOUND, add

from finding_tickets.errors import ExitCode
from finding_tickets.measure.tasks import SIMULATED_DEVICE
from finding_tickets.model.verification import ClaimResult, Evidence, Sample, VariantResult, Verification
from finding_tickets.model.vocabulary import Verdict
from finding_tickets.register.staleness import own_torch
from finding_tickets.verify.evidence import inputs, rests_on, write
from finding_tickets.verify.plan import EVERY, plan

Tickets = Callable[..., Ran]
MATRIX = """
[matrix.torch]
"1.98.0" = "nowhere"
"1.99.0" = "nowhere"
"""


def claim(measured: str, holds: bool | None = True, metric: str = "syncs") -> ClaimResult:
    """What came of a claim about the fix."""
    return ClaimResult(
        id=f"fix.{metric}",
        variant="fix",
        metric=metric,
        claimed="<= 4*n",
        measured=measured,
        holds=holds,
        expect="holds",
    )


def samples(*counts: int | None, metric: str = "syncs", raised: int = 0) -> list[Sample]:
    """What the fix cost at n = 1, 2, 3, where that was measured; it raised at that n."""
    return [
        Sample(at={"n": n}, metrics={metric: count}, error="RuntimeError" if n == raised else None)
        for n, count in enumerate(counts, 1)
        if count is not None
    ]


def record(
    repository: Repository,
    ticket: str,
    verdict: Verdict,
    *claims: ClaimResult,
    torch: str | None = None,
    revision: str | None = None,
    samples: Sequence[Sample] = (),
) -> None:
    """Write evidence for a ticket as it is now, of a torch and of a revision, with samples of the fix."""
    document = repository.load().find(ticket)
    planned = plan(document, repository.root, {EVERY: revision} if revision else {})
    assert planned is not None
    done = Verification(
        ticket=ticket,
        verdict=verdict,
        reason="so it is",
        meter="simulated",
        torch=torch or own_torch(),
        device=SIMULATED_DEVICE,
        sweep=({"n": 1},),
        variants={"fix": VariantResult(laws={}, samples=tuple(samples), sites=())} if samples else {},
        claims=claims,
        revision=revision,
    )
    given = inputs(planned, document, done, rests_on((), planned, planned.root, ()))
    write(Evidence(inputs=given, verification=done), repository.root, "evidence")


@pytest.fixture
def measured(repository: Repository) -> Repository:
    """Three tickets with a verifier and one without, measured with some of three versions of torch."""
    repository.write("tickets.toml", MATRIX)
    for name in ("A-1", "A-2", "A-3"):
        add(repository, name)
    repository.ticket("B-1")
    record(repository, "A-1", Verdict.VERIFIED, claim("4*n"))
    record(repository, "A-1", Verdict.FAILED, claim("5*n|m", holds=False), torch="1.98.0")
    record(repository, "A-1", Verdict.VERIFIED, claim("4*n"), torch="1.99.0")
    record(repository, "A-2", Verdict.VERIFIED, claim("n"))
    record(repository, "A-2", Verdict.VERIFIED, claim("n"), torch="1.98.0")
    record(repository, "A-2", Verdict.FAILED, claim("9*n"), torch="1.99.0")
    stale = repository.root / f"evidence/A-2/simulated-torch1.99.0-{SIMULATED_DEVICE}.json"
    kept = stale.read_bytes()
    repository.write("fixes/a_2/fix.py", FOUND)
    record(repository, "A-2", Verdict.VERIFIED, claim("n"))
    record(repository, "A-2", Verdict.VERIFIED, claim("n"), torch="1.98.0")
    stale.write_bytes(kept)
    return repository


def section(text: str) -> list[str]:
    """The lines of the Markdown report about the matrix, but for empty ones."""
    return [line for line in text.partition("## Matrix\n")[2].partition("\n## ")[0].splitlines() if line]


@pytest.mark.usefixtures("measured")
def test_documents_by_cells(tickets: Tickets) -> None:
    """A column for each cell, every document that can be measured, and where cells do not agree."""
    own = own_torch()
    ran = tickets("report")
    assert ExitCode.OK == ran.code
    first, *lines = section(ran.out)
    assert first.startswith("The cells agree on 1 of 2 documents that are measured in more than one. ")
    both = f"torch {own} and torch 1.99.0"
    assert [
        f"| ID | torch {own} | torch 1.98.0 | torch 1.99.0 |",
        "|---|---|---|---|",
        "| A-1 | verified | failed | verified |",
        "| A-2 | verified | verified | stale |",
        "| A-3 | not measured | not measured | not measured |",
        f"- A-1, `verdict`: `verified` in {both}; `failed` in torch 1.98.0",
        f"- A-1, `fix.syncs`: `4*n (holds)` in {both}; `5*n|m (false)` in torch 1.98.0",
    ] == lines


@pytest.mark.usefixtures("measured")
def test_a_query_chooses_the_documents(tickets: Tickets) -> None:
    """Those that it does not mean are in no table, and their differences are not told."""
    lines = section(tickets("report", "A-2").out)
    assert ["| A-2 | verified | verified | stale |"] == [line for line in lines if "| A-" in line]
    assert [] == [line for line in lines if line.startswith("- ")]


@pytest.mark.usefixtures("measured")
def test_as_json(tickets: Tickets) -> None:
    """The same, with the verdicts by the names that they have everywhere."""
    matrix = tickets("report", "--format", "json").envelope["status"]["matrix"]
    assert [own_torch(), "1.98.0", "1.99.0"] == [cell["torch"] for cell in matrix["cells"]]
    assert ["verified", "verified", "stale"] == matrix["documents"][1]["verdicts"]
    assert {"id": "A-3", "verdicts": ["unverified"] * 3} == matrix["documents"][2]
    assert ["verdict", "fix.syncs"] == [each["what"] for each in matrix["differences"]]
    assert {"value": "5*n|m (false)", "cells": ["torch 1.98.0"]} == matrix["differences"][1]["values"][1]
    assert 2 == matrix["compared"]


@pytest.mark.usefixtures("measured")
def test_as_a_page(tickets: Tickets) -> None:
    """Rows lead to the documents; a verdict has its word and its colour; differences are listed."""
    page = tickets("report", "--format", "html").out
    table = page.partition('<table class="matrix">')[2].partition("</table>")[0]
    assert [f"torch {own_torch()}", "torch 1.98.0", "torch 1.99.0"] == re.findall(
        r'<th scope="col">(torch .*?)</th>', table
    )
    assert '<th scope="row"><a href="#A-2">A-2</a></th>' in table
    assert ["verified", "verified", "stale"] == re.findall(
        r'"verdict is-(\w+)"', table.partition("A-2</a>")[2].partition("</tr>")[0]
    )
    assert '<span class="verdict is-unverified">not measured</span>' in table
    assert "<code>5*n|m (false)</code> in torch 1.98.0</li>" in page


@pytest.mark.parametrize("line", ["report", "report --format html", "list", "lint", "show A-1"])
def test_no_interpreter_is_started_but_to_measure(
    measured: Repository, git: Git, tickets: Tickets, line: str
) -> None:
    """What the configuration names is a program, and a report needs none."""
    mark = measured.root / "mark"
    measured.write("nowhere", f"#!/bin/sh\ntouch {mark}\n").chmod(0o755)
    git("add", ".")
    git("commit", "-m", "all")
    name, *arguments = line.split()
    assert "" != tickets(name, *arguments).out
    assert not mark.exists()


@pytest.mark.parametrize("output_format", ["markdown", "html", "json"])
def test_without_a_matrix_nothing_is_said_of_one(
    repository: Repository, tickets: Tickets, output_format: str
) -> None:
    """Who declares none has reports as they were."""
    add(repository, "A-1")
    record(repository, "A-1", Verdict.VERIFIED, claim("n"))
    record(repository, "A-1", Verdict.FAILED, claim("n"), torch="1.98.0")
    out = tickets("report", "--format", output_format).out
    assert "atrix</h3>" not in out
    assert "## Matrix" not in out
    if output_format == "json":
        assert '"matrix": null' in out


def test_a_revision_is_a_cell(repository: Repository, git: Git, tickets: Tickets) -> None:
    """It is compared with the work tree."""
    add(repository, "A-1")
    git("add", ".")
    git("commit", "-m", "code")
    repository.write("tickets.toml", "matrix = {revisions = ['main']}")
    record(repository, "A-1", Verdict.VERIFIED, claim("n"))
    record(repository, "A-1", Verdict.FAILED, claim("2*n"), revision="main")
    assert "| A-1 | verified | failed |" in section(tickets("report").out)
    git("add", "evidence")
    git("commit", "-m", "evidence")
    # The branch has moved to another commit than was measured.
    assert "| A-1 | verified | stale |" in section(tickets("report").out)


@pytest.mark.parametrize("place", ["", "main/"], ids=["of the work tree", "of a revision"])
def test_evidence_that_was_edited_is_told_once(
    repository: Repository, git: Git, tickets: Tickets, place: str
) -> None:
    """Nothing is known of its document in any cell; the file is counted, or else named, exit code 4."""
    add(repository, "A-1")
    git("add", ".")
    git("commit", "-m", "code")
    repository.write("tickets.toml", "matrix = {revisions = ['main']}")
    record(repository, "A-1", Verdict.VERIFIED, claim("n"))
    record(repository, "A-1", Verdict.VERIFIED, claim("n"), revision="main")
    file = repository.root / f"evidence/A-1/{place}simulated-torch{own_torch()}-{SIMULATED_DEVICE}.json"
    file.write_text(file.read_text().replace("so it is", "so be it"))
    ran = tickets("report")
    told = ran.err.count("it was edited") + ran.err.count("1 problem (1 error); ")
    assert (ExitCode.BAD_DATA, 1) == (ran.code, told)
    assert "| A-1 | unreadable | unreadable |" in section(ran.out)


@pytest.mark.parametrize(
    ("here", "there", "differing"),
    [
        # No two runs take the same time: the outcome counts.
        ([claim("0.3", metric="seconds")], [claim("0.4", metric="seconds")], []),
        ([claim("0.3", metric="seconds")], [claim("1.4", holds=False, metric="seconds")], ["fix.seconds"]),
        # What was left open is no outcome.
        ([claim("n"), claim("?", holds=None, metric="h2d")], [claim("n"), claim("2", metric="h2d")], []),
        # The same outcome by another law is a difference.
        ([claim("n")], [claim("2*n")], ["fix.syncs"]),
    ],
)
def test_what_is_a_difference(
    repository: Repository,
    tickets: Tickets,
    here: Sequence[ClaimResult],
    there: Sequence[ClaimResult],
    differing: list[str],
) -> None:
    """A claim of which another law was measured, or that came out otherwise."""
    add(repository, "A-1")
    repository.write("tickets.toml", MATRIX)
    record(repository, "A-1", Verdict.VERIFIED, *here)
    record(repository, "A-1", Verdict.VERIFIED, *there, torch="1.98.0")
    matrix = tickets("report", "--format", "json").envelope["status"]["matrix"]
    assert (1, differing) == (matrix["compared"], [each["what"] for each in matrix["differences"]])


@pytest.mark.parametrize(
    ("here", "less", "there", "more", "differing"),
    [
        # What was measured in both is the same, whatever fits the fewer points.
        (claim("4*n, at 2 of 3 points"), samples(4, 8), claim("4*n"), samples(4, 8, 12), []),
        (claim("8, at 1 of 3 points"), samples(None, 8), claim("4*n"), samples(4, 8, 12), []),
        # Nothing was measured in both.
        (
            claim("4, at 1 of 3 points"),
            samples(4),
            claim("9..12, at 2 of 3 points"),
            samples(None, 9, 12),
            [],
        ),
        # Something was, and is not the same.
        (claim("4..9, at 2 of 3 points"), samples(4, 9), claim("4*n"), samples(4, 8, 12), ["fix.syncs"]),
        # Nor is an outcome, wherever it comes from.
        (claim("4*n"), samples(4, 8), claim("4..99", holds=False), samples(4, 8, 99), ["fix.syncs"]),
        # At as many points as were measured.
        (
            claim("equal at 2 of 2 points", metric="same_result"),
            samples(4, 8),
            claim("equal at 3 of 3 points", metric="same_result"),
            samples(4, 8, 12),
            [],
        ),
        # What was counted up to an exception is no cost of the whole, but that it raised is a result.
        (claim("4, at 1 of 2 points"), samples(4, 7, raised=2), claim("4*n"), samples(4, 8), []),
        (
            claim("n-1", metric="raised"),
            samples(0, 1, metric="raised", raised=2),
            claim("0", metric="raised"),
            samples(0, 0, 0, metric="raised"),
            ["fix.raised"],
        ),
    ],
)
def test_what_was_not_measured_makes_no_difference(
    repository: Repository,
    tickets: Tickets,
    here: ClaimResult,
    less: Sequence[Sample],
    there: ClaimResult,
    more: Sequence[Sample],
    differing: list[str],
) -> None:
    """Where a cell lacks points of the sweep, those count that both have."""
    add(repository, "A-1")
    repository.write("tickets.toml", MATRIX)
    record(repository, "A-1", Verdict.VERIFIED, here, samples=less)
    record(repository, "A-1", Verdict.VERIFIED, there, samples=more, torch="1.98.0")
    matrix = tickets("report", "--format", "json").envelope["status"]["matrix"]
    assert differing == [each["what"] for each in matrix["differences"]]


def test_a_cell_with_fewer_points_hides_no_difference(repository: Repository, tickets: Tickets) -> None:
    """One that agrees with two that do not stands beside the first, with what that says of more points."""
    add(repository, "A-1")
    repository.write("tickets.toml", MATRIX)
    record(repository, "A-1", Verdict.VERIFIED, claim("n, at 2 of 3 points"), samples=samples(1, 2))
    record(repository, "A-1", Verdict.VERIFIED, claim("n"), samples=samples(1, 2, 3), torch="1.98.0")
    record(repository, "A-1", Verdict.VERIFIED, claim("1..9"), samples=samples(1, 2, 9), torch="1.99.0")
    both = f"torch {own_torch()} and torch 1.98.0"
    expected = f"- A-1, `fix.syncs`: `n (holds)` in {both}; `1..9 (holds)` in torch 1.99.0"
    assert expected == section(tickets("report").out)[-1]


def test_what_came_to_nothing_is_compared_with_nothing(repository: Repository, tickets: Tickets) -> None:
    """A cell in which the ticket could not be measured neither agrees nor disagrees."""
    add(repository, "A-1")
    repository.write("tickets.toml", MATRIX)
    record(repository, "A-1", Verdict.VERIFIED, claim("n"))
    record(repository, "A-1", Verdict.INCONCLUSIVE, claim("?", holds=None), torch="1.98.0")
    lines = section(tickets("report").out)
    assert lines[0].startswith("No document is measured in more than one cell.")
    assert "| A-1 | verified | inconclusive | not measured |" in lines


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize("line", ["", "A-2", "B-1", "none-of-them"])
def test_one_empty_line_at_a_time(git: Git, tickets: Tickets, line: str) -> None:
    """Whichever lists of the Markdown report are empty."""
    git("add", ".")
    git("commit", "-m", "all")
    out = tickets("report", *line.split()).out
    assert out.startswith("# Status of ")
    assert "\n\n\n" not in out
    assert re.search(r"[^\n]\n## ", out) is None
