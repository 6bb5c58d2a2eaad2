"""``tickets verify``: what it prints, what it records and how it exits."""

from __future__ import annotations

import json

import pytest
from tests.conftest import Git, Repository
from tests.verify.conftest import CLAIMS, FIX, FOUND, MORE_POINTS, add, add_with_few_points

from finding_tickets.cli.main import run
from finding_tickets.errors import ExitCode

TOO_MANY = CLAIMS.replace("syncs: 1", "syncs: 0")
EXPECTED = CLAIMS.replace("syncs: 1", "syncs: [1, {is: 0, expect: refuted, why: 'one read is needed'}]")


def tickets(repository: Repository, *arguments: str) -> int:
    """The exit code of ``tickets verify`` in the repository."""
    return run(["verify", "--root", str(repository.root), *arguments])


def test_a_table_for_people(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """Verdict, laws before and after, claims with marks and the lines that wait; progress goes to stderr."""
    add(repository, "A-1", claims=EXPECTED, verifier=MORE_POINTS.format(ticket="A-1"))
    assert ExitCode.OK == tickets(repository, "a-1", "--verbose")
    printed = capsys.readouterr()
    lines = [" ".join(line.split()) for line in printed.out.split("\n")]
    assert lines[0].startswith("A-1 failed: fix.syncs[1]: claimed 0, measured 1")
    for line in [
        "syncs tensors 1",
        "holds found.syncs tensors tensors",
        "false fix.syncs[1] 0 1 (as expected: one read is needed)",
        "fix.syncs[1] tensors=1, size=7: 1",
        "and 3 more",
        f"fixes/a_1/found.py:5 check d2h, syncs: tensors {FOUND.splitlines()[4].strip()}",
    ]:
        assert line in lines
    assert "measuring A-1\n[1/1] A-1: failed\n" == printed.err


@pytest.mark.slow
def test_operations_are_shown_and_not_kept(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """With -v, at the last point of the sweep, where 13 tensors are added up and read; evidence has none."""
    add(repository, "A-1")
    assert ExitCode.OK == tickets(repository, "a-1")
    assert "operations of" not in capsys.readouterr().out
    (evidence,) = repository.root.glob("evidence/*/*.json")
    content = evidence.read_bytes()
    assert ExitCode.OK == tickets(repository, "a-1", "-v")
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.split("\n")]
    found, fix = (lines.index(f"operations of {name} at the last point") for name in ("found", "fix"))
    assert lines[found + 2].startswith("aten._local_scalar_dense.default drains 13, syncs 13, d2h 13 read,")
    assert lines[found + 3].startswith("aten.sum.default launches 13 read,")
    # The fix adds up its 13 sums once more.
    assert any(line.startswith("aten.sum.default launches 14 read,") for line in lines[fix:])
    assert content == evidence.read_bytes()


def test_all_leaves_out_what_has_no_verifier(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tickets without a verifier are counted; asked for by name, they are unverified and inconclusive."""
    add_with_few_points(repository, "A-1")
    repository.ticket("B-1")
    assert ExitCode.OK == tickets(repository, "--all")
    assert "1 of 2 documents with a verifier\n" in capsys.readouterr().err
    assert ExitCode.INCONCLUSIVE == tickets(repository, "B-1")
    assert "B-1  unverified: it has no verifier\n" == capsys.readouterr().out


def test_words_that_mean_no_document(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """They are wrong usage: nothing was measured, and a script that goes on would not know."""
    add(repository, "A-1")
    assert ExitCode.USAGE == tickets(repository, "severity:P0")
    assert "no document matches severity:P0 (tickets list shows them)" in capsys.readouterr().err


def test_what_is_not_measured_is_said(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """With ``--all`` too, a document whose block is broken is listed, with the line of the error."""
    add_with_few_points(repository, "A-1")
    add(repository, "B-1", claims="verifyer: x.py")
    assert ExitCode.BAD_DATA == tickets(repository, "--all")
    lines = capsys.readouterr().err.splitlines()
    # The block of the fixture begins on line 28, its YAML 3 lines later.
    assert lines[0] == "2 of 2 documents with a verifier"
    assert lines[1].startswith("B-1: not measured: tickets/B-1.md:31:1: error [remediation-key]")
    assert lines[2] == "measuring A-1"


def test_bad_data_outranks_the_rest_and_stops_nobody(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """A block that is no YAML, a claim that does not parse, an ID that nobody has: one line for each."""
    add_with_few_points(repository, "A-1")
    add(repository, "B-1", claims="claims: {found: {syncs: 'tensors +'}}")
    add(repository, "C-1", claims="claims: {found: [")
    assert ExitCode.BAD_DATA == tickets(repository, "A-1", "B-1", "C-1")
    printed = capsys.readouterr()
    assert "A-1  verified" in printed.out
    assert "Traceback" not in printed.err
    assert "claim found.syncs: unexpected end at column 10 of 'tensors +'" in printed.err
    assert "tickets/C-1.md:" in printed.err
    assert ExitCode.USAGE == tickets(repository, "A-1", "A-2")
    assert "A-1" in capsys.readouterr().err


def test_of_several_tickets_those_that_need_somebody_are_shown(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each has a line; a claim that is not as expected, and what was not measured, is said in full above."""
    add(repository, "A-1")
    add(repository, "B-1", claims=TOO_MANY)
    add(repository, "C-1", verifier="raise RuntimeError('no')\n")
    assert ExitCode.GATE_FAILED == tickets(repository, "--all")
    failed, missing, table = capsys.readouterr().out.split("\n\n")
    assert failed.startswith("B-1  failed: 1 of 2 claims about fix is false\n")
    # One sync for each of the four points instead of none.
    said = "fix.syncs: claimed 0; measured 1 at tensors=1, size=7 and at 3 more points (NOT AS EXPECTED)"
    assert said in failed
    assert "C-1  inconclusive: verifiers/c_1.py:1: RuntimeError: no" == missing.split("\n")[0]
    assert [
        "ticket verdict as expected before -> after",
        "A-1 verified 3 of 3 syncs: tensors -> 1",
        "B-1 failed 2 of 3 syncs: tensors -> 1",
        "C-1 inconclusive 0 of 3 verifiers/c_1.py:1: RuntimeError: no",
    ] == [" ".join(line.split()) for line in table.splitlines()]


@pytest.fixture
def before(repository: Repository, git: Git) -> Repository:
    """A repository whose fix was the code as found in the first commit, named ``v1``, and is one now."""
    add(repository, "A-1", fix=FOUND)
    git("add", ".")
    git("commit", "-m", "first")
    git("tag", "v1")
    repository.write("fixes/a_1/fix.py", FIX)
    git("commit", "--all", "-m", "second")
    return repository


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "laws", "code"),
    [
        ([], ["tensors", "1"], ExitCode.OK),
        (["--at", "v1"], ["tensors", "tensors"], ExitCode.GATE_FAILED),
        (["--head", "v1"], ["tensors", "tensors"], ExitCode.GATE_FAILED),
        (["--base", "v1", "--head", "main"], ["tensors", "1"], ExitCode.OK),
        (["--at", "v0"], [], ExitCode.INCONCLUSIVE),
    ],
)
def test_other_revisions_than_the_ticket_says(
    before: Repository,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    laws: list[str],
    code: ExitCode,
) -> None:
    """Found and fix are measured where the options say; only what the ticket itself says is recorded."""
    assert code == tickets(before, "A-1", "--format", "json", *options)
    printed = capsys.readouterr()
    (done,) = json.loads(printed.out)["data"]
    assert laws == [variant["laws"]["syncs"] for variant in done["variants"].values()]
    assert bool(options) == ("nothing is recorded" in printed.err)
    assert bool(options) == (not (before.root / "evidence").exists())
