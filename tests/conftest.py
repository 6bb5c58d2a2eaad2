"""What all tests share: a repository to write tickets into, and a server that measures."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from io import BytesIO, TextIOWrapper
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import settings
from jinja2 import Environment
from jinja2.sandbox import ImmutableSandboxedEnvironment

from finding_tickets.__main__ import main
from finding_tickets.cli import main as command_line
from finding_tickets.ground import cache as kept
from finding_tickets.measure.processes.isolation import PRELOADED, Isolation
from finding_tickets.register import load as loading
from finding_tickets.register.load import Register, load
from finding_tickets.register.staleness import CurrentVerdict

# Hundreds of tests start the tool: compiling it each time would take longer than most of them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# readline, which pytest loads, exports the width of some terminal, and COLUMNS counts in a pipe, too.
os.environ.pop("COLUMNS", None)
os.unsetenv("COLUMNS")
sys.dont_write_bytecode = False
# As where the tool measures: teams of threads wait for each other for ever where their number changes.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# How long an example takes depends on the machine, and the repository keeps no examples that failed.
settings.register_profile("quick", deadline=None, database=None, max_examples=20)
settings.register_profile("full", deadline=None, database=None, max_examples=40)
# A shell lets its background jobs ignore interrupts; the commands that tests interrupt must not inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

LONGEST = (
    "tests/executors/test_ray.py",
    "tests/cli/test_places.py",
    "tests/contract/test_evidence.py",
    "tests/test_faults.py",
    "tests/cli/test_check.py",
    "tests/test_tutorial.py",
    "tests/verify/test_environments.py",
    "tests/report/test_html_in_browser.py",
    "tests/contract/test_edits.py",
    "tests/benchmarks/test_suite.py",
    "tests/founding/test_audit.py",
    "tests/simcuda/test_truth.py",
    "tests/gpu/test_op_db.py",
    "tests/simcuda/test_op_db.py",
)
"""The files whose tests take longest, quick and slow, the longest first."""
MOST_WORKERS = 8
QUICK = "not slow"


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One worker for each processor, and one more where slow tests wait; at most 8.

    A few files run in this process, which starts sooner.
    """
    files = [argument for argument in config.args if Path(argument.partition("::")[0]).is_file()]
    if len(files) == len(config.args) < MOST_WORKERS:
        return 0
    usable = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    is_quick: bool = config.option.markexpr == QUICK
    return min(usable + (not is_quick), MOST_WORKERS)


def pytest_configure(config: pytest.Config) -> None:
    """Few examples for each property in the quick suite, many in all other runs."""
    settings.load_profile("quick" if config.option.markexpr == QUICK else "full")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Files that take long come first: the last one to begin should not keep the others waiting.

    Outside the quick suite properties count as slow: ``-m slow`` tries them with many examples.
    """
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))
    if config.option.markexpr == QUICK:
        return
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep what collecting tests loads, torch too, out of every garbage collection from then on."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


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

    def measured(self, ticket: str) -> CurrentVerdict:
        """What was measured of a ticket, as the register is now."""
        register = self.load()
        return register.measured(register.find(ticket))


def release_folders() -> None:
    """Use no folder of the cache any more that was made so far, as if this process had ended."""
    while kept._locks:
        os.close(kept._locks.popitem()[1])


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


Server = Callable[..., Isolation]
TEMPORARY = tempfile.gettempdir()
# What a server loads, whichever command starts it: beside torch all of this takes no time.
MEASURE = "finding_tickets.measure"
ALL_PRELOADED = (*PRELOADED, f"{MEASURE}.probe", f"{MEASURE}.recorded", "large_pages")
# The commands that start a server.
MEASURING = ("budget", "fix", "gate", "probe", "verify")


class SharedIsolation(Isolation):
    """A server that outlives the test that starts it, and so has no folder within that test's own."""

    def _start(self) -> subprocess.Popen[bytes]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TMPDIR", TEMPORARY)
            patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
            return super()._start()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """``server()`` is the one that measures for all tests; what it loads takes seconds.

    Where there are GPUs, there is another one for those that see others.
    """
    has_gpu = any(Path("/dev").glob("nvidia[0-9]*"))
    with ExitStack() as stack:

        @cache
        def start(_: str | None) -> Isolation:
            return stack.enter_context(SharedIsolation(ALL_PRELOADED, at_once=False))

        def choose() -> Isolation:
            return start(os.environ.get("CUDA_VISIBLE_DEVICES") if has_gpu else None)

        yield choose


@pytest.fixture
def isolation(server: Server) -> Isolation:
    """The server of the session; a test that harms it starts one of its own."""
    return server()


