"""Claims about time: what decides them, what evidence keeps of them, and one measured from end to end."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Git, Repository
from tests.verify.conftest import add, report, run
from tests.verify.conftest import verify_all as verified

from finding_tickets.errors import BadDataError
from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.measure.timing import RatioInterval
from finding_tickets.model.ticket import Claim
from finding_tickets.model.verification import (
    ClaimResult,
    Evidence,
    Input,
    MeasuredTicket,
    Times,
    Timing,
    Verification,
)
from finding_tickets.model.vocabulary import Verdict
from finding_tickets.register.query import Facts
from finding_tickets.report.rows import LIST_COLUMNS
from finding_tickets.report.text import plainly, verification_lines
from finding_tickets.verify.evidence import current_verdict, write
from finding_tickets.verify.judge import check
from finding_tickets.verify.plan import questions

POINTS = [{"n": 1}, {"n": 2}, {"n": 4}]
DEVICE = "the CPU (some model), 1 thread"

VERIFIER = """
from finding_tickets.workload import Point, Workload


def build(point, device, generator):
    return (point.n,)


workload = Workload(ticket="A-1", build=build, sweep=[Point(n=1), Point(n=2)]{more})
"""
HOST = VERIFIER.format(more=', timed_on="cpu"')
WORK = """
def work(n):
    return sum(range({units} * n)) * 0
"""
SLOW, FAST = WORK.format(units=200_000), WORK.format(units=1_000)
EXITS = """
import os

import simcuda


def work(n):
    simcuda.simulation.active() or os._exit(3)
    return 0
