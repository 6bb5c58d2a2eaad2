"""A repository to test with: tickets written into an empty folder."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings

from finding_tickets.register.load import Register, load

# How long an example takes says something of the machine; what failed once is no part of the repository.
settings.register_profile("tickets", deadline=None, database=None)
settings.load_profile("tickets")
# What a shell runs in the background ignores interrupts, and so would the commands that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

TICKET = """\
# Finding Ticket: {title}

## Ticket Metadata

| Field | Value |
|-------|-------|
| **Ticket ID** | `{ticket_id}` |
| **Severity** | `{severity}` |
| **Status** | `{status}` |
{rows}
## Location

| Field | Value |
|-------|-------|
| **File(s)** | `{file}` |

## Summary

**One-line summary:** It waits.

- [x] Performance bottleneck
- [ ] Numerical stability

## Verification

- [ ] Count the waits

{more}
"""


@dataclass(frozen=True)
class Repository:
    """A folder with a register, and what tests write into it."""

    root: Path

    def write(self, path: str, text: str | bytes) -> Path:
        """Write a file at ``path`` from the root."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file

    def ticket(
        self,
        ticket_id: str = "B1-PT-01",
        *,
        path: str | None = None,
        title: str = "It waits",
        severity: str = "P2",
        status: str = "wont-fix",
        rows: str = "",
        file: str = "code.py",
        more: str = "",
    ) -> Path:
        """Write a ticket that breaks no rule, but for what the arguments change; ``more`` goes at its end."""
        text = TICKET.format(
            ticket_id=ticket_id,
            title=title,
            severity=severity,
            status=status,
            rows=rows,
            file=file,
            more=more,
        )
        return self.write(path or f"tickets/{ticket_id}.md", text)

    def load(self) -> Register:
        """The register as it is now."""
        return load(self.root)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository with one source file and no ticket."""
    made = Repository(tmp_path)
    made.write("code.py", "def slow(): ...\n")
    (tmp_path / "tickets").mkdir()
    return made


Git = Callable[..., str]


@pytest.fixture
def git(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> Git:
    """Runs git in the repository, which becomes one of git's too, as nobody's but the tests' own user.

    ``git("commit", "-m", "...", who="Ada", when="2026-01-02")`` commits as somebody at a time.
    """
    # Neither the settings of whoever runs the tests nor a hook that runs them take part.
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)

    def run(*arguments: str, who: str = "Ada", when: str = "2026-01-02") -> str:
        roles = ("AUTHOR", "COMMITTER")
        person = {f"GIT_{role}_NAME": who for role in roles} | {
            f"GIT_{role}_EMAIL": f"{who}@a" for role in roles
        }
        dates = {f"GIT_{role}_DATE": f"{when}T12:00:00+0000" for role in roles}
        command = ["git", "-C", str(repository.root), *arguments]
        environment = {**os.environ, **person, **dates}
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout

    run("init", "--quiet", "--initial-branch=main")
    return run


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees what another one, or the user, has had read before."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
