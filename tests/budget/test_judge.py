"""Limits, allowances and the lines that go beyond them, judged from what was spent."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from finding_tickets.budget.judge import JudgedBudget, exit_code, judge
from finding_tickets.budget.spending import Spender, Spending
from finding_tickets.errors import ExitCode
from finding_tickets.register.budgets import Allowance, Budget

TODAY = date(2030, 6, 1)
CODE = """\
def step(loss, mask):
    log(loss.item())
    if loss.isnan():
        raise ValueError
    log(loss.item())
    return loss[mask]
"""
POINTS = ({"n": 2}, {"n": 3}, {"n": 5}, {"n": 9})
ITEM, AGAIN, NAN, MASK = (
    Spender("train.py", 2, "step", "log(loss.item())", 1),
    Spender("train.py", 5, "step", "log(loss.item())", 2),
    Spender("train.py", 3, "step", "if loss.isnan():", 1),
    Spender("train.py", 6, "step", "return loss[mask]", 1),
)
N, ONE = (2, 3, 5, 9), (1, 1, 1, 1)


def spending(spent: Mapping[Spender, tuple[int, ...]], **more: Any) -> Spending:
    """What lines wait, with the sum of it as the metric."""
    total = tuple(map(sum, zip(*spent.values(), strict=True))) if spent else (0,) * len(POINTS)
    values: dict[str, Any] = {
        "points": POINTS,
        "metrics": {"syncs": total, "peak_bytes": (64, 96, 160, 288)},
        "spent": tuple((spender, {"syncs": values, "d2h": values}) for spender, values in spent.items()),
        **more,
    }
    return Spending(**values)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with the code."""
    (tmp_path / "train.py").write_text(CODE)
    return tmp_path


def judged(
    root: Path, spent: Spending, *allow: Allowance, limits: Mapping[str, str] | None = None, **more: Any
) -> JudgedBudget:
    """What comes of a budget that allows no wait, unless it says otherwise."""
    budget = Budget(
        name="train", run="train.py {n}", limits=limits or {"syncs": "0"}, allow=allow, line=3, **more
    )
    return judge(budget, spent, root, "tickets.toml", {"A-1": True, "A-2": False}.get, TODAY)


def allow(text: str = "log(loss.item())", occurrence: int | None = 1, **more: Any) -> Allowance:
    """An allowance for a statement of the function."""
    values: dict[str, Any] = {"file": "train.py", "function": "step", "what": ("syncs",), "line": 9, **more}
    return Allowance(text=text, occurrence=occurrence, reason="as found", **values)


def said(found: JudgedBudget) -> list[tuple[str, str, int]]:
    """The rule and place of each problem."""
    return [(each.rule, each.file, each.line) for each in found.problems]


def test_a_line_that_is_not_allowed_exceeds_the_limit(root: Path) -> None:
    """The line is named with its law, and what is allowed is set apart from the limit."""
    found = judged(root, spending({ITEM: N, NAN: ONE}), allow())
    # syncs are n + 1, of which the allowed line waits n times: 1 is left, and 0 may be.
    (row,) = found.rows
    assert ("1", "n", "-1", False) == (row.law, row.allowed, row.left, row.holds)
    assert [("budget-exceeded", "train.py", 3)] == said(found)
    assert "syncs: 1, at most 0 allowed; 1 at n=2, here 1: if loss.isnan():" in found.problems[0].message
    assert exit_code(found.problems) is ExitCode.GATE_FAILED


def test_what_is_allowed_is_within_the_limit(root: Path) -> None:
    """Each of two equal statements has an allowance of its own."""
    found = judged(root, spending({ITEM: N, AGAIN: ONE}), allow(), allow(occurrence=2))
    assert ("0", "n + 1") == (found.rows[0].law, found.rows[0].allowed)
    assert [] == said(found)
    assert exit_code(found.problems) is ExitCode.OK


