"""The examples of every lint rule are executed: wrong draws its problem, right none, the fix leads there."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

import pytest
from tests.lint.conftest import lint
from tests.lint.page import Files, explanations
from tests.report.conftest import verification

from finding_tickets.lint.autofix import fix
from finding_tickets.lint.rules import RULES
from finding_tickets.model.verification import Evidence
from finding_tickets.model.vocabulary import Verdict
from finding_tickets.register.load import load
from finding_tickets.verify.evidence import dump

SOUND = """\
# Finding Ticket: Clipping waits for the device

## Ticket Metadata

| Field | Value |
|---|---|
| **Ticket ID** | `{ticket_id}` |
| **Severity** | `P2` |
| **Status** | `wont-fix` |

## Location

`src/step.py`, in `step()`

## Summary

**One-line summary:** It waits once in every step.

- [x] Performance bottleneck

## Verification

- [ ] Count the waits
"""
ROW = re.compile(r"\| \*\*(.+?)\*\* \|.*\n")
EVIDENCE = re.compile(r"\(evidence with the verdict (\w+)\)")


def expanded(path: str, example: str) -> str:
    """The text of a ticket that an example states whole, or as a change of a sound one."""
    if example.startswith("# "):
        return f"{example.rstrip()}\n"
    text = SOUND.format(ticket_id=re.sub("-[a-z].*", "", PurePosixPath(path).stem))
    before, *sections = re.split(r"(?m)^(?=## )", example)
    text = with_rows(text, list(ROW.finditer(f"{before}\n")))
    other = ROW.sub("", f"{before}\n").strip()
    if other:
        title, rest = text.split("\n\n", 1)
        text = f"{title}\n\n{other}\n\n{rest}"
    for section in sections:
        text = with_section(text, section.rstrip() + "\n")
    return text


def with_rows(text: str, rows: list[re.Match[str]]) -> str:
    """The metadata of a ticket with these rows in place of those of the same name, or below them."""
    names = {row[1] for row in rows}
    kept = [match[0] for match in ROW.finditer(text) if match[1] not in names]
    changed = [row[0] for row in rows]
    start, end = text.index("| **"), text.index("\n## Location")
    return text[:start] + "".join([*kept, *changed]) + text[end:]


def with_section(text: str, section: str) -> str:
    """A ticket with this section in place of the one of the same heading, or at its end."""
    heading = section.partition("\n")[0]
    pieces = re.split(r"(?m)^(?=## )", text)
    changed = [f"{section}\n" if piece.startswith(f"{heading}\n") else piece for piece in pieces]
    return "".join(changed if changed != pieces else [text, "\n", section]).rstrip("\n") + "\n"


def write(root: Path, files: Files) -> None:
    """Write the files of an example, below one file of code."""
    (root / "tickets").mkdir()
    (root / "src").mkdir()
    (root / "src/step.py").write_text("def step():\n    return 1\n")
    (root / "src/more.py").write_text("def more():\n    return 2\n")
    for path, content in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            file.write_bytes(content)
        elif content.startswith("-> "):
            file.symlink_to(content.removeprefix("-> "))
        elif stated := EVIDENCE.fullmatch(content):
            file.write_bytes(evidence(Verdict(stated[1])))
        elif path.startswith("tickets/") and path.endswith(".md"):
            file.write_text(expanded(path, content))
        else:
            file.write_text(f"{content}\n" if content else "")


def evidence(verdict: Verdict) -> bytes:
    """What the tool records for a verdict."""
    done = verification("", verdict, []).model_copy(update={"ticket": "B1-PT-01"})
    return dump(Evidence(inputs=(), verification=done))


def broken(root: Path) -> set[str]:
    """The rules that a register breaks."""
    return {problem.rule for problem in lint(load(root))}


@pytest.mark.parametrize("name", RULES)
def test_the_wrong_example_draws_its_problem_alone(tmp_path: Path, name: str) -> None:
    """The example that is documented as wrong breaks this rule and no other one."""
    write(tmp_path, explanations()[name].wrong)
    assert {name} == broken(tmp_path)


@pytest.mark.parametrize("name", RULES)
def test_the_right_example_draws_no_problem(tmp_path: Path, name: str) -> None:
    """The example that is documented as right breaks no rule at all."""
    write(tmp_path, explanations()[name].right)
    assert set() == broken(tmp_path)


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if rule.fixable])
def test_the_fix_turns_wrong_into_right(tmp_path: Path, name: str) -> None:
    """Mending the wrong example gives the files of the right one, byte for byte, and nothing else."""
    wrong, right = tmp_path / "wrong", tmp_path / "right"
    for root, files in ((wrong, explanations()[name].wrong), (right, explanations()[name].right)):
        root.mkdir()
        write(root, files)
    assert [1] <= [each.count for each in fix(load(wrong), None)]
    assert contents(right) == contents(wrong)


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if not rule.fixable])
def test_what_takes_judgement_is_left_alone(tmp_path: Path, name: str) -> None:
    """Mending changes nothing in an example of a rule that is documented as not mended."""
    write(tmp_path, explanations()[name].wrong)
    before = contents(tmp_path)
    assert [] == fix(load(tmp_path), None)
    assert before == contents(tmp_path)


def contents(root: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }
