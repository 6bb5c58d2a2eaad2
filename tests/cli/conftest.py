"""Running a command line in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from tests.conftest import Repository

from finding_tickets.cli.main import run


@dataclass(frozen=True)
class Ran:
    """How a command line ended and what it printed."""

    code: int
    out: str
    err: str

    @property
    def envelope(self) -> Any:
        """The JSON on stdout."""
        return json.loads(self.out)

    @property
    def data(self) -> Any:
        """The data of the JSON envelope on stdout."""
        return self.envelope["data"]


Tickets = Callable[..., Ran]


@pytest.fixture
def tickets(repository: Repository, capsys: pytest.CaptureFixture[str]) -> Tickets:
    """``tickets("list", "--severity", "P1")`` on the repository."""

    def command(name: str, *arguments: str) -> Ran:
        code = run([name, "--root", str(repository.root), *arguments])
        printed = capsys.readouterr()
        return Ran(code, printed.out, printed.err)

    return command
