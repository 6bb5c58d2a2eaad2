"""Evidence on disk: the same bytes every time, and stale as soon as an input has changed."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import pytest
from tests.conftest import Git, Repository

from finding_tickets.measure.processes.isolation import TaskOutcome
from finding_tickets.measure.processes.used_files import UsedFile, UsedFiles
from finding_tickets.model.verification import Evidence, VariantResult, Verification
from finding_tickets.model.vocabulary import Verdict
from finding_tickets.register import staleness
from finding_tickets.register.recorded import NOT_AS_RECORDED, OF_OLDER_VERSION
from finding_tickets.verify.evidence import (
    collect_inputs,
    file_inputs,
    name_of,
    write,
)
from finding_tickets.verify.plan import plan

TORCH = version("torch").split("+")[0]
BLOCK = "## Remediation\n\n```yaml\nclaims: {found: {syncs: 1}}\n```\n"


@pytest.fixture
def verified(repository: Repository) -> Repository:
    """A repository with one ticket that has a verifier, a variant and a module it imports."""
    repository.ticket(more=BLOCK)
    repository.write("verifiers/b1_pt_01.py", "")
    repository.write("fixes/b1_pt_01/found.py", "def check(): ...\n")
    repository.write("helper.py", "")
    return repository


def record(
    repository: Repository,
    verdict: Verdict = Verdict.VERIFIED,
    meter: str = "simulated",
    torch: str = TORCH,
    device: str = "h200-cuda13",
) -> Path:
    """Write evidence for the ticket as it is now."""
    document = repository.load().find("B1-PT-01")
    planned = plan(document, repository.root)
    assert planned is not None
    verification = Verification(
        ticket="B1-PT-01",
        verdict=verdict,
        reason="so it is",
        meter=meter,
        torch=torch,
        device=device,
        sweep=({"n": 1},),
        variants={"found": VariantResult(laws={}, samples=(), sites=())},
        claims=(),
    )
    helper = repository.root / "helper.py"
    there = helper.stat()
    used = UsedFile(str(helper), False, there.st_size, there.st_mtime_ns, there.st_ctime_ns)
    outcome = TaskOutcome(used=UsedFiles(there.st_ctime_ns + 1, (used,)))
    inputs = collect_inputs(planned, verification, file_inputs([outcome], planned))
    write(Evidence(inputs=inputs, verification=verification), repository.root, "evidence")
    return repository.root / "evidence" / name_of(verification)


def verdict(repository: Repository) -> Verdict:
    """The verdict that counts now."""
    return repository.measured("B1-PT-01").verdict


def changed(repository: Repository) -> tuple[str, ...]:
    """The inputs that are others than they were."""
    return repository.measured("B1-PT-01").changed


def test_a_file_for_each_document_and_environment(verified: Repository) -> None:
    """The folder is the ID, the name says meter, torch and device."""
    file = record(verified).relative_to(verified.root).as_posix()
    assert f"evidence/B1-PT-01/simulated-torch{TORCH}-h200-cuda13.json" == file


def test_the_same_result_is_the_same_file(verified: Repository) -> None:
    """Recording it again does not even touch the file, and leaves nothing beside it."""
    file = record(verified)
    before = file.read_bytes(), file.stat().st_mtime_ns
    record(verified)
    assert before == (file.read_bytes(), file.stat().st_mtime_ns)
    assert [file] == list(file.parent.iterdir())


def test_a_write_that_fails_leaves_the_old_file(
    verified: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new content is put aside first; when that cannot replace the old one, the old one stays alone."""
    file = record(verified)
    before = file.read_bytes()

    def refuse(*_: object) -> None:
        raise OSError("disk on fire")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(OSError, match="disk on fire"):
        record(verified, Verdict.FAILED)
    assert (before, [file]) == (file.read_bytes(), list(file.parent.iterdir()))


@pytest.mark.parametrize("path", ["verifiers/b1_pt_01.py", "fixes/b1_pt_01/found.py", "helper.py"])
def test_a_changed_file_makes_evidence_stale(verified: Repository, path: str) -> None:
    """The verifier, a variant and a module that was imported are all inputs, and named."""
    record(verified)
    verified.write(path, "def check(): return 1\n")
    assert (Verdict.STALE, (path,)) == (verdict(verified), changed(verified))


def test_evidence_of_an_older_version_is_stale_with_the_reason(verified: Repository) -> None:
    """It was a Statement of in-toto. What is recorded next takes its place."""
    file = record(verified)
    file.write_text('{"_type": "https://in-toto.io/Statement/v1", "subject": [], "predicate": {}}\n')
    assert (Verdict.STALE, (OF_OLDER_VERSION,)) == (verdict(verified), changed(verified))
    assert verified.measured("B1-PT-01").verification is None
    record(verified)
    assert Verdict.VERIFIED is verdict(verified)


