"""What the gate says of the budgets of a branch.

A line with ``item()`` waits once, and ``# n`` times n; one with ``# region`` does so in ``simcuda.allowed``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from tests.conftest import Ended, Git, Repository, run_here

from finding_tickets.budget.spending import Spender, Spending, Target
from finding_tickets.budget.statements import statement_at, statements_of
from finding_tickets.errors import ExitCode
from finding_tickets.gate import budgets
from finding_tickets.ground.commits import Checkouts

CODE = """\
def step(loss):
    log(loss.item())


def other():
    pass
"""
ALLOW = """
[[budget.allow]]
file = "train.py"
function = "step"
text = "log(loss.item())"
what = ["syncs"]
law = "1"
owner = "ada"
reason = "the curve"
"""
BUDGET = """\
[[budget]]
name = "train"
run = "train.py {n}"
sweep = {n = [2, 3]}
paths = ["train.py"]
limits = {syncs = "0"}
"""
CONFIG = BUDGET + ALLOW
NEW = "    pass\n    grad.item()\n"
Gate = Callable[..., Ended]
Said = list[tuple[str, str, str, int]]


def spend(target: Target) -> Spending:
    """What the code of a target spends, by its text."""
    root = Checkouts(target.root).files(target.revision) if target.revision else target.root
    points = target.budget.points or ({"run": 1},)
    spent: dict[Spender, dict[str, tuple[int, ...]]] = {}
    regions: dict[Spender, dict[str, tuple[int, ...]]] = {}
    for file in sorted(root.glob("*.py")):
        text = file.read_text()
        if "raise" in text:
            return Spending(trouble="it raised")
        for number, line in enumerate(text.splitlines(), 1):
            if "item()" in line:
                at = statement_at(statements_of(text), number)
                assert at is not None
                values = tuple(each["n"] if "# n" in line else 1 for each in points)
                spender = Spender(file.name, number, at.function, at.text, at.occurrence)
                (regions if "# region" in line else spent)[spender] = {"syncs": values}
    every = (*spent.values(), *regions.values())
    return Spending(
        points=points,
        metrics={"syncs": tuple(sum(each["syncs"][place] for each in every) for place in range(len(points)))},
        spent=tuple(spent.items()),
        regions=tuple(("fine", *each) for each in regions.items()),
        device="none",
    )


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what was measured, one after the other."""
    names: list[str] = []

    def measure(targets: Mapping[str, Target], _: object, *, keep: bool) -> Iterator[tuple[str, Spending]]:
        assert not keep
        for name, target in targets.items():
            names.append(f"{target.budget.name}{' at the base' if target.revision else ''}")
            yield name, spend(target)

    monkeypatch.setattr(budgets, "measure", measure)
    return names


@pytest.fixture
def gate(repository: Repository, git: Git, measured: list[str]) -> Gate:
    """Compares the branch with main, which has a program and a budget."""
    repository.write("train.py", CODE)
    repository.write("tickets.toml", CONFIG)
    commit(git, "main")
    git("switch", "--quiet", "--create", "work")
    assert not measured
    return lambda *words: run_here(repository.root, "check", "--base", "main", "--format", "json", *words)


def commit(git: Git, message: str, who: str = "Ada") -> None:
    """Commit everything."""
    git("add", "--all")
    git("commit", "--quiet", "-m", message, who=who)


def said(done: Ended) -> Said:
    """Level, rule and place of each problem."""
    return [(each["level"], each["rule"], each["file"], each["line"]) for each in problems(done)]


def problems(done: Ended) -> list[dict[str, Any]]:
    """What the gate has to say of the whole branch."""
    found: list[dict[str, Any]] = json.loads(done.out)["problems"]
    return found