def test_an_occurrence_is_no_other_one(root: Path) -> None:
    """The second of two equal statements is not allowed by the allowance for the first."""
    found = judged(root, spending({ITEM: N, AGAIN: ONE}), allow())
    assert [("budget-exceeded", "train.py", 5)] == said(found)


def test_a_limit_is_a_law(root: Path) -> None:
    """It bounds every point: 2*n bounds n + 2 from n=2 on, and n + 1 does not."""
    spent = spending({ITEM: (4, 5, 7, 11)})
    assert judged(root, spent, limits={"syncs": "2*n"}).rows[0].holds
    over = judged(root, spent, limits={"syncs": "n + 1"})
    assert ("n + 2", "-1", False) == (over.rows[0].law, over.rows[0].left, over.rows[0].holds)


def test_an_allowed_line_that_moves_into_a_loop_exceeds_its_own_law(root: Path) -> None:
    """Once a run was allowed; now it is n times."""
    found = judged(root, spending({ITEM: N}), allow(law="1"))
    assert [("budget-exceeded", "train.py", 2)] == said(found)
    assert "syncs: n, at most 1 allowed of this line; 2 at n=2" in found.problems[0].message


def test_other_metrics_of_an_allowed_line_still_count(root: Path) -> None:
    """What may wait may not copy; without what, a line may do anything."""
    spent = spending({ITEM: N})
    spent = Spending(**{**vars(spent), "metrics": {**spent.metrics, "d2h": N}})
    limits = {"syncs": "0", "d2h": "0"}
    assert [("budget-exceeded", "train.py", 2)] == said(judged(root, spent, allow(), limits=limits))
    assert [] == said(judged(root, spent, allow(what=()), limits=limits))


@pytest.mark.parametrize(
    ("until", "rule"),
    [
        ("2030-06-01", ""),
        ("2030-05-31", "budget-expired"),
        ("A-2", ""),
        ("A-1", "budget-expired"),
        ("A-3", "budget-allowance"),
    ],
)
def test_an_allowance_ends(root: Path, until: str, rule: str) -> None:
    """On its last day it counts, and while its ticket is open; an unknown ticket is bad data."""
    found = judged(root, spending({ITEM: ONE}), allow(until=until))
    expected = [(rule, "tickets.toml", 9), ("budget-exceeded", "train.py", 2)] if rule else []
    assert expected == said(found)


def test_an_allowance_names_one_place(root: Path) -> None:
    """Two equal statements need an occurrence, and what is not there is said."""
    found = judged(root, spending({}), allow(occurrence=None), allow("log(loss.cpu())"))
    assert [("budget-allowance", "tickets.toml", 9), ("budget-gone", "tickets.toml", 9)] == said(found)
    assert "matches 2 places, on lines 2, 5" in found.problems[0].message
    assert "matches nothing" in found.problems[1].message
    assert "did you mean `log(loss.item())`?" in str(found.problems[1].hint)
    assert exit_code(found.problems) is ExitCode.BAD_DATA


def test_what_is_there_and_spends_nothing_is_silent(root: Path) -> None:
    """A run need not reach every line that may wait; if it reaches none, it may do less than it did."""
    nan = allow("if loss.isnan():")
    found = judged(root, spending({ITEM: ONE}), nan, allow())
    assert ([], ["if loss.isnan():"]) == (said(found), [each.text for each in found.silent])
    alone = judged(root, spending({}), nan)
    assert ["budget-silent"] == [each.rule for each in alone.problems]
    assert exit_code(alone.problems) is ExitCode.OK


@pytest.mark.parametrize(
    ("place", "counts"),
    [
        ({"file": "train.py"}, False),
        ({"file": "train.py", "function": "step"}, False),
        ({"file": "train.py", "function": "other"}, True),
        ({"file": "lib/"}, True),
    ],
)
def test_an_allowance_may_be_for_all_of_a_place(root: Path, place: dict[str, Any], counts: bool) -> None:
    """A function, a file or a folder; what is not there matches nothing."""
    found = judged(root, spending({ITEM: ONE, NAN: N}), Allowance(**place, reason="old", line=9))
    assert counts is (found.rows[0].holds is False)
    assert counts is ("budget-gone" in [each.rule for each in found.problems])


