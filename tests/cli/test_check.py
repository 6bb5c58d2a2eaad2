"""The gate of a pull request, on a repository with a base and a branch."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from shutil import copytree
from typing import TYPE_CHECKING, Any

import pytest
from tests.verify.conftest import FIX, FOUND, PASTED, VERIFIER
from tests.verify.conftest import add_with_few_points as add

from finding_tickets.errors import ExitCode
from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.model.vocabulary import Verdict
from finding_tickets.verify.evidence import dump, load

if TYPE_CHECKING:
    from tests.cli.conftest import Ran
    from tests.conftest import Git, Repository

Tickets = Callable[..., "Ran"]

CLAIMS = "claims: {found: {syncs: tensors}, fix: {syncs: 1, same_result_as: {is: found, tolerance: 0.001}}}"
LOOSE = CLAIMS.replace("{syncs: 1,", "{syncs: <= 100,")
# The fix reads one tensor after the other, as the code that was found does, in other words.
UNDONE = FOUND.replace(".item()", ".tolist()")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the first test leaves a copy of ``base``, which takes long to make."""
    return tmp_path_factory.mktemp("template") / "repository"


@pytest.fixture
def base(repository: Repository, git: Git, tickets: Tickets, template: Path) -> Repository:
    """Two verified tickets, committed on main with their evidence, and a branch that has done nothing."""
    if template.exists():
        copytree(template, repository.root, dirs_exist_ok=True)
        return repository
    add(repository, "A-1", CLAIMS)
    add(repository, "B-1", CLAIMS)
    assert ExitCode.OK == tickets("verify", "--all").code
    repository.write(".gitignore", "__pycache__/\n")
    commit(git, "base")
    git("switch", "--quiet", "--create", "branch")
    copytree(repository.root, template)
    return repository


def commit(git: Git, message: str) -> None:
    """Commit everything."""
    git("add", "--all")
    git("commit", "--quiet", "-m", message)


def checked(tickets: Tickets, *options: str) -> tuple[int, Mapping[str, Any]]:
    """How the gate ends, and what it says of each ticket that it looked at."""
    ran = tickets("check", "--base", "main", "--format", "json", *options)
    return ran.code, {item["ticket"]: item for item in ran.data}


def rules(item: Mapping[str, Any], level: str = "error") -> list[str]:
    """The rules that one ticket breaks."""
    return [problem["rule"] for problem in item["problems"] if problem["level"] == level]


def edit(repository: Repository, path: str, old: str, new: str) -> None:
    """Replace a text that a file has."""
    text = (repository.root / path).read_text(encoding="utf-8")
    assert old in text
    repository.write(path, text.replace(old, new))


