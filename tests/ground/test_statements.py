"""Statements are found by file, function and code, wherever their lines move to."""

from __future__ import annotations

from pathlib import Path

import pytest

from finding_tickets.ground.statements import find_statement, is_renamed, normalize, read_statements

CODE = '''\
import torch


class Trainer:
    @torch.no_grad()
    def step(self, rows):
        """Say nothing."""
        for row in rows:  # a comment
            if row.any():
                print(
                    row.item(),
                )
            elif (row > 1).all():
                pass
        with torch.no_grad(), open("x") as file:
            file.write("y")
        return [
            row.item()
            for row in rows
        ]
'''


@pytest.mark.parametrize(
    ("line", "function", "code"),
    [
        (1, "", "import torch"),
        (5, "Trainer", ""),
        (8, "Trainer.step", "for row in rows:"),
        (9, "Trainer.step", "if row.any():"),
        (11, "Trainer.step", "print(row.item())"),
        (13, "Trainer.step", "if (row > 1).all():"),
        (15, "Trainer.step", "with torch.no_grad(), open('x') as file:"),
        (18, "Trainer.step", "return [row.item() for row in rows]"),
    ],
)
def test_a_line_is_part_of_a_statement(tmp_path: Path, line: int, function: str, code: str) -> None:
    """Of one with a block only the head is; decorators stand between statements."""
    (tmp_path / "train.py").write_text(CODE)
    found = find_statement(tmp_path, "train.py", line, "step")
    if code:
        assert (function, code) == (found.function, found.code)
        assert found in read_statements(tmp_path, "train.py")
    else:
        assert "class Trainer:" == found.code


def test_what_is_no_file_of_the_repository_has_a_stand_in(tmp_path: Path) -> None:
    """A library, and a file that is not Python, are known by their functions."""
    (tmp_path / "broken.py").write_text("def f(:\n")
    for file in ("broken.py", "library/work.py", "<unknown>"):
        assert "in run" == find_statement(tmp_path, file, 3, "run").code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("print( x.item() )", "print(x.item())"),
        ("for  x in  y:", "for x in y:"),
        ("elif x.any():", "if x.any():"),
        ("while (x > 1):", "while x > 1:"),
        ("try:", "try:"),
        ("match x:", "match x:"),
        ("no  python at all", "no python at all"),
    ],
)
def test_layout_makes_no_difference(text: str, code: str) -> None:
    """What somebody writes into a configuration is compared with what stands in the code."""
    assert code == normalize(text)


@pytest.mark.parametrize(
    ("old", "new", "now", "expected"),
    [
        ("loss.item()", "value.item()", "value", True),
        # The old name is still in use: it is another statement.
        ("loss.item()", "value.item()", "loss value", False),
        ("f(a, b)", "f(b, b)", "b", False),
        ("print(a)", "log(a)", "", False),
        ("a.item()", "a.tolist()", "", False),
    ],
)
def test_a_statement_is_renamed(old: str, new: str, now: str, expected: bool) -> None:
    """Only names may differ, each in the same way everywhere; attributes and built-in functions are kept."""
    assert expected is is_renamed(old, new, now)
