"""Cheats in the place of a fix: which a verifier catches, by what, and when nothing is shown."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.verify import test_revisions, test_times
from tests.verify.conftest import FIX, FOUND, VERIFIER
from tests.verify.conftest import add_with_few_points as add

from finding_tickets.gate.audit import CHEATS, HONEST, LEAVING, Audited, Fate, audit
from finding_tickets.measure.cheating import WAYS
from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.verify.verify import Settings

if TYPE_CHECKING:
    from tests.conftest import Git, Repository

CLAIMS = "claims: {found: {syncs: tensors}, fix: {syncs: 1, same_result_as: {is: found, tolerance: 0.001}}}"
LOOSE = "claims: {found: {syncs: tensors}, fix: {syncs: <= 100}}"
REFUSED = {
    "warmed",
    "generator",
    "patched-torch",
    "patched-meter",
    "patched-device",
    "patched-code",
    "counters",
}
"""What the meter does not measure at all, whatever is claimed."""
PREVENTED = {"stopped"}
"""What no worker can do."""


ALL = {cheat.id for cheat in CHEATS}


def audited(
    repository: Repository, isolation: Isolation, timeout: float = 60.0, names: Collection[str] = ALL
) -> Audited:
    """The audit of the one ticket, with the cheats of these names."""
    settings = Settings(
        root=repository.root, evidence="evidence", meter="simulated", timeout=timeout, memory=2 << 30
    )
    (done,) = audit(
        repository.load().documents, isolation, settings, [each for each in CHEATS if each.id in names]
    )
    return done


def fates(done: Audited, fate: Fate) -> set[str]:
    """The cheats that met with a fate."""
    return {one.cheat.id for one in done.tried if one.fate is fate}


def test_every_cheat_of_the_table_can_be_made() -> None:
    """The table and the ways have the same names; the ways also the honest one and the code as found."""
    assert [LEAVING, HONEST, *(cheat.id for cheat in CHEATS)] == list(WAYS)


@pytest.mark.slow
def test_exact_claims_and_compared_results_catch_all(repository: Repository, isolation: Isolation) -> None:
    """Each is caught by what it is wrong in, and nothing is recorded or left in the repository."""
    add(repository, "A-1", CLAIMS)
    before = sorted(repository.root.rglob("*"))
    done = audited(repository, isolation)
    assert (None, "fix", ALL) == (done.reason, done.subject, fates(done, Fate.CAUGHT))
    assert before == sorted(repository.root.rglob("*"))
    by = {one.cheat.id: one.by for one in done.tried}
    # The unfixed code waits once for each tensor; the others cost what the fix does, or are refused.
    assert ("fix.syncs",) == by["unfixed"]
    assert ("fix.same_result_as",) == by["perturbed"]
    assert {("meter",)} == {by[name] for name in REFUSED}


def test_work_that_is_put_off_is_counted(repository: Repository, isolation: Isolation) -> None:
    """What looking at a list costs belongs to the run: counted as nothing, it would stay below a bound."""
    found = FOUND.replace("return total", "return [total]")
    fix = FIX.replace("return torch", "return [torch").replace(".item()", ".item()]")
    add(repository, "A-1", CLAIMS.replace("{syncs: 1,", "{syncs: <= 1,"), found=found, fix=fix)
    done = audited(repository, isolation, names={"deferred", "thread"})
    assert [("fix.syncs",)] * 2 == [one.by for one in done.tried]


@pytest.mark.slow
def test_work_that_is_put_off_can_stand_for_no_result(repository: Repository, isolation: Isolation) -> None:
    """No class can be derived from that of None: caught is the class, which is not plain."""
    found = FOUND.replace("return total", "return None")
    fix = "import torch\n\ndef check(tensors):\n    torch.stack([t.sum() for t in tensors]).tolist()\n"
    add(repository, "A-1", CLAIMS.replace(", tolerance: 0.001", ""), found=found, fix=fix)
    done = audited(repository, isolation, names={"deferred", "thread"})
    assert [("meter",)] * 2 == [one.by for one in done.tried]
    assert all("returned a Later, which cannot be compared" in one.reason for one in done.tried)
    assert not any("TypeError" in one.reason for one in done.tried)


@pytest.mark.slow
def test_loose_claims_miss_what_only_they_could_catch(repository: Repository, isolation: Isolation) -> None:
    """Where results are not compared and the count has room, only what the meter refuses is caught."""
    add(repository, "A-1", LOOSE)
    done = audited(repository, isolation)
    caught = REFUSED | PREVENTED
    assert (caught, ALL - caught) == (fates(done, Fate.CAUGHT), fates(done, Fate.MISSED))


@pytest.mark.slow
def test_a_verifier_with_one_constant_input_is_named(repository: Repository, isolation: Isolation) -> None:
    """A table of answers passes, and a note says why."""
    add(repository, "A-1", CLAIMS.replace("{syncs: 1,", "{syncs: <= 1,"))
    verifier = VERIFIER.format(ticket="A-1").replace(
        "rand(point.size, generator=generator)", "ones(point.size)"
    )
    repository.write("verifiers/a_1.py", verifier)
    done = audited(repository, isolation, names={"pasted"})
    assert {"pasted"} == fates(done, Fate.MISSED)
    assert "its inputs are the same whatever the seed" in (done.note or "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("claims", "fix", "reason"),
    [
        (CLAIMS, FOUND, "fix itself does not pass: not as expected: fix.syncs"),
        (
            CLAIMS,
            "import gone\n" + FIX,
            "fix itself does not pass: fixes/a_1/fix.py:1: ModuleNotFoundError: ",
        ),
        ("claims: {found: {syncs: tensors}}", FIX, "it needs the code as found, and a fix"),
    ],
)
def test_a_fix_that_does_not_pass_itself_shows_nothing(
    repository: Repository, isolation: Isolation, claims: str, fix: str, reason: str
) -> None:
    """A cheat that fails says something only where the fix in its place does not."""
    add(repository, "A-1", claims, fix=fix)
    done = audited(repository, isolation, names={"unfixed"})
    assert ((), reason) == (done.tried, (done.reason or "")[: len(reason)])


@pytest.mark.slow
def test_a_cheat_that_takes_too_long_is_untried(repository: Repository, isolation: Isolation) -> None:
    """The code as found never returns, and what did not run was neither caught nor missed."""
    add(repository, "A-1", LOOSE, found=FOUND.replace("total = 0.0", "while True: total = 0.0"))
    done = audited(repository, isolation, timeout=5.0, names={"unfixed", "nothing"})
    assert [("unfixed", Fate.UNTRIED, "still running after 5 s"), ("nothing", Fate.MISSED, "")] == [
        (one.cheat.id, one.fate, one.reason) for one in done.tried
    ]


@pytest.mark.slow
def test_a_ticket_that_keeps_its_code_is_audited_by_what_is_compared(
    repository: Repository, isolation: Isolation
) -> None:
    """Without a fix, cheats stand in for a variant that is claimed to do the same as the code as found."""
    claims = CLAIMS.replace("fix:", "other:")
    add(repository, "A-1", claims, other=FIX)
    (repository.root / "fixes/a_1/fix.py").unlink()
    names = {"unfixed", "perturbed", "shared", "cached"}
    done = audited(repository, isolation, names=names)
    assert ("other", names) == (done.subject, fates(done, Fate.CAUGHT))


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
    names = {"unfixed", "perturbed", "deferred", "cached"}
    done = audited(repository, isolation, names=names)
    assert (None, names) == (done.reason, fates(done, Fate.CAUGHT))
    assert ("fix.syncs",) == done.tried[0].by


@pytest.mark.slow
def test_a_fix_that_is_claimed_to_be_fast_must_be(repository: Repository, isolation: Isolation) -> None:
    """The time catches what results and counts do not: unfixed work, also where nobody counts."""
    add(
        repository,
        "A-1",
        test_times.CLAIMS,
        verifier=test_times.HOST,
        found=test_times.SLOW,
        fix=test_times.FAST,
    )
    done = audited(repository, isolation, names={"unfixed", "unwatched", "perturbed"})
    by = {one.cheat.id: one.by for one in done.tried}
    assert None is done.reason
    assert {
        "unfixed": ("fix.seconds",),
        "unwatched": ("fix.seconds",),
        "perturbed": ("fix.same_result_as",),
    } == by


@pytest.mark.slow
def test_what_is_only_timed_returns_nothing_to_compare(repository: Repository, isolation: Isolation) -> None:
    """The fix is compared with the code as found, and timed beside a variant whose results nobody wants."""
    claims, slow = "claims:\n  fix: {seconds: <= other, same_result_as: found}", test_times.SLOW
    files = {"found": slow, "other": slow, "fix": test_times.FAST}
    add(repository, "A-1", claims, verifier=test_times.HOST, **files)
    done = audited(repository, isolation, names={"perturbed"})
    assert (None, {"perturbed"}) == (done.reason, fates(done, Fate.CAUGHT))


def test_times_that_cannot_be_taken_take_no_part(repository: Repository, isolation: Isolation) -> None:
    """Without a GPU a ticket whose times need one is audited by its other claims."""
    verifier = test_times.VERIFIER.format(more="")
    add(repository, "A-1", test_times.CLAIMS, verifier=verifier, found=test_times.SLOW, fix=test_times.FAST)
    done = audited(repository, isolation, names={"unfixed", "perturbed"})
    assert [Fate.MISSED, Fate.CAUGHT] == [one.fate for one in done.tried]


def test_the_documentation_lists_every_cheat() -> None:
    """In the order in which they are tried."""
    page = (Path(__file__).parents[2] / "docs/audit.md").read_text(encoding="utf-8")
    assert [cheat.id for cheat in CHEATS] == re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE)
