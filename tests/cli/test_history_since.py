"""``tickets history --since``: every commit measured, and what became better and worse."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.verify.conftest import FIX, FOUND, add

from finding_tickets.errors import ExitCode

if TYPE_CHECKING:
    from tests.cli.conftest import Ran
    from tests.conftest import Git, Repository

Tickets = Callable[..., "Ran"]
MEASURED = ("--meter", "simulated")


@pytest.fixture
def commits(repository: Repository, git: Git) -> dict[str, str]:
    """A fix that is undone, mended and undone again; a ticket that stays as it is; by their messages."""
    made = {}
    add(repository, "A-2")
    for day, (fix, message) in enumerate([("", "none"), (FIX, "fix"), (FOUND, "undo"), (FIX, "mend")], 1):
        if fix:
            add(repository, "A-1", fix=fix)
        git("add", "--all")
        git("commit", "--quiet", "-m", message, when=f"2026-01-0{day}")
        made[message] = git("rev-parse", "HEAD").strip()
    return made


def undo(repository: Repository, git: Git) -> str:
    """Take the fix back again, at HEAD."""
    add(repository, "A-1", fix=FOUND)
    git("commit", "--quiet", "--all", "-m", "undo <it> again", when="2026-01-05")
    return git("rev-parse", "HEAD").strip()


@pytest.mark.slow
def test_what_is_mended_is_told_and_fails_nothing(commits: dict[str, str], tickets: Tickets) -> None:
    """A strip for each row, and each change below its commit; what never changed takes a line."""
    ran = tickets("history", "--since", commits["none"], "--all", *MEASURED)
    assert (ExitCode.OK, True) == (ran.code, ran.err.endswith("regressed and not mended: none\n"))
    undone, mended = commits["undo"][:10], commits["mend"][:10]
    assert [
        "A-1",
        "  verdict             .o!+  verified",
        "  found.syncs         .o--  tensors",
        "  fix.syncs           .o!+  1",
        "  fix.same_result_as  .o--  equal at 4 of 4 points",
        f"  2026-01-03  {undone}  undo",
        "    REGRESSION  verdict    verified -> failed",
        "    REGRESSION  fix.syncs  1 -> tensors (not as claimed)",
        f"  2026-01-04  {mended}  mend",
        "    improvement  verdict    failed -> verified",
        "    improvement  fix.syncs  tensors (not as claimed) -> 1",
        f"  not known at 1 commit, {commits['none'][:10]}: there is no such ticket",
        "",
        "A-2  verified, no change in 4 commits",
        "",
        "o first   - as before   ! regression   + improvement   * change   . not known",
    ] == ran.out.splitlines()


def test_what_is_not_mended_fails(
    repository: Repository, git: Git, commits: dict[str, str], tickets: Tickets
) -> None:
    """It is said, and named on the page of HTML, which has a chart of it and runs nothing."""
    last = undo(repository, git)
    page = repository.root / "page.html"
    ran = tickets("history", "A-1", "a-2", "--since", commits["fix"], "-o", str(page), *MEASURED)
    assert (ExitCode.GATE_FAILED, "") == (ran.code, ran.out)
    assert "4 commits, 2 tickets, 3 measured now; regressed and not mended: A-1\n" in ran.err
    html = page.read_text(encoding="utf-8")
    section = html.partition('<h2 id="open">')[2].partition("</section>")[0]
    assert [last[:10]] * 2 == re.findall(r"<code>([0-9a-f]{10})</code>", section)
    assert "undo &lt;it&gt; again" in section
    assert re.search(r"<title>syncs at each commit that changed something</title>", html)
    # 13 tensors at the last point: read one by one where it is undone, and at once where not.
    numbers = re.findall(r'<th scope="row">\d: ([-0-9]+) \w+</th><td>([^<]*)</td><td>([^<]*)</td>', html)
    assert [
        ("2026-01-02", "13 by tensors", "1 by 1"),
        ("2026-01-03", "13 by tensors", "13 by tensors (not as claimed)"),
        ("2026-01-04", "13 by tensors", "1 by 1"),
        ("2026-01-05", "13 by tensors", "13 by tensors (not as claimed)"),
    ] == numbers
    assert not re.search(r"<script|\ssrc=|\shref=\"(?!#)", html)


@pytest.mark.slow
@pytest.mark.parametrize("gone", ["tickets/A-1.md", "verifiers/a_1.py"])
def test_what_head_does_not_have_any_more_fails_nothing(
    repository: Repository, git: Git, commits: dict[str, str], tickets: Tickets, gone: str
) -> None:
    """A regression of a ticket that was removed, or that is not measured any more, is told and not open."""
    undo(repository, git)
    git("rm", "--quiet", gone)
    git("commit", "--quiet", "-m", "removed")
    ran = tickets("history", "A-1", "--since", commits["mend"], *MEASURED)
    assert (ExitCode.OK, True) == (ran.code, ran.err.endswith("regressed and not mended: none\n"))
    assert "A-1\n" in ran.out
    assert "    REGRESSION  fix.syncs  1 -> tensors (not as claimed)\n" in ran.out


@pytest.mark.slow
def test_json_has_every_step_and_gap(
    repository: Repository, git: Git, commits: dict[str, str], tickets: Tickets
) -> None:
    """With the keys that the page of JSON names."""
    last = undo(repository, git)
    ran = tickets("history", "--since", commits["none"], "A-1", "--format", "json", *MEASURED)
    (item,) = ran.data
    (row,) = (row for row in item["rows"] if row["name"] == "fix.syncs")
    assert [
        (commits["fix"], None, "1", 1, None, False),
        (commits["undo"], "1", "tensors (not as claimed)", 13, "regression", False),
        (commits["mend"], "tensors (not as claimed)", "1", 1, "improvement", False),
        (last, "1", "tensors (not as claimed)", 13, "regression", True),
    ] == [
        tuple(step[key] for key in ("id", "before", "after", "value", "turn", "open"))
        for step in row["steps"]
    ]
    assert ("A-1", True, 5, 2) == (item["ticket"], item["regressed"], item["commits"], item["measured"])
    none = commits["none"]
    assert [
        {"first": none, "last": none, "commits": 1, "kind": "absent", "why": "there is no such ticket"}
    ] == item["gaps"]
    text = (Path(__file__).parents[2] / "docs/json.md").read_text(encoding="utf-8")
    section = text.partition("\n## regressions\n")[2].partition("\n## ")[0]
    keys = {*item, *row, *row["steps"][0], *item["gaps"][0]}
    assert set() == {key for key in keys if f"`{key}`" not in section}


@pytest.mark.slow
def test_of_what_is_not_known_only_head_counts(
    repository: Repository, git: Git, commits: dict[str, str], tickets: Tickets
) -> None:
    """A commit that does not import is listed; at HEAD it is inconclusive, and a wrong ticket bad data."""
    for text, code in [
        (f"import gone\n{FIX}", ExitCode.INCONCLUSIVE),
        (FIX, ExitCode.OK),
    ]:
        repository.write("fixes/a_1/fix.py", text)
        git("commit", "--quiet", "--all", "-m", "next")
        ran = tickets("history", "--since", commits["mend"], "A-1", *MEASURED)
        assert code == ran.code
    assert "ModuleNotFoundError: No module named 'gone'" in ran.out
    add(repository, "A-1", "claims: {found: {sinks: 1}}")
    git("commit", "--quiet", "--all", "-m", "wrong")
    assert ExitCode.BAD_DATA == tickets("history", "--since", commits["mend"], "A-1", *MEASURED).code


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name one ticket to show its evidence"),
        (["--all"], "name one ticket to show its evidence"),
        (["A-1", "A-2"], "name one ticket to show its evidence"),
        (["A-1", "--timeout", "3"], "nothing is measured or drawn without --since REV"),
        (["A-1", "--format", "html"], "nothing is measured or drawn without --since REV"),
        (["--since", "HEAD"], "name the tickets to measure, or say --all"),
        (["--since", "HEAD", "--all", "A-1"], "name the tickets to measure, or say --all"),
        (["--since", "HEAD", "--all", "--format", "json", "-o", "x"], "--output is for --format html"),
        (["--since", "nowhere", "--all", *MEASURED], "--since nowhere: there is no revision nowhere"),
    ],
)
def test_what_makes_no_sense_is_refused(
    commits: dict[str, str], tickets: Tickets, arguments: list[str], message: str
) -> None:
    """With what to do."""
    assert len(commits) == 4
    ran = tickets("history", *arguments)
    assert (ExitCode.USAGE, True) == (ran.code, message in ran.err)


@pytest.mark.slow
def test_no_page_is_written_over_the_register(
    repository: Repository, commits: dict[str, str], tickets: Tickets
) -> None:
    """The ticket stays what it is."""
    ticket = repository.root / "tickets/A-1.md"
    before = ticket.read_bytes()
    ran = tickets("history", "A-1", "--since", commits["fix"], "-o", str(ticket), *MEASURED)
    assert (ExitCode.USAGE, before) == (ran.code, ticket.read_bytes())