def test_a_branch_that_changes_no_input_measures_nothing(
    base: Repository, git: Git, tickets: Tickets, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that no ticket depends on opens the gate, and no process is started for it."""
    monkeypatch.setattr(Isolation, "run", lambda *_: pytest.fail("something was to be measured"))
    base.write("readme.txt", "words\n")
    commit(git, "words")
    assert (ExitCode.OK, {}) == checked(tickets)
    assert "0 of 2 documents looked at again, 0 failed the gate\n" in tickets("check", "--base", "main").err


def test_a_change_that_keeps_what_is_claimed_passes(base: Repository, git: Git, tickets: Tickets) -> None:
    """Only the ticket whose input changed is measured; its new evidence is what was measured."""
    base.write("fixes/a_1/fix.py", FIX + "\n")
    tickets("verify", "A-1")
    commit(git, "refactor")
    code, items = checked(tickets)
    assert (ExitCode.OK, ["A-1"]) == (code, list(items))
    assert ("verified", "verified") == (items["A-1"]["base"], items["A-1"]["measured"])
    assert "fixes/a_1/fix.py" in items["A-1"]["why"]


def test_a_fix_that_is_undone_is_worse_than_the_base(base: Repository, git: Git, tickets: Tickets) -> None:
    """What was verified is failed; evidence that says so, and is what was measured, changes nothing."""
    base.write("fixes/a_1/fix.py", UNDONE)
    tickets("verify", "A-1")
    commit(git, "undo")
    code, items = checked(tickets)
    assert ExitCode.GATE_FAILED == code
    assert ["gate-worse", "gate-claim"] == rules(items["A-1"])
    # Whoever runs the gate may say that it is meant; a branch cannot.
    code, items = checked(tickets, "--accept", "a-1")
    assert (ExitCode.OK, ["gate-worse", "gate-claim"]) == (code, rules(items["A-1"], "warning"))


@pytest.mark.slow
def test_what_holds_with_the_workloads_seed_alone_is_refused(
    base: Repository, git: Git, tickets: Tickets
) -> None:
    """A table of the answers has none for a drawn seed, which is told and by which the run is repeated."""
    edit(base, "tickets/A-1.md", "{syncs: 1,", "{syncs: <= 1,")
    edit(base, "tickets/B-1.md", "{syncs: 1,", "{syncs: <= 1,")
    tickets("verify", "--all")
    git("add", "--all")
    git("commit", "--quiet", "-m", "bounds")
    git("branch", "--force", "main", "HEAD")
    base.write("fixes/a_1/fix.py", PASTED)
    base.write("fixes/b_1/fix.py", FIX + "\n")
    tickets("verify", "--all")
    commit(git, "pasted")
    ran = tickets("check", "--base", "main", "--format", "json")
    seed, items = ran.envelope["seed"], {item["ticket"]: item for item in ran.data}
    assert f"with seed {seed} drawn for this run" in ran.err
    assert (ExitCode.GATE_FAILED, ["gate-seed"], []) == (ran.code, rules(items["A-1"]), rules(items["B-1"]))
    again = tickets("check", "--base", "main", "--format", "json", "--seed", str(seed))
    assert ran.data == again.data


@pytest.mark.slow
def test_code_that_is_kept_for_comparison_stays(base: Repository, git: Git, tickets: Tickets) -> None:
    """A fix that gives wrong results agrees with code as found that was made to give them too."""
    edit(base, "fixes/a_1/found.py", "return ", "return 0.0 * ")
    edit(base, "fixes/a_1/fix.py", "return ", "return 0.0 * ")
    tickets("verify", "A-1")
    commit(git, "both wrong")
    code, items = checked(tickets)
    assert (ExitCode.GATE_FAILED, ["gate-changed"]) == (code, rules(items["A-1"]))
    assert "changed variants.found: fixes/a_1/found.py" in items["A-1"]["problems"][0]["message"]


def test_evidence_that_was_not_measured_again_is_stale(base: Repository, git: Git, tickets: Tickets) -> None:
    """The code changed and the evidence did not; what is stale is named."""
    base.write("fixes/a_1/fix.py", FIX + "\n")
    commit(git, "change")
    code, items = checked(tickets)
    assert (ExitCode.GATE_FAILED, ["gate-stale"]) == (code, rules(items["A-1"]))
    assert "changed since it was measured: fixes/a_1/fix.py" in items["A-1"]["problems"][0]["message"]


def forged(repository: Repository, ticket: str, **fields: object) -> None:
    """Evidence as the tool would write it of a measurement that never was."""
    (file,) = (repository.root / "evidence" / ticket).glob("*.json")
    evidence = load(file.read_bytes())
    lie = evidence.verification.model_copy(update=fields)
    file.write_bytes(dump(evidence.model_copy(update={"verification": lie})))


@pytest.mark.slow
def test_evidence_that_a_branch_brings_along_is_not_trusted(
    base: Repository, git: Git, tickets: Tickets
) -> None:
    """The fix is undone, and evidence with all digests right says that it is verified."""
    base.write("fixes/a_1/fix.py", UNDONE)
    tickets("verify", "A-1")
    forged(base, "A-1", verdict=Verdict.VERIFIED)
    commit(git, "lie")
    assert "A-1" in tickets("list", "verdict:verified").out
    code, items = checked(tickets)
    assert (ExitCode.GATE_FAILED, "failed") == (code, items["A-1"]["measured"])
    assert ["gate-worse", "gate-claim", "gate-evidence"] == rules(items["A-1"])
    # Nor can the lie be accepted: measuring again mends it.
    assert ["gate-evidence"] == rules(checked(tickets, "--accept", "A-1")[1]["A-1"])


def test_evidence_edited_by_hand_is_found_out(base: Repository, git: Git, tickets: Tickets) -> None:
    """Nothing but the evidence changed, and its digest does not hold."""
    (file,) = (base.root / "evidence/B-1").glob("*.json")
    edit(base, file.relative_to(base.root).as_posix(), '"verdict": "verified"', '"verdict": "refuted"')
    commit(git, "edit")
    code, items = checked(tickets)
    assert (ExitCode.GATE_FAILED, ["B-1"]) == (code, list(items))
    assert ["gate-evidence"] == rules(items["B-1"])
    assert "it was edited" in items["B-1"]["problems"][0]["message"]


def test_evidence_of_another_machine_cannot_be_checked_here(
    base: Repository, git: Git, tickets: Tickets
) -> None:
    """Evidence of a GPU, which would outrank what is measured here, is neither trusted nor called wrong."""
    forged(base, "A-1", meter="cuda", device="H200")
    (file,) = (base.root / "evidence/A-1").glob("*.json")
    file.rename(file.with_name("cuda-torch-H200.json"))
    git("checkout", "--quiet", "main", "--", "evidence")
    commit(git, "measured elsewhere")
    code, items = checked(tickets)
    assert (ExitCode.INCONCLUSIVE, ["gate-unchecked"]) == (code, rules(items["A-1"]))


def other_environment(repository: Repository, git: Git, **fields: object) -> None:
    """Evidence on A-1 of another torch, beside that of the tool's own as it is on main."""
    forged(repository, "A-1", torch="1.99.0", **fields)
    (file,) = (repository.root / "evidence/A-1").glob("*.json")
    file.rename(file.with_name("simulated-torch1.99.0-h200-cuda13.json"))
    git("checkout", "--quiet", "main", "--", "evidence")
    commit(git, "measured with another torch")


@pytest.mark.slow
def test_other_environments_cannot_be_checked_here(base: Repository, git: Git, tickets: Tickets) -> None:
    """What another torch says is not the recorded verdict, whichever file is first; it can be accepted."""
    other_environment(base, git, verdict=Verdict.FAILED)
    code, items = checked(tickets)
    assert (ExitCode.INCONCLUSIVE, ["gate-unchecked"]) == (code, rules(items["A-1"]))
    assert ("verified", "verified") == (items["A-1"]["recorded"], items["A-1"]["measured"])
    assert ExitCode.OK == checked(tickets, "--accept", "A-1")[0]


@pytest.mark.slow
def test_other_environments_may_stay_behind(base: Repository, git: Git, tickets: Tickets) -> None:
    """A branch that measures in its own environment again passes, whatever others say of older code."""
    other_environment(base, git)
    git("branch", "--force", "main")
    base.write("fixes/a_1/fix.py", FIX + "\n")
    assert ExitCode.OK == tickets("verify", "--stale").code
    commit(git, "change")
    code, items = checked(tickets)
    assert (ExitCode.OK, "verified") == (code, items["A-1"]["measured"])


@pytest.mark.usefixtures("base")
def test_evidence_that_is_removed_is_worse(git: Git, tickets: Tickets) -> None:
    """A ticket that was verified at the base is no longer, though it would be."""
    git("rm", "-r", "--quiet", "evidence/A-1")
    commit(git, "remove")
    code, items = checked(tickets)
    assert (ExitCode.GATE_FAILED, ["gate-worse"]) == (code, rules(items["A-1"]))


def test_claims_are_those_of_the_base(base: Repository, git: Git, tickets: Tickets) -> None:
    """A fix that is undone with its claim loosened fails by the base's claim, and the loosening is named."""
    add(base, "A-1", LOOSE, fix=UNDONE)
    assert ExitCode.OK == tickets("verify", "A-1").code
    commit(git, "loosen")
    code, items = checked(tickets)
    (change,) = items["A-1"]["changes"]
    assert ("fix.syncs", "loosened", "1", "<= 100", None) == tuple(change.values())
    assert (ExitCode.GATE_FAILED, "failed") == (code, items["A-1"]["measured"])
    assert ["gate-worse", "gate-claim", "gate-changed"] == rules(items["A-1"])


@pytest.mark.slow
def test_a_loosened_claim_is_named_though_the_base_s_holds(
    base: Repository, git: Git, tickets: Tickets
) -> None:
    """Nothing is worse yet; the next branch would be measured by the weaker claim."""
    add(base, "A-1", LOOSE)
    tickets("verify", "A-1")
    commit(git, "loosen")
    code, items = checked(tickets)
    assert (ExitCode.GATE_FAILED, "verified") == (code, items["A-1"]["measured"])
    assert ["gate-changed"] == rules(items["A-1"])
    assert ExitCode.OK == checked(tickets, "--accept", "A-1")[0]


@pytest.mark.slow
def test_a_line_that_the_branch_adds_names_a_change(base: Repository, git: Git, tickets: Tickets) -> None:
    """It accepts what it names, with its reason, and nothing else; one that the base has accepts nothing."""
    add(base, "A-1", LOOSE)
    line = "\n**Accepted change:** fix.syncs: one read for each shard\n"
    base.write("tickets/A-1.md", (base.root / "tickets/A-1.md").read_text(encoding="utf-8") + line)
    tickets("verify", "A-1")
    commit(git, "loosen")
    code, items = checked(tickets)
    (change,) = items["A-1"]["changes"]
    assert (ExitCode.OK, "the ticket: one read for each shard") == (code, change["accepted"])
    git("switch", "--quiet", "--create", "next")
    edit(base, "tickets/A-1.md", "<= 100", "<= 1000")
    tickets("verify", "A-1")
    ran = tickets("check", "--base", "branch", "--format", "json")
    assert (ExitCode.GATE_FAILED, ["gate-changed"]) == (ran.code, rules(ran.data[0]))


@pytest.mark.slow
def test_the_verifier_is_that_of_the_base(base: Repository, git: Git, tickets: Tickets) -> None:
    """A verifier whose sweep no longer meets the defect is named, and its base's measures."""
    shrunk = VERIFIER.format(ticket="A-1").replace("(5, 9), (13, 100)", "(1, 2), (1, 9)")
    base.write("verifiers/a_1.py", shrunk.replace("(2, 640)", "(1, 640)"))
    base.write("fixes/a_1/fix.py", UNDONE)
    tickets("verify", "A-1")
    commit(git, "shrink")
    code, items = checked(tickets)
    assert (ExitCode.GATE_FAILED, "failed") == (code, items["A-1"]["measured"])
    assert [("verifier", "changed", "verifiers/a_1.py")] == [
        (change["name"], change["kind"], change["before"]) for change in items["A-1"]["changes"]
    ]
    assert {"gate-worse", "gate-changed"} <= set(rules(items["A-1"]))


@pytest.mark.slow
def test_a_helper_beside_the_verifier_is_the_verifier_s(
    repository: Repository, git: Git, tickets: Tickets
) -> None:
    """The base's verifier imports the base's helper, whatever the branch has made of it."""
    sweep = "[(1, 7), (2, 640), (5, 9), (13, 100)]"
    verifier = VERIFIER.format(ticket="A-1")
    assert sweep in verifier
    importing = "from verifiers.sizes import SIZES\n" + verifier.replace(sweep, "SIZES")
    repository.write("verifiers/sizes.py", f"SIZES = {sweep}\n")
    add(repository, "A-1", CLAIMS, verifier=importing)
    assert ExitCode.OK == tickets("verify", "A-1").code
    commit(git, "base")
    git("switch", "--quiet", "--create", "branch")
    repository.write("verifiers/sizes.py", "SIZES = [(1, 7), (1, 640), (1, 64), (1, 9)]\n")
    repository.write("fixes/a_1/fix.py", UNDONE)
    tickets("verify", "A-1")
    commit(git, "shrink")
    code, items = checked(tickets)
    assert (ExitCode.GATE_FAILED, "failed") == (code, items["A-1"]["measured"])
    assert "verifiers/sizes.py" in [change["before"] for change in items["A-1"]["changes"]]


@pytest.mark.slow
def test_a_variant_that_lives_elsewhere_now_is_named(base: Repository, git: Git, tickets: Tickets) -> None:
    """A fix for the show beside the code that runs: the base's place is measured."""
    block = "variants: {found: 'fixes/a_1/found.py:check', fix: 'shown.py:check'}\n" + CLAIMS
    base.write("shown.py", FIX)
    add(base, "A-1", block, fix=UNDONE)
    tickets("verify", "A-1")
    commit(git, "decoy")
    code, items = checked(tickets)
    assert (ExitCode.GATE_FAILED, "failed") == (code, items["A-1"]["measured"])
    (change,) = items["A-1"]["changes"]
    assert ("variants.fix", "fixes/a_1/fix.py:check", "shown.py:check") == (
        change["name"],
        change["before"],
        change["after"],
    )


@pytest.mark.slow
def test_closing_as_fixed_takes_a_verified_verdict(base: Repository, git: Git, tickets: Tickets) -> None:
    """A ticket without a verifier that is closed fails; so does one whose closing was forced."""
    base.ticket("C-1", status="open")
    commit(git, "open")
    git("branch", "--force", "main")
    base.ticket("C-1", status="fixed")
    code, items = checked(tickets)
    assert (ExitCode.GATE_FAILED, ["gate-closed"]) == (code, rules(items["C-1"]))
    base.ticket("C-1", status="wont-fix")
    assert ExitCode.OK == checked(tickets)[0]
    # One that is verified may be closed, unless what is verified is that there is nothing to fix.
    edit(base, "tickets/A-1.md", "`wont-fix`", "`fixed`")
    code, items = checked(tickets)
    assert (ExitCode.OK, "verified") == (code, items["A-1"]["measured"])
    edit(base, "tickets/A-1.md", "claims:", "decision: keep\nclaims:")
    tickets("verify", "A-1")
    code, items = checked(tickets)
    assert (ExitCode.GATE_FAILED, "verified") == (code, items["A-1"]["measured"])
    assert ["gate-closed", "gate-changed"] == rules(items["A-1"])


@pytest.mark.usefixtures("base")
def test_a_ticket_that_is_gone_is_missed(git: Git, tickets: Tickets) -> None:
    """Removing what is measured is a decision, which somebody has to name; moving the file is none."""
    git("mv", "tickets/A-1.md", "tickets/moved.md")
    assert ExitCode.OK == checked(tickets)[0]
    git("rm", "--quiet", "--force", "tickets/moved.md")
    code, items = checked(tickets)
    assert (ExitCode.GATE_FAILED, ["gate-gone"]) == (code, rules(items["A-1"]))
    assert ExitCode.OK == checked(tickets, "--accept", "A-1")[0]


def test_a_configuration_that_hides_tickets_is_named(base: Repository, git: Git, tickets: Tickets) -> None:
    """A status that is read as another word, or another folder, would take tickets out of the gate."""
    base.write("tickets.toml", '[statuses]\nopen = ["fixed"]\n')
    commit(git, "hide")
    ran = tickets("check", "--base", "main")
    assert ExitCode.GATE_FAILED == ran.code
    said = "error [gate-configuration] the configuration is another one than the base's: statuses ("
    assert ran.out.startswith(f"tickets.toml: {said}")
    assert ExitCode.OK == tickets("check", "--base", "main", "--accept", "configuration").code


def test_a_configuration_that_counts_elsewhere_is_named(base: Repository, git: Git, tickets: Tickets) -> None:
    """Another meter would be compared with other evidence of the base's, or with none."""
    base.write("tickets.toml", 'meter = "auto"\n')
    commit(git, "meter")
    ran = tickets("check", "--base", "main")
    assert ExitCode.GATE_FAILED == ran.code
    assert "[gate-configuration] the configuration is another one than the base's: meter (" in ran.out


def test_a_file_that_python_runs_by_itself_is_named(base: Repository, git: Git, tickets: Tickets) -> None:
    """It could replace whatever measures, and no ticket depends on it; in JSON it stands beside the data."""
    base.write("src/sitecustomize.py", "import simcuda\n")
    commit(git, "first")
    ran = tickets("check", "--base", "main", "--format", "json")
    assert (ExitCode.GATE_FAILED, []) == (ran.code, ran.data)
    (problem,) = json.loads(ran.out)["problems"]
    assert ("src/sitecustomize.py", 1, "error", "gate-configuration") == tuple(problem.values())[:4]
    assert problem["message"].startswith("src/sitecustomize.py is another one than the base's, and Python")
    assert ExitCode.OK == tickets("check", "--base", "main", "--accept", "configuration").code


@pytest.mark.slow
def test_a_new_file_that_is_imported_instead_is_an_input(
    repository: Repository, git: Git, tickets: Tickets
) -> None:
    """A package beside a module of its name is what Python imports."""
    repository.write("helper.py", "READS = 0\n")
    helped = "from helper import READS\n" + FIX.replace(
        "    return", "    for _ in range(READS):\n        tensors[0][0].item()\n    return"
    )
    add(repository, "A-1", CLAIMS, fix=helped)
    assert ExitCode.OK == tickets("verify", "A-1").code
    commit(git, "base")
    git("switch", "--quiet", "--create", "branch")
    repository.write("helper/__init__.py", "READS = 3\n")
    code, items = checked(tickets)
    assert (ExitCode.GATE_FAILED, "failed") == (code, items["A-1"]["measured"])
    assert ["helper/__init__.py"] == items["A-1"]["why"]


def test_new_tickets_are_measured(base: Repository, tickets: Tickets) -> None:
    """A new ticket whose claims are false fails; a broken one is bad data; an open one needs no evidence."""
    base.ticket("C-1", status="open")
    assert ExitCode.OK == checked(tickets)[0]
    add(base, "D-1", CLAIMS.replace("syncs: tensors", "syncs: 2*tensors"))
    code, items = checked(tickets)
    assert (ExitCode.GATE_FAILED, ["gate-claim"]) == (code, rules(items["D-1"]))
    add(base, "D-1", "claims: {found: {syncs: 'tensors +'}}")
    code, items = checked(tickets)
    assert (ExitCode.BAD_DATA, ["gate-unmeasured"]) == (code, rules(items["D-1"]))


def test_it_writes_nothing_but_the_summary(
    base: Repository, git: Git, tickets: Tickets, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Work tree and index stay as they are; the summary is added to what its file has already."""
    base.write("fixes/a_1/fix.py", UNDONE)
    # What the gate says of a branch is not worded by the branch.
    base.write("templates/gate.md.j2", "## Tickets: the gate is open")
    before = git("status", "--porcelain"), _bytes(base.root)
    page: Path = tmp_path_factory.mktemp("out") / "summary.md"
    page.write_text("# Before\n", encoding="utf-8")
    ran = tickets("check", "--base", "main", "--format", "github", "--summary", str(page))
    assert before == (git("status", "--porcelain"), _bytes(base.root))
    first, *_ = ran.out.splitlines()
    # The block of the fixture begins on line 29 of the ticket.
    assert first.startswith(
        "::error file=tickets/A-1.md,line=30,col=1,title=gate-worse::A-1: failed, and verified"
    )
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Before\n## Tickets: the gate failed\n")
    assert "| `A-1` | verified | failed | fixes/a_1/fix.py |" in text
    assert "- **failed** \\[gate-worse] A-1: failed, and verified at the base" in text


def test_text_for_people(base: Repository, tickets: Tickets) -> None:
    """What it was and is, what changed, and what to do about it."""
    base.write("fixes/a_1/fix.py", UNDONE)
    ran = tickets("check", "--base", "main")
    lines = ran.out.splitlines()
    assert ["A-1  verified -> failed", "  changed: fixes/a_1/fix.py"] == lines[:2]
    assert "  error [gate-worse] A-1: failed, and verified at the base" in ran.out
    assert "(tickets verify A-1, and commit the evidence)" in ran.out


@pytest.mark.usefixtures("base")
@pytest.mark.parametrize(
    ("revision", "reason"),
    [
        ("nowhere", "--base nowhere: there is no revision nowhere"),
        ("alone", "--base alone: no commit in common with HEAD"),
    ],
)
def test_a_base_that_is_none_is_wrong_usage(git: Git, tickets: Tickets, revision: str, reason: str) -> None:
    """The message says which revision, and why."""
    git("checkout", "--quiet", "--orphan", "alone")
    git("commit", "--quiet", "-m", "alone")
    git("checkout", "--quiet", "--force", "branch")
    ran = tickets("check", "--base", revision)
    assert ExitCode.USAGE == ran.code
    assert reason in ran.err


@pytest.mark.usefixtures("base")
def test_a_misspelt_id_accepts_nothing(tickets: Tickets) -> None:
    """It is refused, rather than ignored."""
    ran = tickets("check", "--base", "main", "--accept", "A-11")
    assert (ExitCode.USAGE, True) == (ran.code, "--accept A-11: no such ticket" in ran.err)


def _bytes(root: Path) -> dict[str, bytes]:
    files = (path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path): path.read_bytes() for path in files}


@pytest.mark.usefixtures("base")
def test_a_work_tree_that_git_does_not_take_for_one_is_wrong_usage(git: Git, tickets: Tickets) -> None:
    """A clone that says of itself that it is bare has nothing to compare."""
    git("config", "core.bare", "true")
    ran = tickets("check", "--base", "main")
    assert ExitCode.USAGE == ran.code
    assert "git cannot compare the work tree with the base: " in ran.err


def test_a_base_without_a_register_has_no_tickets(repository: Repository, git: Git, tickets: Tickets) -> None:
    """All tickets of the branch are new there."""
    git("commit", "--allow-empty", "--quiet", "-m", "base")
    git("branch", "--force", "start")
    add(repository, "A-1", CLAIMS)
    ran = tickets("check", "--base", "start", "--format", "json")
    assert (ExitCode.OK, None, "verified") == (ran.code, ran.data[0]["base"], ran.data[0]["measured"])
    assert json.loads(ran.out)["kind"] == "check"


@pytest.mark.slow
def test_claims_beside_the_ticket_are_held_to_the_base_too(
    repository: Repository, git: Git, tickets: Tickets
) -> None:
    """A remediation in a file of its own is an input, and a comment in it names what is meant."""
    add(repository, "A-1", CLAIMS)
    repository.ticket("A-1")
    repository.write("tickets/A-1.remediation.yaml", CLAIMS + "\n")
    assert ExitCode.OK == tickets("verify", "A-1").code
    commit(git, "base")
    git("switch", "--quiet", "--create", "branch")
    repository.write("tickets/A-1.remediation.yaml", LOOSE + "\n")
    tickets("verify", "A-1")
    code, items = checked(tickets)
    assert (ExitCode.GATE_FAILED, ["gate-changed"]) == (code, rules(items["A-1"]))
    comment = "# **Accepted change:** fix.syncs: one read for each shard\n"
    repository.write("tickets/A-1.remediation.yaml", comment + LOOSE + "\n")
    tickets("verify", "A-1")
    assert ExitCode.OK == checked(tickets)[0]


def test_a_shallow_clone_says_what_to_fetch(
    base: Repository, git: Git, tickets: Tickets, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Where the branch began is not known there."""
    base.write("more.txt", "")
    commit(git, "more")
    git("branch", "--force", "main", "HEAD~1")
    git("commit", "--quiet", "--allow-empty", "-m", "last")
    clone = tmp_path_factory.mktemp("clone")
    address = f"file://{base.root}"
    git("clone", "--quiet", "--depth", "1", "--no-single-branch", address, str(clone))
    ran = tickets("check", "--base", "origin/main", "--root", str(clone))
    assert ExitCode.USAGE == ran.code
    assert "no commit in common with HEAD" in ran.err
    assert "fetch-depth: 0" in ran.err


def test_a_verifier_that_is_removed_is_missed(base: Repository, git: Git, tickets: Tickets) -> None:
    """The base's still measures; the ticket as the branch has it is unverified."""
    git("rm", "--quiet", "verifiers/a_1.py")
    base.write("fixes/b_1/fix.py", FIX)
    code, items = checked(tickets)
    assert (ExitCode.GATE_FAILED, "unverified") == (code, items["A-1"]["measured"])
    assert ["gate-worse", "gate-stale", "gate-changed"] == rules(items["A-1"])
    assert ("verifier", "removed", "verifiers/a_1.py") == tuple(items["A-1"]["changes"][0].values())[:3]


def test_what_is_new_and_cannot_be_measured_is_inconclusive(base: Repository, tickets: Tickets) -> None:
    """Nothing is worse than before, and nothing is known either."""
    add(base, "C-1", CLAIMS, verifier="raise RuntimeError('no')\n")
    code, items = checked(tickets)
    assert (ExitCode.INCONCLUSIVE, ["gate-inconclusive"]) == (code, rules(items["C-1"]))
    assert "verifiers/c_1.py:1: RuntimeError: no" in items["C-1"]["problems"][0]["message"]


def test_a_file_that_cannot_be_read_is_bad_data_once(base: Repository, git: Git, tickets: Tickets) -> None:
    """The branch that brings it fails; one that finds it there does not."""
    base.write("tickets/broken.md", b"# Finding Ticket: \xff\n")
    ran = tickets("check", "--base", "main")
    assert ExitCode.BAD_DATA == ran.code
    assert ran.out.startswith("tickets/broken.md: error [gate-unread] [invalid-utf8] byte 0xff is not UTF-8")
    commit(git, "broken")
    assert ExitCode.OK == tickets("check", "--base", "branch").code


def merged_twice(git: Git, when: str) -> None:
    """Main and the branch, each with one commit and merged into the other as it was then: two merge bases."""
    git("switch", "--quiet", "main")
    git("commit", "--quiet", "--allow-empty", "-m", "on main", when=when)
    git("tag", "main-was")
    git("switch", "--quiet", "branch")
    git("tag", "branch-was")
    git("merge", "--quiet", "--no-edit", "main-was")
    git("switch", "--quiet", "main")
    git("merge", "--quiet", "--no-edit", "branch-was")
    git("switch", "--quiet", "branch")


@pytest.mark.slow
@pytest.mark.parametrize("when", ["2001-01-02", "2037-01-02"])
def test_a_ticket_of_any_merge_base_counts_whatever_its_date(
    base: Repository, git: Git, tickets: Tickets, when: str
) -> None:
    """A ticket that only one of two merge bases has cannot disappear, nor become worse."""
    (base.root / "tickets/B-1.md").unlink()
    git("rm", "--quiet", "-r", "--cached", "tickets/B-1.md")
    git("rm", "--quiet", "-r", "evidence/B-1")
    git("commit", "--quiet", "-m", "no B-1 yet")
    merged_twice(git, when)
    # The merge has taken B-1 away from main, which left it where the branch began.
    git("rm", "--quiet", "-r", "--ignore-unmatch", "tickets/B-1.md")
    base.write("fixes/a_1/fix.py", UNDONE)
    tickets("verify", "A-1")
    commit(git, "undo")
    assert 2 == len(git("merge-base", "--all", "main", "HEAD").split())
    ran = tickets("check", "--base", "main", "--format", "json")
    items = {item["ticket"]: item for item in ran.data}
    assert (ExitCode.GATE_FAILED, {"A-1", "B-1"}) == (ran.code, set(items))
    assert ["gate-gone"] == rules(items["B-1"])
    # A-1 is the same at both bases, and is measured once.
    assert (["gate-worse", "gate-claim"], 1) == (rules(items["A-1"]), ran.err.count("A-1: failed"))


@pytest.mark.slow
def test_the_strictest_of_several_merge_bases_decides(base: Repository, git: Git, tickets: Tickets) -> None:
    """A claim that one base has and the other has not is lost by neither."""
    edit(base, "tickets/A-1.md", "{syncs: 1,", "{syncs: <= 100,")
    base.write("fixes/a_1/fix.py", UNDONE)
    tickets("verify", "A-1")
    commit(git, "loose")
    merged_twice(git, "2001-01-02")
    code, items = checked(tickets)
    assert ExitCode.GATE_FAILED == code
    assert {"gate-changed", "gate-worse", "gate-claim"} == set(rules(items["A-1"]))
    assert ("verified", "failed") == (items["A-1"]["base"], items["A-1"]["measured"])


def test_a_commit_that_the_clone_replaces_is_the_base_all_the_same(
    base: Repository, git: Git, tickets: Tickets
) -> None:
    """A branch cannot take a ticket from the base by another commit in the place of the base's."""
    (base.root / "tickets/B-1.md").unlink()
    commit(git, "no B-1")
    git("replace", "main", git("commit-tree", "-m", "other", "HEAD^{tree}").strip())
    code, items = checked(tickets)
    assert (ExitCode.GATE_FAILED, ["gate-gone"]) == (code, rules(items["B-1"]))


@pytest.mark.usefixtures("base")
def test_a_register_in_another_folder_hides_none(
    repository: Repository, git: Git, tickets: Tickets, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A configuration below the folder that the gate starts in, or nearer to it, is named."""
    repository.write("tools/tickets.toml", "")
    commit(git, "a register of its own")
    monkeypatch.chdir(repository.root / "tools")
    ran = tickets("check", "--root", ".", "--base", "main", "--format", "json")
    assert ExitCode.GATE_FAILED == ran.code
    (problem,) = ran.envelope["problems"]
    assert problem["message"] == "the register was found in . at the base, and is not now"


@pytest.mark.parametrize(
    "file",
    [
        "src/sitecustomize.abi3.so",
        "usercustomize.pyc",
        "lib/sitecustomize/__init__.py",
        ".venv/lib/python3.12/site-packages/more.pth",
    ],
)
def test_startup_files_of_any_kind_and_place_are_named(
    base: Repository, git: Git, tickets: Tickets, file: str
) -> None:
    """Whatever Python can import, or run as a line of site-packages, before it runs the gate."""
    base.write(file, "import simcuda\n")
    git("add", "--force", file)
    git("commit", "--quiet", "-m", "startup")
    ran = tickets("check", "--base", "main", "--format", "json")
    assert (ExitCode.GATE_FAILED, [file]) == (ran.code, [each["file"] for each in ran.envelope["problems"]])