@pytest.fixture(scope="session", autouse=True)
def _commands_share_servers(server: Server) -> Iterator[None]:
    """A command that runs in this process measures on a server of the session, unless it needs its own."""

    @contextmanager
    def borrow() -> Iterator[Isolation]:
        yield server()

    def share(
        modules: Sequence[str] = PRELOADED,
        workers: int | None = None,
        *,
        at_once: bool = True,
    ) -> AbstractContextManager[Isolation]:
        return Isolation(modules, workers, at_once=at_once) if workers else borrow()

    with pytest.MonkeyPatch.context() as patch:
        # Commands that are loaded by now have the name, others will take it from its module.
        for name in ("measure.processes.isolation", *(f"cli.{command}" for command in MEASURING)):
            if module := sys.modules.get(f"finding_tickets.{name}"):
                patch.setattr(module, "Isolation", share)
        yield


class Ended(NamedTuple):
    """How a command line ended, and what it printed."""

    code: int
    out: str
    err: str


def run_here(root: Path, *words: str, environment: Mapping[str, str] | None = None, stdin: str = "") -> Ended:
    """Run ``tickets`` in the folder ``root`` as a process would, with ``environment`` alone if given.

    It runs in this process, on a server of the session: starting one takes longer than most measurements.
    """
    written = (BytesIO(), BytesIO())
    out, err = (TextIOWrapper(stream, encoding="utf-8") for stream in written)
    code = run_to(out, err, root, *words, environment=environment, stdin=stdin)
    return Ended(code, *(stream.getvalue().decode() for stream in written))


def run_to(
    out: TextIOWrapper,
    err: TextIOWrapper,
    root: Path,
    *words: str,
    environment: Mapping[str, str] | None = None,
    stdin: str = "",
) -> int:
    """The exit code of ``run_here``, whose output goes to these streams."""
    with pytest.MonkeyPatch.context() as patch:
        if environment is not None:
            for name in set(os.environ) - set(environment):
                patch.delenv(name)
            for name, value in environment.items():
                patch.setenv(name, value)
        patch.chdir(root)
        patch.setattr(sys, "argv", ["tickets", *words])
        patch.setattr(sys, "stdin", TextIOWrapper(BytesIO(stdin.encode()), encoding="utf-8"))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        # The program does without collection and expects to end.
        patch.setattr(gc, "freeze", lambda: None)
        code = 0
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
        finally:
            gc.enable()
    for stream in (out, err):
        stream.flush()
    return code


@pytest.fixture(scope="session", autouse=True)
def _templates_are_compiled_once() -> Iterator[None]:
    """Reports made in this process share what Jinja compiled, which takes longer than most reports."""
    compiled: dict[tuple[Any, ...], Any] = {}

    def compile_once(self: ImmutableSandboxedEnvironment, *source: Any) -> Any:
        if source not in compiled:
            compiled[source] = Environment.compile(self, *source)
        return compiled[source]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ImmutableSandboxedEnvironment, "compile", compile_once)
        yield


class SourceFile(NamedTuple):
    """A file of the tool, and its state when the tests began."""

    path: str
    state: os.stat_result

    def __str__(self) -> str:
        return self.path

    def stat(self) -> os.stat_result:
        """Return the state then: no code changes while tests run."""
        return self.state


class SourceFolder:
    """The files of the tool, of which every register that is loaded asks whether they are the same."""

    def __init__(self, folder: Path) -> None:
        self.files = [SourceFile(str(file), file.stat()) for file in folder.rglob("*.py")]

    def rglob(self, _: str) -> list[SourceFile]:
        """Return all files."""
        return self.files


@pytest.fixture(scope="session", autouse=True)
def _the_tool_stays_as_it_is() -> Iterator[None]:
    """What every command makes of the tool's own code, such as a parser of options, is made once."""
    made: dict[tuple[tuple[str, ...], bool], Any] = {}
    make = command_line.application

    def make_once(names: Iterable[str], *, load: bool = True) -> Any:
        wanted = (tuple(names), load)
        if wanted not in made:
            made[wanted] = make(wanted[0], load=load)
        return made[wanted]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command_line, "application", make_once)
        patch.setattr(loading, "_PACKAGE", SourceFolder(loading._PACKAGE))
        yield


@pytest.fixture(scope="session")
def _numbers() -> Iterator[int]:
    """1, 2, 3, ..."""
    return count(1)


@pytest.fixture
def tmp_path(_numbers: Iterator[int], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder; pytest's own looks through those of all tests before for a name that is free."""
    return tmp_path_factory.mktemp(f"test-{next(_numbers)}", numbered=False)


@pytest.fixture(autouse=True)
def _cache(
    _numbers: Iterator[int], tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No test sees what another one, or the user, has had read before."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / f"cache-{next(_numbers)}"))


@pytest.fixture(autouse=True)
def _distributions_are_checked() -> None:
    """Distributions check their arguments, which waits; a test that compiled something turned that off."""
    if torch := sys.modules.get("torch"):
        torch.distributions.Distribution.set_default_validate_args(True)