def test_without_budgets_nothing_is_loaded(
    repository: Repository, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No side has one: neither their judging nor a process is needed."""
    repository.write("train.py", CODE)
    commit(git, "main")
    monkeypatch.delitem(sys.modules, "finding_tickets.gate.budgets", raising=False)
    assert ExitCode.OK == run_here(repository.root, "check", "--base", "main").code
    assert "finding_tickets.gate.budgets" not in sys.modules


def test_a_branch_that_spends_the_same_passes(
    repository: Repository, gate: Gate, measured: list[str]
) -> None:
    """The work tree's code is measured; the base's need not be."""
    repository.write("train.py", CODE + "\n\ndef more():\n    pass\n")
    done = gate()
    assert (ExitCode.OK, []) == (done.code, said(done))
    assert ["train"] == measured


def test_only_lines_of_the_branch_are_blamed(
    repository: Repository, git: Git, gate: Gate, measured: list[str]
) -> None:
    """A limit that the base just keeps: 1 of 1 wait was there, of somebody's, and is not at fault."""
    git("switch", "--quiet", "main")
    repository.write("tickets.toml", BUDGET.replace('"0"', '"1"'))
    commit(git, "one wait is free", who="Bob")
    git("switch", "--quiet", "-C", "work")
    repository.write("train.py", CODE.replace("    pass\n", NEW))
    done = gate()
    assert ExitCode.GATE_FAILED == done.code
    assert [("error", "gate-budget", "train.py", 7), ("note", "gate-budget", "tickets.toml", 1)] == said(done)
    first, second = (each["message"] for each in problems(done))
    # 1 + 1 waits, at most 1; the one at the base is Ada's.
    assert "syncs: 2, at most 1 allowed; 2 at n=2, 1 at the base, here 1: grad.item()" in first
    assert "at the base 1 by train.py:2 (Ada)" in second
    assert ["train", "train at the base"] == measured


def test_a_line_that_runs_more_often_is_blamed_although_it_is_not_changed(
    repository: Repository, gate: Gate
) -> None:
    """The wait of a helper, which the branch calls from elsewhere, too; its allowance has an owner."""
    repository.write("train.py", CODE.replace("log(loss.item())", "log(loss.item())  # n"))
    done = gate()
    assert [("error", "gate-budget", "train.py", 2)] == said(done)
    (problem,) = problems(done)
    # A comment is no part of the statement: it is the same one, which waits 2 times at n=2.
    assert "syncs: 2..3, at most 1 allowed of this line; 2 at n=2, 1 at the base" in problem[
        "message"
    ].replace("no law, ", "")
    assert "by ada" in problem["hint"]


def test_what_the_base_exceeded_already_is_a_warning(repository: Repository, git: Git, gate: Gate) -> None:
    """As long as the branch spends no more."""
    git("switch", "--quiet", "main")
    repository.write("train.py", CODE.replace("    pass\n", NEW))
    commit(git, "main is over its budget")
    git("switch", "--quiet", "-C", "work")
    repository.write("other.txt", "a\n")
    done = gate()
    assert (ExitCode.OK, [("warning", "gate-budget", "tickets.toml", 1)]) == (done.code, said(done))
    repository.write("train.py", CODE.replace("    pass\n", NEW + "    norm.item()\n"))
    done = gate()
    assert (ExitCode.GATE_FAILED, ("error", "gate-budget", "train.py", 8)) == (done.code, said(done)[0])


def test_an_allowance_whose_line_is_gone_is_progress(repository: Repository, gate: Gate) -> None:
    """It is a note, and the branch may remove the allowance with the line."""
    repository.write("train.py", CODE.replace("loss.item()", "loss"))
    done = gate()
    assert (ExitCode.OK, [("note", "gate-budget", "tickets.toml", 8)]) == (done.code, said(done))
    assert "tickets budget tighten" in problems(done)[0]["hint"]
    repository.write("tickets.toml", BUDGET)
    done = gate()
    assert (ExitCode.OK, []) == (done.code, said(done))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('syncs = "0"', 'syncs = "1"'),
        ('syncs = "0"', 'syncs = "n - n"'),
        ('law = "1"', 'law = "n"'),
        ('law = "1"\n', ""),
        # The same at every size of the sweep, and more beyond it.
        ('law = "1"', 'law = "max(1, n - 2)"'),
        ('what = ["syncs"]\nlaw = "1"\n', ""),
        ('what = ["syncs"]', 'what = ["syncs", "h2d"]'),
        ('text = "log(loss.item())"\nwhat = ["syncs"]\nlaw = "1"\n', ""),
        ("[2, 3]", "[3]"),
        ('paths = ["train.py"]', 'paths = ["lib/"]'),
        ('run = "train.py {n}"', 'run = "other.py {n}"'),
        ('name = "train"\n', 'name = "train"\nwithin = "train.py:step"\n'),
        ('name = "train"', 'name = "another"'),
        (CONFIG, 'meter = "auto"\n'),
        ("", ALLOW.replace("step", "other").replace("loss", "grad")),
    ],
)
def test_a_branch_that_raises_its_budget_needs_a_word(
    repository: Repository, gate: Gate, old: str, new: str
) -> None:
    """It is told apart from one that spends more, whether or not it spends; and --accept lets it pass."""
    raised = CONFIG.replace(old, new) if old else CONFIG + new
    if "n - n" in new:
        # 0 by another name is no raise.
        repository.write("tickets.toml", raised)
        assert ExitCode.OK == gate().code
        return
    repository.write("other.py", "")
    repository.write("tickets.toml", raised)
    done = gate()
    errors = {(rule, file) for level, rule, file, _ in said(done) if level == "error"}
    assert (ExitCode.GATE_FAILED, {("gate-budget-raised", "tickets.toml")}) == (done.code, errors)
    done = gate("--accept", "budget:train")
    assert not [each for each in said(done) if each[1] == "gate-budget-raised" and each[0] == "error"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('law = "1"', 'law = "min(1, n)"'),
        ('text = "log(loss.item())"', 'text = "log(loss.item())"\noccurrence = 1'),
        ('reason = "the curve"', 'reason = "the curve"\nuntil = 2999-01-01'),
        ("[2, 3]", "[2, 3, 5]"),
        ('paths = ["train.py"]', 'paths = ["train.py", "lib/"]'),
        ('paths = ["train.py"]\n', ""),
        ('syncs = "0"', 'syncs = "0", h2d = "0"'),
        ('owner = "ada"', 'owner = "bob"'),
    ],
)
def test_a_stricter_budget_needs_none(repository: Repository, gate: Gate, old: str, new: str) -> None:
    """What is lowered, or added as a limit, holds at once."""
    repository.write("tickets.toml", CONFIG.replace(old, new))
    done = gate()
    assert [] == [each for each in said(done) if each[1] == "gate-budget-raised"]
    # Nothing here counts copies.
    assert (ExitCode.INCONCLUSIVE if "h2d" in new else ExitCode.OK) == done.code