def test_a_new_variant_makes_evidence_stale(verified: Repository) -> None:
    """Its folder is an input, by the names of the files there that may be variants."""
    record(verified)
    verified.write("fixes/b1_pt_01/_shared.py", "")
    assert () == changed(verified)
    verified.write("fixes/b1_pt_01/fix.py", "def check(): ...\n")
    assert (Verdict.STALE, ("fixes/b1_pt_01",)) == (verdict(verified), changed(verified))


def test_a_missing_file_makes_evidence_stale(verified: Repository) -> None:
    """Code that is gone was measured once, but is not there to be trusted."""
    record(verified)
    (verified.root / "fixes/b1_pt_01/found.py").unlink()
    gone = ("fixes/b1_pt_01", "fixes/b1_pt_01/found.py")
    assert (Verdict.STALE, gone) == (verdict(verified), changed(verified))


def test_a_changed_claim_makes_evidence_stale(verified: Repository) -> None:
    """Only the Remediation block counts: what people decide elsewhere in the ticket does not."""
    record(verified)
    verified.ticket(more=BLOCK, status="open", title="It waits still")
    assert (Verdict.VERIFIED, ()) == (verdict(verified), changed(verified))
    verified.ticket(more=BLOCK.replace("syncs: 1", "syncs: 2"))
    assert (Verdict.STALE, ("Remediation",)) == (verdict(verified), changed(verified))


def test_another_version_of_the_tool_makes_evidence_stale(
    verified: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the tool counts may differ between versions."""
    record(verified)
    monkeypatch.setattr(staleness, "__version__", "999")
    assert (Verdict.STALE, ("finding-tickets",)) == (verdict(verified), changed(verified))


def test_another_version_of_torch_makes_simulated_evidence_stale(
    verified: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What torch issues may differ between versions; a GPU elsewhere has measured with a torch of its own."""
    record(verified)
    monkeypatch.setattr(staleness, "own_torch", lambda: "999.0")
    assert (Verdict.STALE, ("torch",)) == (verdict(verified), changed(verified))
    record(verified, Verdict.FAILED, meter="cuda")
    assert Verdict.FAILED is verdict(verified)


def test_evidence_is_facts_line_by_line(verified: Repository) -> None:
    """It is JSON as a whole, and every line has one fact: what was measured, then what that depends on."""
    text = record(verified).read_text(encoding="utf-8")
    facts = json.loads(text)
    # The brackets have lines of their own.
    assert len(facts) + 2 == len(text.splitlines())
    assert ["verdict", "variant", "sweep"] == [fact[0] for fact in facts if fact[0] != "input"][:3]
    assert ["digest", "format"] == [fact[0] for fact in facts[-2:]]
    # printf 'def check(): ...\n' | sha256sum, its first digits
    digest = "c9071b40857a5320"
    assert ["input", "file", "fixes/b1_pt_01/found.py", digest] in facts
    names = [fact[2] for fact in facts if fact[0] == "input"]
    versions, files = ["finding-tickets", "torch", "Python"], ["helper.py", "verifiers/b1_pt_01.py"]
    assert [*versions, "Remediation", "fixes/b1_pt_01", "fixes/b1_pt_01/found.py", *files] == names


@pytest.mark.parametrize(
    ("old", "new"),
    [('"verified"', '"refuted"'), ("[[1]]", "[[2]]"), ("so it", "so IT"), ("]\n", "\n"), ("", "x")],
)
def test_evidence_that_was_edited_is_stale(verified: Repository, old: str, new: str) -> None:
    """One word changed by hand is enough; nothing is believed of the file."""
    file = record(verified)
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")
    assert (Verdict.STALE, (NOT_AS_RECORDED,)) == (verdict(verified), changed(verified))


def test_line_ends_of_another_system_change_nothing(verified: Repository) -> None:
    """Git may write them when it checks the file out."""
    file = record(verified)
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    assert Verdict.VERIFIED is verdict(verified)


def test_a_real_gpu_outranks_the_simulation(verified: Repository) -> None:
    """The verdict is that of the GPU, and that they disagree is said."""
    record(verified, Verdict.VERIFIED)
    record(verified, Verdict.FAILED, meter="cuda")
    current = verified.measured("B1-PT-01")
    assert (Verdict.FAILED, "cuda: failed, simulated: verified") == (current.verdict, current.disagreement)


def test_a_verdict_outranks_none(verified: Repository) -> None:
    """A GPU that could not decide leaves the verdict to the simulation, and that they differ is said."""
    record(verified, Verdict.REPRODUCED)
    record(verified, Verdict.INCONCLUSIVE, meter="cuda")
    current = verified.measured("B1-PT-01")
    expected = (Verdict.REPRODUCED, "cuda: inconclusive, simulated: reproduced")
    assert expected == (current.verdict, current.disagreement)


@pytest.mark.parametrize("other", ["0.1.0", "99.0.0"])
def test_of_two_torches_the_tools_own_counts(verified: Repository, other: str) -> None:
    """On real GPUs too, whatever their files are called; what differs is said with device and torch."""
    record(verified, Verdict.VERIFIED, meter="cuda", device="NVIDIA H200")
    record(verified, Verdict.FAILED, meter="cuda", device="NVIDIA H200", torch=other)
    current = verified.measured("B1-PT-01")
    verdicts = {other: "failed", TORCH: "verified"}
    expected = ", ".join(f"cuda (NVIDIA H200, torch {each}): {verdicts[each]}" for each in sorted(verdicts))
    assert (Verdict.VERIFIED, expected) == (current.verdict, current.disagreement)


def test_a_gpu_with_another_torch_outranks_the_simulation(verified: Repository) -> None:
    """Where it is the only one: whoever has the GPU may have another torch."""
    record(verified, Verdict.VERIFIED)
    record(verified, Verdict.FAILED, meter="cuda", torch="0.1.0")
    current = verified.measured("B1-PT-01")
    assert (Verdict.FAILED, "cuda: failed, simulated: verified") == (current.verdict, current.disagreement)


def test_the_simulation_with_another_torch_is_heard(verified: Repository) -> None:
    """It is stale here and does not count, but that it says something else is said; older code is not."""
    record(verified, Verdict.VERIFIED)
    record(verified, Verdict.FAILED, torch="0.1.0")
    current = verified.measured("B1-PT-01")
    device = "simulated (h200-cuda13, torch"
    expected = f"{device} 0.1.0): failed, {device} {TORCH}): verified"
    assert (Verdict.VERIFIED, expected) == (current.verdict, current.disagreement)
    verified.write("fixes/b1_pt_01/fix.py", "def check(): ...\n")
    assert verified.measured("B1-PT-01").disagreement is None


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b'{"schema_version": 1}', b"[]", b"1"])
def test_what_is_no_evidence_is_stale(verified: Repository, content: bytes) -> None:
    """A damaged file is neither believed nor in the way: the next measurement replaces it."""
    record(verified).write_bytes(content)
    assert Verdict.STALE is verdict(verified)


