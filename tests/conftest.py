"""What all tests share: a repository to write tickets into, and a server that measures."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from finding_tickets.measure.isolation import Isolation
from finding_tickets.register.load import Register, load

# Hundreds of tests start the tool: compiling it each time would take longer than most of them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# How long an example takes depends on the machine, and the repository keeps no examples that failed.
settings.register_profile("quick", deadline=None, database=None, max_examples=20)
settings.register_profile("full", deadline=None, database=None)
# A shell lets its background jobs ignore interrupts; the commands that tests interrupt must not inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

MOST_WORKERS = 8
QUICK = "not slow"


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One worker for each processor, at most 8; a few files run in this process, which starts sooner."""
    files = [argument for argument in config.args if Path(argument.partition("::")[0]).is_file()]
    if len(files) == len(config.args) < MOST_WORKERS:
        return 0
    usable = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return min(usable, MOST_WORKERS)


def pytest_configure(config: pytest.Config) -> None:
    """Few examples for each property in the quick suite, many in all other runs."""
    settings.load_profile("quick" if config.option.markexpr == QUICK else "full")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Outside the quick suite properties count as slow: ``-m slow`` tries them with many examples."""
    if config.option.markexpr == QUICK:
        return
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.slow)


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


@pytest.fixture(scope="session")
def server() -> Iterator[Callable[[], Isolation]]:
    """The server of the session, which takes seconds to load torch; another one sees other GPUs."""
    with ExitStack() as stack:
        start = cache(lambda _: stack.enter_context(Isolation(at_once=False)))
        yield lambda: start(os.environ.get("CUDA_VISIBLE_DEVICES"))


@pytest.fixture
def isolation(server: Callable[[], Isolation]) -> Isolation:
    """The server of the session; a test that harms it starts one of its own."""
    return server()


@pytest.fixture(autouse=True)
def _commands_share_the_server(server: Callable[[], Isolation], monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that runs in this process measures on the server of the session if the usual one will do."""

    def share(
        preload: Sequence[str] = (), /, *, at_once: bool = True, **options: Any
    ) -> AbstractContextManager[Isolation]:
        if preload:
            return Isolation(preload, at_once=at_once, **options)
        return Isolation(at_once=at_once, **options) if any(options.values()) else nullcontext(server())

    monkeypatch.setattr("finding_tickets.measure.isolation.Isolation", share)


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees what another one, or the user, has had read before."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