def test_a_region_in_the_code_raises_the_budget(repository: Repository, git: Git, gate: Gate) -> None:
    """Who writes one allows themselves to wait; one that was there allows what it did, and no more."""
    repository.write("train.py", CODE.replace("    pass\n", "    loss.item()  # region\n"))
    done = gate()
    assert ExitCode.GATE_FAILED == done.code
    assert [("error", "gate-budget-raised", "train.py", 6)] == said(done)
    assert 'allowed("fine") sets syncs 1 apart: loss.item()' in problems(done)[0]["message"]
    assert ExitCode.OK == gate("--accept", "budget:train").code
    commit(git, "with a region")
    git("switch", "--quiet", "main")
    git("merge", "--quiet", "work")
    git("switch", "--quiet", "-C", "more")
    repository.write("train.py", CODE.replace("    pass\n", "    now(loss.item())  # region\n"))
    assert (ExitCode.OK, []) == (gate().code, said(gate()))
    repository.write("train.py", CODE.replace("    pass\n", "    loss.item()  # region # n\n"))
    # It waits n times now, where it did once.
    assert [("error", "gate-budget-raised", "train.py", 6)] == said(gate())


def test_a_branch_that_lowers_its_budget_must_keep_it(repository: Repository, git: Git, gate: Gate) -> None:
    """The base spends as much, and exceeds only what the branch demands; that is no excuse."""
    repository.write("tickets.toml", BUDGET)
    done = gate()
    assert (ExitCode.GATE_FAILED, "gate-budget") == (done.code, said(done)[0][1])
    git("restore", "tickets.toml")
    git("switch", "--quiet", "main")
    repository.write("tickets.toml", BUDGET.replace('"0"', '"1"'))
    commit(git, "one wait is free")
    git("switch", "--quiet", "-C", "work")
    repository.write("tickets.toml", BUDGET)
    done = gate()
    assert (ExitCode.GATE_FAILED, "gate-budget") == (done.code, said(done)[0][1])


def test_a_raise_that_is_not_accepted_does_not_count(repository: Repository, gate: Gate) -> None:
    """The base's budget is the one that the code is held to; with the word it is the branch's."""
    repository.write("train.py", CODE.replace("    pass\n", NEW))
    repository.write("tickets.toml", CONFIG.replace('"0"', '"1"'))
    done = gate()
    assert {"gate-budget", "gate-budget-raised"} == {each[1] for each in said(done) if each[0] == "error"}
    done = gate("--accept", "budget:train")
    assert (ExitCode.OK, [("warning", "gate-budget-raised", "tickets.toml", 1)]) == (done.code, said(done))
    assert ExitCode.USAGE == gate("--accept", "budget:tran").code


@pytest.mark.parametrize(
    ("owners", "is_owned"),
    [("* @ada\n", True), ("tickets.toml @ada\n", True), ("/src/ @ada\n", False), ("* @ada\n*.toml\n", False)],
)
def test_owners_of_the_configuration_can_accept(
    repository: Repository, git: Git, gate: Gate, owners: str, is_owned: bool
) -> None:
    """Where the base has owners for the file, the gate says whose review it needs."""
    git("switch", "--quiet", "main")
    repository.write(".github/CODEOWNERS", owners)
    commit(git, "owners")
    git("switch", "--quiet", "-C", "work")
    repository.write("tickets.toml", CONFIG.replace('"0"', '"1"'))
    # The branch's own word on who owns what is none.
    repository.write(".github/CODEOWNERS", "* @eve\n")
    done = gate()
    (problem,) = problems(done)
    assert ("warning" if is_owned else "error") == problem["level"]
    assert is_owned is ("@ada" in problem["hint"])
    assert "@eve" not in problem["hint"]