def on_branch(git: Git, name: str, start: str = "main") -> None:
    """Begin a branch."""
    git("checkout", "--quiet", "-B", name, start)


def commit_all(git: Git) -> None:
    """Commit whatever there is."""
    git("add", "--all")
    git("commit", "--quiet", "-m", "Measure")


@pytest.mark.parametrize("how", [("merge", "-m", "Merge"), ("rebase",)], ids=["merge", "rebase"])
@pytest.mark.parametrize("is_first", [True, False])
def test_two_branches_that_measure_the_same_ticket_merge(
    verified: Repository, git: Git, is_first: bool, how: tuple[str, ...]
) -> None:
    """One changed the fix, the other what it calls: git merges, and no branch measured both."""
    if not is_first:
        record(verified)
    commit_all(git)
    for name, path in (("one", "helper.py"), ("other", "fixes/b1_pt_01/found.py")):
        on_branch(git, name)
        verified.write(path, f"def check(): return '{name}'\n")
        record(verified, Verdict.VERIFIED if name == "one" else Verdict.FAILED)
        commit_all(git)
    git(*how, "--quiet", "one")
    assert (Verdict.STALE, (NOT_AS_RECORDED,)) == (verdict(verified), changed(verified))
    # Both files are as one of the branches measured them.
    assert "'one'" in (verified.root / "helper.py").read_text()
    assert "'other'" in (verified.root / "fixes/b1_pt_01/found.py").read_text()
    record(verified)
    assert Verdict.VERIFIED is verdict(verified)


def test_two_branches_that_measure_the_same_agree(verified: Repository, git: Git) -> None:
    """The same inputs give the same bytes, and the verdict stays."""
    commit_all(git)
    for name in ("one", "other"):
        on_branch(git, name)
        record(verified)
        verified.write(f"{name}.txt", "")
        commit_all(git)
    git("merge", "--quiet", "-m", "Merge", "one")
    assert Verdict.VERIFIED is verdict(verified)
