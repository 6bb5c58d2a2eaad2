"""``tickets new``: the next free ID, a ticket that passes lint, and a verifier whose claims hold."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable

import pytest
from tests.cli.conftest import Tickets
from tests.conftest import Git, Repository

from finding_tickets.cli.main import run

DRAFT = {
    "title": "Norms | copied one by one",
    "severity": "P1",
    "batch": 7,
    "agent": "pytorch",
    "domains": ["train/loop"],
    "summary": "Each norm\nis copied.",
    "locations": [{"file": "code.py", "lines": [[3, 4], [9, 9]], "symbol": "slow()"}],
    "categories": ["performance bottleneck"],
    "checklist": ["Count the | copies"],
    "related": [{"id": "B7-PT-01", "relationship": "blocks", "note": "a | b"}],
    "code_repository": "elsewhere",
}


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, bool], None]:
    """Put text on standard input, which may be a terminal."""

    def put(text: str, terminal: bool) -> None:
        stream = io.TextIOWrapper(io.BytesIO(text.encode()))
        stream.isatty = lambda: terminal  # type: ignore[method-assign] # a terminal without one
        monkeypatch.setattr(sys, "stdin", stream)

    return put


def test_drafts_before_one_that_fails_are_named(tickets: Tickets, repository: Repository) -> None:
    """Of two drafts the second has a category that the register does not have: the first is there."""
    wrong = {"title": "x", "severity": "P2", "categories": ["odd"]}
    file = repository.write("drafts.json", json.dumps([DRAFT, wrong]))
    ran = tickets("new", "--from", str(file))
    assert (4, "tickets/B7-PT-01.md\n") == (ran.code, ran.out)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"title": }', "standard input:1: not JSON"),
        pytest.param("[" * 100_000, "standard input: not JSON", id="nested too deeply"),
        ("{}", "title: is missing; severity: is missing"),
        ('[{"title": "x", "severity": "P2"}, {"title": "x"}]', "[1].severity: is missing"),
        ('{"title": " ", "severity": "P2"}', "title: must not be empty"),
        ('{"title": "x", "severity": "urgent"}', "severity: must be 'P0', 'P1', 'P2', 'P3' or 'P4'"),
        ('{"title": "x", "severity": "P2", "tilte": "y"}', "tilte: there is no such key"),
        ('{"title": "x", "severity": "P2", "locations": [{"lines": []}]}', "locations[0].file: is missing"),
        ('{"title": "x", "severity": "P2", "batch": -1, "agent": "a"}', "batch: "),
        ("[4]", "[0]: must be an object"),
        ('{"title": "x", "severity": "P2", "categories": ["odd"]}', "unknown category odd"),
        ('{"title": "x", "severity": "P2", "batch": 7}', "give both --batch and --agent"),
        ('{"title": "x", "severity": "P2", "agent": "a", "batch": 1, "domains": [4]}', "domains[0]: "),
    ],
)
def test_bad_json_is_refused_by_key(
    tickets: Tickets, repository: Repository, stdin: Callable[[str, bool], None], text: str, message: str
) -> None:
    """Each mistake is named with its place, and nothing is written."""
    stdin(text, False)
    ran = tickets("new", "--from", "-")
    assert ran.code in {2, 4}
    assert message in ran.err
    assert [] == list((repository.root / "tickets").iterdir())


def test_an_id_taken_by_another_process_is_passed_over(tickets: Tickets, repository: Repository) -> None:
    """A file that appears after the register was read is not overwritten, nor is a verifier."""
    repository.write("tickets/T-01.md", "not a ticket yet")
    repository.write("verifiers/t_02.py", "mine")
    ran = tickets("new", "--title", "x", "--severity", "P2", "--with-verifier")
    assert [
        "tickets/T-03.md",
        "verifiers/t_03.py",
        "fixes/t_03/found.py",
        "fixes/t_03/fix.py",
    ] == ran.out.split()
    assert "not a ticket yet" == (repository.root / "tickets/T-01.md").read_text()
    assert "mine" == (repository.root / "verifiers/t_02.py").read_text()
    assert not (repository.root / "tickets/T-02.md").exists()


def test_a_number_taken_on_another_branch_is_passed_over(
    tickets: Tickets, repository: Repository, git: Git
) -> None:
    """T-01 is here, T-02 on a branch that is not checked out: the next is T-03, and so on from there."""
    repository.ticket("T-01")
    git("add", "--all")
    git("commit", "--quiet", "-m", "File T-01")
    git("checkout", "--quiet", "-b", "other")
    repository.ticket("T-02", path="tickets/deep/T-02-it-waits.md")
    git("add", "--all")
    git("commit", "--quiet", "-m", "File T-02")
    git("checkout", "--quiet", "main")
    drafts = repository.write("drafts.json", json.dumps([{"title": "x", "severity": "P2"}] * 2))
    assert ["tickets/T-03.md", "tickets/T-04.md"] == tickets("new", "--from", str(drafts)).out.split()


def test_a_template_of_the_repository_comes_first(tickets: Tickets, repository: Repository) -> None:
    """A register may have tickets of a form of its own."""
    repository.write(
        "templates/ticket.md.j2", "# Finding Ticket: {{ draft.title }}\n\n**Ticket ID:** {{ id }}\n"
    )
    ran = tickets("new", "--title", "Own form", "--severity", "P2")
    assert 0 == ran.code
    assert (
        "# Finding Ticket: Own form\n\n**Ticket ID:** T-01\n"
        == (repository.root / "tickets/T-01.md").read_text()
    )


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("# Finding Ticket: {{ draft.titel }}\n", "titel"),
        ("# Finding Ticket: {{ draft.title\n", "templates/ticket.md.j2:1: "),
        ("# Finding Ticket: Other\n\n**Ticket ID:** {{ id }}\n", "the title would be read as 'Other'"),
        ("# Finding Ticket: x\n\n**Ticket ID:** T-99\n", "it would not be read as T-01"),
        ("# Finding Ticket: x\n\n**Ticket ID:** T-01\n**Severity:** odd\n", "Severity is 'odd'"),
    ],
)
def test_a_template_that_does_not_do_is_refused(
    tickets: Tickets, repository: Repository, template: str, message: str
) -> None:
    """A ticket that would not say what was asked for is not written."""
    repository.write("templates/ticket.md.j2", template)
    ran = tickets("new", "--title", "x", "--severity", "P2")
    assert 4 == ran.code
    assert message in ran.err
    assert [] == list((repository.root / "tickets").iterdir())


def test_a_repository_without_a_register_gets_one(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The first ticket makes the folder tickets/ in the current one."""
    empty = tmp_path_factory.mktemp("empty")
    monkeypatch.chdir(empty)
    assert 0 == run(["new", "--title", "x", "--severity", "P2"])
    assert "tickets/T-01.md\n" == capsys.readouterr().out
    assert (empty / "tickets/T-01.md").is_file()