@pytest.mark.parametrize(
    "now",
    [
        Spender("train.py", 2, "training_step", "log(loss.item())"),  # the function has another name
        Spender("lib/log.py", 8, "step", "log(loss.item())"),  # it is in another file
        Spender("train.py", 2, "step", "log(value.item(), step=3)"),  # the statement was edited
        Spender("train.py", 9, "as_number", "return value.item()"),  # a helper was extracted
    ],
)
def test_a_moved_line_keeps_its_allowance(root: Path, now: Spender) -> None:
    """Its old place is gone, and one like it spends the same: a note says where it is now."""
    (root / "train.py").write_text("def step():\n    log(as_number(0))\n")
    found = judged(root, spending({now: N}), allow(law="n"))
    assert [("budget-moved", "tickets.toml", 9)] == said(found)
    assert [now] == [each.spender for each in found.allowed if each.is_moved]
    assert exit_code(found.problems) is ExitCode.OK


@pytest.mark.parametrize(
    ("now", "values"),
    [
        (Spender("train.py", 2, "training_step", "log(loss.item())"), (4, 6, 10, 18)),  # 2*n, above its law
        (Spender("train.py", 9, "other", "mask.nonzero()"), N),  # nothing in common
        (Spender("train.py", 9, "other", "log(norm.item())"), N),  # neither function calls the other one
    ],
)
def test_another_line_does_not_take_over_an_allowance(
    root: Path, now: Spender, values: tuple[int, ...]
) -> None:
    """One that spends more, or is not like it, is new."""
    (root / "train.py").write_text("def step():\n    pass\n")
    found = judged(root, spending({now: values}), allow(law="n"))
    assert {"budget-gone", "budget-exceeded"} == {each.rule for each in found.problems}


def test_a_line_that_stays_keeps_its_allowance_from_new_ones(root: Path) -> None:
    """A second wait like the first one is no move of it: the first is still there."""
    new = Spender("train.py", 8, "step", "log(loss.mean().item())")
    found = judged(root, spending({ITEM: ONE, new: ONE}), allow())
    assert [("budget-exceeded", "train.py", 8)] == said(found)


@pytest.mark.parametrize(
    ("law", "edited", "moved", "allowed"),
    [
        # Without a law it pays for one statement: for the same text elsewhere before one that was edited.
        ("", N, N, "other"),
        # 2*n is more than its law, n, and takes nothing of it.
        ("n", N, (4, 6, 10, 18), "step"),
        ("n", (4, 6, 10, 18), N, "other"),
    ],
)
def test_a_lost_allowance_pays_for_a_statement_wholly_or_not_at_all(
    root: Path, law: str, edited: tuple[int, ...], moved: tuple[int, ...], allowed: str
) -> None:
    """Of two statements that are like the one that is gone."""
    spent = spending(
        {
            Spender("train.py", 2, "step", "y = loss.item()"): edited,
            Spender("train.py", 9, "other", "x = loss.item()"): moved,
        }
    )
    found = judged(root, spent, allow("x = loss.item()", law=law))
    assert ["budget-moved", "budget-exceeded"] == [each.rule for each in found.problems]
    assert [allowed] == [each.spender.function for each in found.allowed]


def test_a_lost_allowance_pays_for_several_statements_up_to_its_law(root: Path) -> None:
    """One of n waits may become n - 1 and 1; of n and 1, which are n + 1, the first is paid for."""
    for more, counted in ((tuple(each - 1 for each in N), 2), (N, 1)):
        spent = spending(
            {
                Spender("train.py", 2, "step", "y = loss.item()"): more,
                Spender("train.py", 9, "step", "z = loss.item()"): ONE,
            }
        )
        found = judged(root, spent, allow("x = loss.item()", law="n"))
        assert counted == len(found.allowed)