"""
CLAIMS = "claims:\n  found: {seconds: '>= 4*fix'}\n  fix: {seconds: <= 0.25*found, same_result_as: found}"


def claim(value: str, variant: str = "fix", **at: str) -> Claim:
    """A claim about the time of a variant."""
    return Claim(
        id=f"{variant}.seconds",
        variant=variant,
        metric="seconds",
        value=value,
        at=at,
        expect="holds",
        why=None,
        tolerance=None,
        line=9,
    )


def timed(*found: tuple[float, float] | str, **more: Any) -> MeasuredTicket:
    """A report of two variants, whose times have these intervals at the points, or the reason why none."""
    timings = [
        Timing(
            variant="fix",
            reference="found",
            at=at,
            device=DEVICE,
            ratio=None if isinstance(each, str) else sum(each) / 2,
            low=None if isinstance(each, str) else each[0],
            high=None if isinstance(each, str) else each[1],
            rounds=0 if isinstance(each, str) else 16,
            text=each if isinstance(each, str) else str(RatioInterval(sum(each) / 2, *each, 16)),
        )
        for at, each in zip(POINTS, found, strict=False)
    ]
    runs = {name: [run(at) for at in POINTS] for name in ("found", "fix")}
    times = Times(device=DEVICE, timings=tuple(timings), **more)
    return report(runs).model_copy(update={"timed_on": "cpu", "times": times})


@pytest.mark.parametrize(
    ("found", "holds", "measured", "counterexamples"),
    [
        (
            [(0.2, 0.25), (0.3, 0.4), (0.1, 0.2)],
            True,
            (
                "0.15 (0.1 to 0.2 over 16 rounds) at n=4 .. 0.35 (0.3 to 0.4 over 16 rounds) at n=2, "
                f"on {DEVICE}"
            ),
            (),
        ),
        # One point decides against the claim, whatever the others say.
        (
            [(0.2, 0.6), (0.55, 0.65), "it was too short"],
            False,
            (
                "0.4 (0.2 to 0.6 over 16 rounds) at n=1 .. 0.6 (0.55 to 0.65 over 16 rounds) at n=2, "
                f"on {DEVICE}"
            ),
            ("n=2: 0.6 (0.55 to 0.65 over 16 rounds)",),
        ),
        # An interval with the edge in it decides nothing, and so nothing is decided for the claim.
        (
            [(0.2, 0.25), (0.45, 0.55), (0.1, 0.2)],
            None,
            f"undecided at n=2: 0.5 (0.45 to 0.55 over 16 rounds), on {DEVICE}",
            (),
        ),
        (
            [(0.2, 0.25), "it was too short", (0.4, 0.6)],
            None,
            f"it was too short at n=2 and at 1 more points, on {DEVICE}",
            (),
        ),
        ([], None, "not timed at any point of the claim", ()),
    ],
)
def test_every_point_decides(
    found: list[Any], holds: bool | None, measured: str, counterexamples: tuple[str, ...]
) -> None:
    """A claim holds where it does at every point, and is never passed because nothing speaks against it."""
    (checked,) = check([claim("<= 0.5*found")], timed(*found))
    assert (holds, measured, counterexamples) == (checked.holds, checked.measured, checked.counterexamples)


def test_conditions_select_the_points() -> None:
    """At one point alone there is one ratio to tell, and at how many of all it was checked."""
    (checked,) = check([claim("<= 0.5*found", n="<= 1")], timed((0.2, 0.4), (0.6, 0.7), (0.6, 0.7)))
    text = f"0.3 (0.2 to 0.4 over 16 rounds), at 1 of 3 points, on {DEVICE}"
    assert (True, text) == (checked.holds, checked.measured)


def test_without_times_the_reason_is_what_is_measured() -> None:
    """That nothing could be timed at all is neither for nor against a claim."""
    (checked,) = check([claim("<= 0.5*found")], timed(why="times need a real GPU"))
    assert (None, "times need a real GPU") == (checked.holds, checked.measured)
    (checked,) = check([claim("<= 0.5*found")], timed().model_copy(update={"times": None}))
    assert (None, "not timed") == (checked.holds, checked.measured)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("<= 2*found/m", "claim fix.seconds: unknown variable 'm' at column 12"),
        ("<= found/(n - 1)", "division by zero"),
    ],
)
def test_variables_are_those_of_the_sweep(value: str, message: str) -> None:
    """An unknown one and a value that is none are errors of the ticket, before anything is timed."""
    with pytest.raises(BadDataError) as caught:
        (check if "m" in value else questions)([claim(value)], timed())
    assert (True, 9) == (message in caught.value.message, caught.value.line)


def test_a_variant_and_a_variable_of_one_name_are_told_apart_by_nobody() -> None:
    """Which of them a claim means is not guessed."""
    runs = {name: [run({"found": 1})] for name in ("found", "fix")}
    with pytest.raises(BadDataError, match="'found' names both a variant and a variable of the sweep"):
        check([claim("<= 0.5*found")], report(runs))


def test_what_is_timed_follows_from_the_claims() -> None:
    """Each pair once at each point that a claim is about and both ran at."""
    runs = {
        "found": [run(at) for at in POINTS],
        "fix": [run(POINTS[0]), run(POINTS[1], "x.py:3: ValueError"), run(POINTS[2])],
    }
    claims = [claim("<= 0.5*found"), claim("<= found/n", n="> 1"), claim(">= 3*fix", "found", n="1")]
    asked = [(one.subject, one.reference, one.at["n"]) for one in questions(claims, report(runs))]
    assert [("fix", "found", 1), ("fix", "found", 4), ("found", "fix", 1)] == asked


def evidence(holds: bool | None, value: str = "one", **more: Any) -> Evidence:
    """Evidence of one timed claim."""
    words = {True: "as claimed", False: "not as claimed", None: "undecided"}[holds]
    result = ClaimResult(
        id="fix.seconds",
        variant="fix",
        metric="seconds",
        claimed="<= found",
        measured=words,
        holds=holds,
        expect="holds",
    )
    fields: Mapping[str, Any] = {"variants": {}, "sweep": (), "claims": (result,), **more}
    verification = Verification(
        ticket="A-1",
        verdict=Verdict.INCONCLUSIVE if holds is None else Verdict.VERIFIED,
        reason=words,
        meter="simulated",
        torch="2.13.0",
        device="h200-cuda13",
        **fields,
    )
    return Evidence(inputs=(Input(name="x", kind="version", value=value),), verification=verification)


def test_an_undecided_timing_says_nothing_against_a_decided_one(tmp_path: Path) -> None:
    """Evidence of the same inputs stays; other inputs, another outcome and other samples replace it."""

    def recorded(now: Evidence) -> Evidence:
        write(evidence(True), tmp_path, "evidence")
        return write(now, tmp_path, "evidence")

    assert evidence(True) == recorded(evidence(None))
    others = [evidence(None, "two"), evidence(False), evidence(None, sweep=({"n": 1},))]
    assert others == list(map(recorded, others))
    assert evidence(None) == write(evidence(None), tmp_path / "new", "evidence")


def test_host_work_is_timed_on_the_host(repository: Repository, isolation: Isolation) -> None:
    """Of 200 times the work more than a quarter of the time is not told, whatever else the machine does."""
    add(repository, "A-1", CLAIMS, verifier=HOST, found=SLOW, fix=FAST)
    done = verified(repository, isolation, meter="simulated")["A-1"].verification
    assert done is not None
    assert (Verdict.VERIFIED, [True, True, True]) == (done.verdict, [one.holds for one in done.claims])
    assert done.reason.endswith("; found.seconds, fix.seconds by times on the CPU of one machine")
    told = [
        (one.variant, one.reference, one.at["n"], one.device.startswith("the CPU (")) for one in done.timings
    ]
    assert [
        ("found", "fix", 1, True),
        ("fix", "found", 1, True),
        ("found", "fix", 2, True),
        ("fix", "found", 2, True),
    ] == told
    title, *rows = [
        line.strip() for line in verification_lines(done, plainly) if "/f" in line or "times on" in line
    ][1:]
    assert title.startswith("times on the CPU (")
    assert ["found/fix n=1", "fix/found n=1", "found/fix n=2", "fix/found n=2"] == [
        " ".join(row.split()[:2]) for row in rows
    ]
    assert all(re.search(r"[\d.]+ \([\d.e-]+ to [\d.e+]+ over \d+ rounds\)$", row) for row in rows)


def test_evidence_has_no_times(repository: Repository, isolation: Isolation) -> None:
    """It says how each claim came out and on what; two runs with other times leave the same bytes."""
    add(repository, "A-1", CLAIMS, verifier=HOST, found=SLOW, fix=FAST)
    verified(repository, isolation, meter="simulated")
    (file,) = repository.root.glob("evidence/A-1/*.json")
    first = file.read_bytes()
    file.unlink()
    verified(repository, isolation, meter="simulated")
    assert first == file.read_bytes()
    kept = json.loads(first)["predicate"]["verification"]
    assert "timings" not in kept
    assert ["as claimed, by times on the CPU of one machine"] * 2 == [
        one["measured"] for one in kept["claims"] if one["metric"] == "seconds"
    ]
    register = repository.load()
    facts = Facts.of(register)
    assert "verified (timed)" == LIST_COLUMNS["verdict"](facts.rows[0], facts)
    current = current_verdict(register.find("A-1"), repository.root)
    assert current.verification is not None
    assert (Verdict.VERIFIED, True) == (current.verdict, "by times on" in current.verification.reason)


@pytest.mark.slow
def test_a_false_claim_about_time_fails(repository: Repository, isolation: Isolation) -> None:
    """A fix that does the same work as the code as found is not four times as fast."""
    add(repository, "A-1", CLAIMS, verifier=HOST, found=SLOW, fix=SLOW)
    done = verified(repository, isolation, meter="simulated")["A-1"].verification
    assert done is not None
    assert (Verdict.FAILED, [False, False, True]) == (done.verdict, [one.holds for one in done.claims])


def test_times_of_a_gpu_need_one(repository: Repository, isolation: Isolation) -> None:
    """The simulated device runs on the host: its times say nothing, and nothing else is decided by them."""
    claims = CLAIMS.replace("same_result_as: found", "same_result_as: found, syncs: 0")
    add(repository, "A-1", claims, verifier=VERIFIER.format(more=""), found=SLOW, fix=FAST)
    done = verified(repository, isolation, meter="simulated")["A-1"].verification
    assert done is not None
    assert Verdict.INCONCLUSIVE is done.verdict
    assert {"found.seconds": None, "fix.seconds": None, "fix.same_result_as": True, "fix.syncs": True} == {
        one.id: one.holds for one in done.claims
    }
    assert "fix.seconds: times need a real GPU" in done.reason
    assert () == done.timings


@pytest.mark.slow
def test_variants_at_revisions_are_timed_together(
    repository: Repository, isolation: Isolation, git: Git
) -> None:
    """Each is what its revision has, by the same name, and they run by turns."""
    repository.write("src/pkg/__init__.py", "")
    repository.write("src/pkg/work.py", SLOW)
    repository.write("verifiers/a_1.py", HOST)
    git("add", ".")
    git("commit", "-m", "found")
    repository.write("src/pkg/work.py", FAST)
    variants = "variants: {found: 'src/pkg/work.py:work@HEAD', fix: 'src/pkg/work.py:work'}"
    repository.ticket("A-1", more=f"## Remediation\n\n```yaml\n{variants}\n{CLAIMS}\n```\n")
    done = verified(repository, isolation, meter="simulated")["A-1"].verification
    assert done is not None
    assert [True, True, True] == [one.holds for one in done.claims]


def test_what_cannot_be_timed_leaves_the_rest(repository: Repository, isolation: Isolation) -> None:
    """Code that ends its process when no device is simulated is named, and the other claims are checked."""
    add(repository, "A-1", CLAIMS, verifier=HOST, found=SLOW, fix=EXITS)
    done = verified(repository, isolation, meter="simulated")["A-1"].verification
    assert done is not None
    why = "found, fix: the process that was timed ended"
    assert [(None, why), (None, why), (True, "equal at 2 of 2 points")] == [
        (one.holds, one.measured) for one in done.claims
    ]
