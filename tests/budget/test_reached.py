"""Which allowances are reached: their statements report, and the code stays what it is."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from finding_tickets.budget.reached import Reached
from finding_tickets.register.budgets import Allowance

CODE = '''\
"""The page."""

from __future__ import annotations

FIRST = 1


class Step:
    """A step."""

    def run(self, values):
        """Run."""
        for value in values:
            if value:
                total = (
                    value / 0
                )
            else:
                total = value
        else:
            total = 2
        return total

    def __again(self): return 1


def other(): return 2
'''
TEXTS = (
    *("'''The page.'''", "from __future__ import annotations", "FIRST = 1"),
    *("for value in values:", "total = value / 0", "total = value", "total = 2", "return 1"),
)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose module can be imported."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "reached_code.py").write_text(CODE)
    monkeypatch.syspath_prepend(str(tmp_path / "lib"))
    yield tmp_path
    sys.modules.pop("reached_code", None)


def test_statements_report_when_they_run(root: Path) -> None:
    """Once each time that they are asked; those that come first in a file stay first."""
    allowances = [Allowance(file="lib/reached_code.py", text=text, reason="-") for text in TEXTS]
    reached = Reached(root, allowances)
    reached.install()
    try:
        module = importlib.import_module("reached_code")
    finally:
        reached.remove()

    def taken() -> list[str]:
        return [TEXTS[number] for number in reached.take()]

    assert ["FIRST = 1"] == taken()
    assert "The page." == module.__doc__
    assert 2 == module.Step().run([0])
    assert ["for value in values:", "total = value", "total = 2"] == taken()
    with pytest.raises(ZeroDivisionError) as raised:
        module.Step().run([1])
    assert ["for value in values:", "total = value / 0"] == taken()
    # A name of the class's own is not that of the call.
    assert 1 == module.Step()._Step__again()
    assert ["return 1"] == taken()
    assert [] == taken()
    last = traceback.extract_tb(raised.value.__traceback__)[-1]
    assert ("value / 0", 16) == (last.line, last.lineno)


def test_functions_files_and_folders_report_when_a_function_runs(root: Path) -> None:
    """Importing a file runs none of its functions."""
    allowances = [
        Allowance(file="lib/reached_code.py", function="Step", reason="-"),
        Allowance(file="lib/reached_code.py", function="Step.run", reason="-"),
        Allowance(file="lib/reached_code.py", reason="-"),
        Allowance(file="lib/", reason="-"),
        Allowance(file="li/", reason="-"),
    ]
    reached = Reached(root, allowances)
    reached.install()
    try:
        module = importlib.import_module("reached_code")
    finally:
        reached.remove()
    assert [] == reached.take()
    module.other()
    assert [2, 3] == reached.take()
    module.Step()._Step__again()
    assert [0, 2, 3] == reached.take()
    module.Step().run([])
    assert [0, 1, 2, 3] == reached.take()
    assert "Run." == module.Step.run.__doc__