def change(repository: Repository, file: str, old: str, new: str) -> None:
    """Edit a file as a user would, who finds what is to be replaced."""
    path = repository.root / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def verdicts(tickets: Tickets) -> dict[str, tuple[str, str]]:
    """The verdict and its reason for every ticket, measured now."""
    ran = tickets("verify", "--all", "--meter", "simulated", "--format", "json")
    return {item["ticket"]: (item["verdict"], item["reason"]) for item in ran.data}


STEP = "def step(values):\n    return {}\n"


@pytest.mark.slow
def test_a_scaffold_is_inconclusive_until_it_is_written(tickets: Tickets, repository: Repository) -> None:
    """First the verifier says what is to be written, then each variant; what is written is measured."""
    repository.write("a.py", "")
    new = ("new", "--title", "It waits", "--severity", "P2", "--file", "a.py", "--with-verifier")
    made = tickets(*new).out.split()
    assert ["tickets/T-01.md", "verifiers/t_01.py", "fixes/t_01/found.py", "fixes/t_01/fix.py"] == made
    assert (0, "") == ((ran := tickets("lint")).code, ran.out)
    lacks = "build what a real call gets, and remove this line"
    steps = ("", "[value.item() for value in values]", "values.tolist()")
    for file, code in zip(made[1:], steps, strict=True):
        verdict, reason = verdicts(tickets)["T-01"]
        assert ("inconclusive", True) == (verdict, f"{file}:" in reason), reason
        assert f"NotImplementedError: {lacks}" in reason
        lacks = "write this variant, and remove this line"
        written = STEP.format(code)
        if not code:
            written = re.sub(r"    raise .*\n", "", (repository.root / file).read_text())
        repository.write(file, written)
    assert ("inconclusive", "there is no claim about found or fix") == verdicts(tickets)["T-01"]
    assert 1 == tickets("close", "T-01", "--as", "fixed").code
    claims = "claims: {found: {syncs: size}, fix: {syncs: 1, same_result_as: found}}"
    ticket = repository.root / "tickets/T-01.md"
    ticket.write_text(re.sub("# What tickets verify.*", claims, ticket.read_text()))
    # One wait for each value as found, one for all of them in the fix.
    assert "verified" == verdicts(tickets)["T-01"][0]


def test_a_verifier_starts_from_the_function_that_is_named(tickets: Tickets, repository: Repository) -> None:
    """It builds what the function needs, which people complete; found is the function at its commit."""
    code = "class Log:\n    def norm(self, model, steps: int, eps=1e-5): ...\n"
    repository.write("src/pkg/log.py", code)
    new = [
        "new",
        "--title",
        "x",
        "--severity",
        "P2",
        "--with-verifier",
        "--file",
        "src/pkg/log.py",
        "--symbol",
    ]
    ran = tickets(*new, "Log.norms()")
    assert (2, True) == (ran.code, "did you mean 'norm'? known: " in ran.err)
    assert "tickets/T-01.md\nverifiers/t_01.py\n" == tickets(*new, "Log.norm()").out
    text = (repository.root / "verifiers/t_01.py").read_text()
    for line in ("from pkg.log import Log", "    steps = point.size", "    return (self, model, steps)"):
        assert line in text.splitlines()
    assert "found: src/pkg/log.py:Log.norm\n" in (repository.root / "tickets/T-01.md").read_text()
    assert (0, "") == ((ran := tickets("lint")).code, ran.out)
