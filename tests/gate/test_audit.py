"""Cheats in the place of a fix: which a verifier catches, by what, and when nothing is shown."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.verify import test_revisions
from tests.verify.conftest import FOUND, VERIFIER
from tests.verify.conftest import add_with_few_points as add

from finding_tickets.gate.audit import CHEATS, HONEST, Audited, Fate, audit
from finding_tickets.measure import cheating
from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.verify.verify import Settings

if TYPE_CHECKING:
    from tests.conftest import Git, Repository

CLAIMS = "claims: {found: {syncs: tensors}, fix: {syncs: 1, same_result_as: {is: found, tolerance: 0.001}}}"
LOOSE = "claims: {found: {syncs: tensors}, fix: {syncs: <= 100}}"
REFUSED = {"patched"}
"""What the meter does not measure at all, whatever is claimed."""
ALL = {cheat.id for cheat in CHEATS}


def audited(
    repository: Repository, isolation: Isolation, timeout: float = 60.0, names: Collection[str] = ALL
) -> Audited:
    """The audit of the one ticket, with the cheats of these names."""
    settings = Settings(
        root=repository.root,
        evidence="evidence",
        meter="simulated",
        timeout=timeout,
        memory=2 << 30,
        # Of some values the rounded ones are within the tolerance.
        seed=1,
    )
    (done,) = audit(
        repository.load().documents, isolation, settings, [each for each in CHEATS if each.id in names]
    )
    return done


def fates(done: Audited, fate: Fate) -> set[str]:
    """The cheats that met with a fate."""
    return {one.cheat.id for one in done.tried if one.fate is fate}


def test_every_cheat_of_the_table_can_be_made() -> None:
    """The table and the ways have the same names; the ways also the honest one."""
    assert [HONEST, *(cheat.id for cheat in CHEATS)] == list(cheating.CHEATS)


@pytest.mark.slow
def test_exact_claims_and_compared_results_catch_all(repository: Repository, isolation: Isolation) -> None:
    """Each is caught by what it is wrong in, and nothing is recorded or left in the repository."""
    add(repository, "A-1", CLAIMS)
    before = sorted(repository.root.rglob("*"))
    done = audited(repository, isolation)
    assert (None, "fix", ALL) == (done.reason, done.subject, fates(done, Fate.CAUGHT))
    assert before == sorted(repository.root.rglob("*"))
    by = {one.cheat.id: one.by for one in done.tried}
    # The unfixed code waits once for each tensor, in whatever thread; arguments are compared as results are.
    assert ("fix.syncs",) == by["unfixed"] == by["thread"]
    assert ("fix.same_result_as",) == by["perturbed"] == by["mutated"]
    assert ("meter",) == by["patched"] == by["deferred"]


@pytest.mark.slow
def test_loose_claims_miss_what_only_they_could_catch(repository: Repository, isolation: Isolation) -> None:
    """Where results are not compared and the count has room, only what the meter refuses is caught."""
    add(repository, "A-1", LOOSE)
    loose = {"unfixed", "perturbed", "mutated"}
    done = audited(repository, isolation, names=REFUSED | loose)
    assert (REFUSED, loose) == (fates(done, Fate.CAUGHT), fates(done, Fate.MISSED))


@pytest.mark.slow
def test_a_cheat_that_changes_nothing_is_harmless(repository: Repository, isolation: Isolation) -> None:
    """A whole number has no precision to lose."""
    claims = "claims: {found: {syncs: tensors}, fix: {syncs: 0, same_result_as: found}}"
    found = "def check(tensors):\n    return sum(bool(t.sum() > -1) for t in tensors)\n"
    fix = "def check(tensors):\n    return len(tensors)\n"
    add(repository, "A-1", claims, found=found, fix=fix)
    done = audited(repository, isolation, names={"rounded", "perturbed"})
    assert [Fate.CAUGHT, Fate.HARMLESS] == [one.fate for one in done.tried]


@pytest.mark.slow
def test_a_verifier_with_one_constant_input_is_named(repository: Repository, isolation: Isolation) -> None:
    """A table of answers passes, which says that the inputs are always the same."""
    add(repository, "A-1", CLAIMS.replace("{syncs: 1,", "{syncs: <= 1,"))
    verifier = VERIFIER.format(ticket="A-1").replace(
        "rand(point.size, generator=generator)", "ones(point.size)"
    )
    repository.write("verifiers/a_1.py", verifier)
    done = audited(repository, isolation, names={"pasted"})
    assert {"pasted"} == fates(done, Fate.MISSED)


@pytest.mark.slow
def test_a_cheat_that_takes_too_long_is_untried(repository: Repository, isolation: Isolation) -> None:
    """The code as found returns too late, and what did not run was neither caught nor missed."""
    add(
        repository,
        "A-1",
        LOOSE,
        found=f"import time\n{FOUND.replace('total = 0.0', 'total = time.sleep(60)')}",
    )
    done = audited(repository, isolation, timeout=5.0, names={"unfixed", "partial"})
    assert [("unfixed", Fate.UNTRIED, "still running after 5 s"), ("partial", Fate.MISSED, "")] == [
        (one.cheat.id, one.fate, one.reason) for one in done.tried
    ]


@pytest.mark.slow
def test_code_as_found_at_another_revision_is_what_cheats_do(
    repository: Repository, isolation: Isolation, git: Git
) -> None:
    """Both run in one process, each with the modules of its own revision."""
    repository.write("verifiers/b1_pt_01.py", test_revisions.VERIFIER)
    repository.write("src/pkg/__init__.py", "")
    repository.write("src/pkg/parts.py", test_revisions.PARTS)
    repository.write("src/pkg/meter.py", test_revisions.SLOW)
    repository.write("src/pkg/reading.py", test_revisions.ONE_BY_ONE)
    git("add", "src")
    git("commit", "-m", "found")
    repository.write("src/pkg/reading.py", test_revisions.TOGETHER)
    repository.ticket(more=test_revisions.BLOCK.format(found="HEAD", fix=""))
    names = {"unfixed", "perturbed", "cached"}
    done = audited(repository, isolation, names=names)
    assert (None, names) == (done.reason, fates(done, Fate.CAUGHT))
    assert ("fix.syncs",) == done.tried[0].by


def test_the_documentation_lists_every_cheat() -> None:
    """In the order in which they are tried."""
    page = (Path(__file__).parents[2] / "docs/audit.md").read_text(encoding="utf-8")
    assert [cheat.id for cheat in CHEATS] == re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE)
