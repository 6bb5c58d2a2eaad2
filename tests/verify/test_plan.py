"""Planning a verification from the ticket alone, without running any of the code it names."""

from __future__ import annotations

from textwrap import indent

import pytest
from tests.conftest import Repository

from finding_tickets.errors import BadDataError
from finding_tickets.measure.tasks import FunctionPath, ResultPair
from finding_tickets.verify.plan import Plan, plan

NOTHING_RUNS = "raise SystemExit('this file must not be run')\ndef check(): ...\n"


def remediation(block: str) -> str:
    """A Remediation section around a YAML block."""
    return f"## Remediation\n\n```yaml\n{block}\n```\n"


def planned(repository: Repository, block: str = "claims: {found: {syncs: 1}}") -> Plan | None:
    """The plan for ``B1-PT-01`` with this Remediation block."""
    repository.ticket(more=remediation(block))
    return plan(repository.load().find("B1-PT-01"), repository.root)


@pytest.fixture
def measurable(repository: Repository) -> Repository:
    """A repository with a verifier and two variants where the convention expects them."""
    repository.write("verifiers/b1_pt_01.py", NOTHING_RUNS)
    repository.write("fixes/b1_pt_01/found.py", NOTHING_RUNS)
    repository.write("fixes/b1_pt_01/fix.py", NOTHING_RUNS)
    return repository


def line_of(repository: Repository, text: str) -> int:
    """The line of the ticket that contains ``text``."""
    lines = (repository.root / "tickets/B1-PT-01.md").read_text(encoding="utf-8").split("\n")
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_the_convention_fills_what_a_block_leaves_out(measurable: Repository) -> None:
    """Verifier and variants stand under the ticket's ID; nothing is imported to find them."""
    found = planned(measurable)
    assert found is not None
    assert "verifiers/b1_pt_01.py" == found.verifier
    assert {
        name: FunctionPath(f"fixes/b1_pt_01/{name}.py", "check") for name in ("found", "fix")
    } == found.variants
    assert ("verifiers/b1_pt_01.py", "fixes/b1_pt_01/found.py", "fixes/b1_pt_01/fix.py") == found.files


def test_a_block_may_name_files_and_modules(measurable: Repository) -> None:
    """What the block names replaces the convention; a module has no file of its own in the plan."""
    found = planned(
        measurable,
        "variants: {found: 'package.core:Part.check', other: 'code.py:slow'}\nclaims: {found: {syncs: 1}}",
    )
    assert found is not None
    assert {
        "found": FunctionPath("package.core", "Part.check"),
        "other": FunctionPath("code.py", "slow"),
    } == found.variants
    assert ("verifiers/b1_pt_01.py", "code.py") == found.files


def test_a_claimed_variant_may_stand_in_the_usual_folder(measurable: Repository) -> None:
    """A block that names some variants still finds the others that it makes claims about."""
    found = planned(measurable, "variants: {found: 'code.py:slow'}\nclaims: {fix: {syncs: 1}}")
    assert found is not None
    assert FunctionPath("fixes/b1_pt_01/fix.py", "slow") == found.variants["fix"]


def test_so_may_the_variant_that_a_claim_compares_with(measurable: Repository) -> None:
    """It needs no claim of its own."""
    found = planned(measurable, "variants: {fix: 'code.py:slow'}\nclaims: {fix: {same_result_as: found}}")
    assert found is not None
    assert FunctionPath("fixes/b1_pt_01/found.py", "slow") == found.variants["found"]


def test_a_job_asks_for_what_the_claims_need(measurable: Repository) -> None:
    """Graph breaks are traced, and results kept, for the variants with such claims."""
    found = planned(
        measurable,
        "claims:\n  fix:\n    graph_breaks: [0, <= 1]\n    same_result_as:\n"
        "    - {is: found, at: {n: 1}}\n    - {is: found, at: {n: 2}}",
    )
    assert found is not None
    jobs = found.jobs("simulated").values()
    assert [("found", False, True), ("fix", True, True)] == [
        (job.variant, job.graph_breaks, job.keeps) for job in jobs
    ]
    assert (ResultPair("fix", "found"),) == found.comparisons


def test_a_revision_that_is_not_there_is_no_fault_of_the_ticket(measurable: Repository) -> None:
    """It is a sound reference, so the ticket is right and the verification inconclusive, with the reason."""
    found = planned(measurable, "variants: {found: 'code.py:slow@main~3'}\nclaims: {found: {syncs: 1}}")
    assert found is not None
    assert found.trouble is not None
    assert "main~3" in found.trouble


@pytest.mark.parametrize(
    ("claims", "marked", "message", "hint"),
    [
        ("found: {syncs: 4*}", "found:", "claim found.syncs: unexpected end at column 3 of '4*'", None),
        ("found: {syncs: {is: 1, at: {n: '>'}}}", "found:", "claim found.syncs: unexpected end", None),
        ("found: {syncs: {is: 1, at: {n: O(n)}}}", "found:", "n: a growth class selects no points", None),
        ("fixed: {syncs: 1}", "fixed:", "claim fixed.syncs: unknown variant 'fixed'", "did you mean 'fix'?"),
        ("fix: {sinks: 1}", "fix:", "claim fix.sinks: unknown metric 'sinks'", "did you mean 'syncs'?"),
        ("fix: {same_result_as: fund}", "fix:", "unknown variant 'fund'", "did you mean 'found'?"),
        (
            "fix: {seconds: <= 0.5*found}",
            "fix:",
            "claim fix.seconds: unknown metric 'seconds'",
            "times are not measured: list the claim under unmeasured",
        ),
    ],
)
def test_a_claim_that_cannot_be_understood_is_placed(
    measurable: Repository, claims: str, marked: str, message: str, hint: str | None
) -> None:
    """File, line, what is wrong and what may have been meant."""
    with pytest.raises(BadDataError) as caught:
        planned(measurable, "claims:\n" + indent(claims, "  "))
    error = caught.value
    assert ("tickets/B1-PT-01.md", line_of(measurable, f"  {marked}")) == (error.file, error.line)
    assert message in error.message
    assert (error.hint or "").startswith(hint or "")


@pytest.mark.parametrize(
    ("block", "message", "hint"),
    [
        ("verifier: verifiers/b1_pt_1.py", "there is no file verifiers/b1_pt_1.py", "verifiers/b1_pt_01.py?"),
        ("variants: {found: 'fixes/gone.py:check'}", "there is no file fixes/gone.py", None),
        ("verifier: link.py", "link.py leaves the repository", None),
    ],
)
def test_a_file_that_cannot_be_run_is_named(
    measurable: Repository, block: str, message: str, hint: str | None
) -> None:
    """Missing files and links out of the repository are errors of the ticket, with its file and a line."""
    (measurable.root / "link.py").symlink_to(__file__)
    with pytest.raises(BadDataError) as caught:
        planned(measurable, block + "\nclaims: {found: {syncs: 1}}")
    assert (message, "tickets/B1-PT-01.md") == (caught.value.message, caught.value.file)
    assert caught.value.line is not None
    assert (caught.value.hint or "").endswith(hint or "")