def test_a_moved_line_may_be_written_as_it_is_now(repository: Repository, gate: Gate) -> None:
    """Its allowance moves along, by tighten or by hand, and may not grow on the way."""
    moved = CODE.replace("def step", "def train_step")
    repository.write("train.py", moved)
    done = gate()
    assert (ExitCode.OK, [("note", "gate-budget", "tickets.toml", 8)]) == (done.code, said(done))
    repository.write("tickets.toml", CONFIG.replace('"step"', '"train_step"'))
    done = gate()
    assert (ExitCode.OK, []) == (done.code, said(done))
    more = CONFIG.replace('"step"', '"train_step"').replace('law = "1"', 'law = "2"')
    repository.write("tickets.toml", more)
    done = gate()
    assert [("error", "gate-budget-raised", "tickets.toml", 8)] == said(done)[:1]


@pytest.mark.parametrize(
    ("config", "code", "rule", "exit_code"),
    [
        (CONFIG + "until = 2020-01-01\n", CODE, "gate-budget", ExitCode.GATE_FAILED),
        (CONFIG + 'until = "B1-PT-09"\n', CODE, "gate-budget-allowance", ExitCode.BAD_DATA),
        (CONFIG, CODE + "raise ValueError\n", "gate-budget-inconclusive", ExitCode.INCONCLUSIVE),
        (
            CONFIG,
            CODE.replace("    pass\n", "    log(loss.item())\n").replace("other", "step"),
            "gate-budget-allowance",
            ExitCode.BAD_DATA,
        ),
        (CONFIG.replace('"0"', '"m"'), CODE, "", ExitCode.BAD_DATA),
    ],
)
def test_what_nobody_can_judge_never_passes(
    repository: Repository, git: Git, gate: Gate, config: str, code: str, rule: str, exit_code: ExitCode
) -> None:
    """Also where the base is no better."""
    git("switch", "--quiet", "main")
    repository.write("tickets.toml", config)
    repository.write("train.py", code)
    commit(git, "bad")
    git("switch", "--quiet", "-C", "work")
    repository.write("other.txt", "a\n")
    done = gate()
    assert exit_code == done.code, done.out + done.err
    if rule:
        assert ("error", rule) in [each[:2] for each in said(done)]
    else:
        assert "tickets.toml:6" in done.err


def test_a_branch_cannot_reopen_the_ticket_that_ends_an_allowance(
    repository: Repository, git: Git, gate: Gate
) -> None:
    """It is closed at the base."""
    git("switch", "--quiet", "main")
    repository.ticket("B1-PT-01", status="closed")
    repository.write("tickets.toml", CONFIG + 'until = "B1-PT-01"\n')
    commit(git, "until")
    git("switch", "--quiet", "-C", "work")
    repository.ticket("B1-PT-01", status="open")
    assert ("error", "gate-budget") in [each[:2] for each in said(gate())]


def test_a_new_budget_is_held_to_itself(repository: Repository, gate: Gate) -> None:
    """The base has none of that name, and the branch may add one that it keeps."""
    new = BUDGET.replace("train", "more").replace("more.py", "train.py")
    repository.write("tickets.toml", f"{CONFIG}\n{new}")
    done = gate()
    assert ("error", "gate-budget", "train.py", 2) == said(done)[0]
    assert "at the base: the budget is new" in problems(done)[0]["message"]
    repository.write("tickets.toml", CONFIG + "\n" + new.replace('"0"', '"1"'))
    assert ExitCode.OK == gate().code


def test_of_several_bases_the_strictest_decides(repository: Repository, git: Git, gate: Gate) -> None:
    """Main and the branch were merged into each other; at one of both bases nothing was free."""
    repository.write("train.py", CODE.replace("    pass\n", NEW))
    repository.write("tickets.toml", CONFIG.replace('"0"', '"1"'))
    commit(git, "raised")
    git("switch", "--quiet", "main")
    repository.write("other.txt", "a\n")
    commit(git, "main goes on")
    git("tag", "was")
    git("merge", "--quiet", "--no-edit", "work")
    git("switch", "--quiet", "work")
    git("merge", "--quiet", "--no-edit", "was")
    done = gate()
    assert {"gate-budget", "gate-budget-raised"} == {each[1] for each in said(done) if each[0] == "error"}


def test_every_output_names_the_line(repository: Repository, gate: Gate) -> None:
    """Text, annotations and Markdown."""
    repository.write("train.py", CODE.replace("    pass\n", NEW))
    for form, place in (
        ("text", "train.py:7: error [gate-budget]"),
        ("github", "::error file=train.py,line=7,col=1,title=gate-budget::"),
        ("markdown", r"**failed** train.py:7: \[gate-budget]"),
    ):
        ran = gate("--format", form)
        assert place in ran.out.replace("\\_", "_").replace("`", "")