def test_lines_elsewhere_do_not_count(root: Path) -> None:
    """With paths, only the lines below them do: 1 of n + 1 waits is in src/."""
    here = Spender("src/a.py", 1, "f", "x.item()")
    (root / "src").mkdir()
    found = judged(root, spending({ITEM: N, here: ONE}), limits={"syncs": "1"}, paths=("src",))
    assert [] == said(found)
    assert ("1", "0") == (found.rows[0].law, found.rows[0].left)


@pytest.mark.parametrize(("paths", "level"), [(("srcs/",), "error"), (("train.py", "srcs/"), "warning")])
def test_paths_that_name_nothing_are_said(root: Path, paths: tuple[str, ...], level: str) -> None:
    """Where none of them is there, nothing would count: that is no pass."""
    found = judged(root, spending({ITEM: ONE}), allow(), paths=paths)
    assert [(level, "budget-allowance")] == [(each.level, each.rule) for each in found.problems]


@pytest.mark.parametrize(
    ("old", "new", "rules"),
    [
        # Both test a value: it may be another one.
        ("if loss.isnan():", "if tokens.sum() > 5:", ["budget-moved"]),
        # Both have a subscript, and one reads a value by a call.
        ("kept = logits[mask]", "top = logits[0].tolist()", ["budget-gone", "budget-exceeded"]),
        # Moving to a device is not reading.
        ("model = TinyLM().to(device)", "outs += [pred.to('cpu')]", ["budget-gone", "budget-exceeded"]),
        ("outs.append(pred.cpu())", "outs += [pred.to('cpu')]", ["budget-moved"]),
    ],
)
def test_syntax_alone_makes_no_two_lines_one(root: Path, old: str, new: str, rules: list[str]) -> None:
    """What a statement does decides whether it takes the place of another one in its function."""
    (root / "train.py").write_text(
        f"def step():\n    {new} pass\n" if new[-1] == ":" else f"def step():\n    {new}\n"
    )
    found = judged(root, spending({Spender("train.py", 2, "step", new.replace("'", '"')): ONE}), allow(old))
    assert rules == [each.rule for each in found.problems]


def test_a_run_that_decides_nothing_is_inconclusive(root: Path) -> None:
    """Neither a run that failed nor one of unknown cost is a pass, whatever was counted."""
    for spent in (spending({}, trouble="at n=2: ValueError"), spending({}, unknown=("lib.op",))):
        found = judged(root, spent)
        assert [("budget-inconclusive", "tickets.toml", 3)] == said(found)
        assert exit_code(found.problems) is ExitCode.INCONCLUSIVE


def test_memory_is_blamed_on_large_requests(root: Path) -> None:
    """Of 64 bytes at the peak, a request of 7 is less than an eighth, and one of 40 is named."""
    spent = spending({})
    lines = ((ITEM, {"largest_allocation": (7, 7, 7, 7)}), (MASK, {"largest_allocation": (40, 60, 100, 180)}))
    found = judged(root, Spending(**{**vars(spent), "spent": lines}), limits={"peak_bytes": "16*n"})
    assert [("budget-exceeded", "train.py", 6)] == said(found)
    # 32*n bytes are the peak, 20*n the request.
    message = "peak_bytes: 32*n, at most 16*n allowed; 64 at n=2, here 20*n bytes at once"
    assert message in found.problems[0].message


@pytest.mark.parametrize(
    ("limit", "holds", "rules"),
    [("9", True, []), ("6", True, ["budget-modelled"]), ("4", False, ["budget-exceeded"])],
)
def test_a_modelled_number_is_named(root: Path, limit: str, holds: bool, rules: list[str]) -> None:
    """5 launches that can be 4 to 8 keep a limit of 9 for sure, and one of 6 by the model alone."""
    spent = spending({}, metrics={"launches": (5,) * 4}, ranges={"launches": ((4, 8),) * 4})
    found = judged(root, spent, limits={"launches": limit})
    assert (holds, rules) == (found.rows[0].holds, [each.rule for each in found.problems])
