"""The harness of the contract: a runner of command lines, two registers, and frozen expectations.

``python -m pytest tests/contract -m "" -n 0 --update-contract`` writes the expectations anew; README.md says
when.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import run_here

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared"
DATA = Path(__file__).parent / "data"
WAITING = {"drains", "stream_syncs", "event_syncs", "device_syncs", "implicit_syncs", "hazards"}
WAITING |= {"h2d", "d2h", "d2d", "p2p"}
WORDING = {"message", "hint", "reason", "step"}
"""Keys whose values the tool words: they may become clearer at any time."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that freezes the behaviour of now."""
    parser.addoption("--update-contract", action="store_true", help="write tests/contract/data anew")


def digest(value: object) -> str:
    """The first 16 digits of the SHA-256 of bytes, or of the canonical JSON of anything else."""
    if not isinstance(value, bytes):
        value = json.dumps(value, sort_keys=True, ensure_ascii=False).encode()
    return hashlib.sha256(value).hexdigest()[:16]


def wordless(value: Any, *more: str) -> Any:
    """JSON without what the tool words, and without the keys ``more``; of gaps, where they are."""
    if isinstance(value, list):
        return [wordless(item, *more) for item in value]
    if isinstance(value, dict):
        shown = {key: wordless(it, *more) for key, it in value.items() if key not in WORDING.union(more)}
        if isinstance(shown.get("gaps"), list):
            shown["gaps"] = [
                wordless(gap, "why") if isinstance(gap, dict) else "a gap" for gap in shown["gaps"]
            ]
        return shown
    return value


def measured(verification: Any) -> Any:
    """A measurement as JSON has it: verdict, claims, laws and sites in full, the samples as a digest."""
    shown = wordless(verification)
    for variant in shown["variants"].values():
        variant["samples"] = digest(variant["samples"])
    return shown


def recorded(verification: Any) -> Any:
    """What evidence has of a measurement: no samples, one counterexample, the lines that wait or copy."""
    shown = measured(verification)
    for claim in shown["claims"]:
        del claim["counterexamples"][1:]
    for variant in shown["variants"].values():
        del variant["samples"]
        sites = [site for site in variant["sites"] if site["what"] in WAITING]
        variant["sites"] = sorted(sites, key=lambda site: (site["file"], site["line"], site["what"]))
    return shown


def undated(text: str) -> str:
    """A text in which TODAY stands for the date of today."""
    return text.replace(datetime.now().astimezone().date().isoformat(), "TODAY")


def differences(frozen: Any, now: Any, path: str = "") -> Iterator[str]:
    """The places at which two JSON values differ, one line each."""
    if isinstance(frozen, dict) and isinstance(now, dict):
        for key in {**frozen, **now}:
            yield from differences(frozen.get(key, "(absent)"), now.get(key, "(absent)"), f"{path}/{key}")
    elif isinstance(frozen, list) and isinstance(now, list) and len(frozen) == len(now):
        for index, (one, other) in enumerate(zip(frozen, now, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif frozen != now:
        yield f"{path}: frozen {json.dumps(frozen)[:300]}, now {json.dumps(now)[:300]}"


@dataclass(frozen=True)
class Frozen:
    """Compares values with those that ``data/`` keeps, or keeps them."""

    update: bool

    def __call__(self, name: str, section: str, value: object) -> None:
        """Fail where ``value`` is not what ``section`` of ``data/NAME.json`` says; the diff is by place."""
        file = DATA / f"{name}.json"
        sections = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        now = json.loads(json.dumps(value))
        if self.update:
            text = json.dumps({**sections, section: now}, indent=1, ensure_ascii=False, sort_keys=True)
            file.write_text(text + "\n", encoding="utf-8")
            return
        assert section in sections, f"{file.name} has no {section!r}; --update-contract freezes it"
        found = list(differences(sections[section], now))
        more = f"\n  ... and {len(found) - 40} more" if len(found) > 40 else ""
        assert not found, f"{file.name}, {section}:\n  " + "\n  ".join(found[:40]) + more


@pytest.fixture(scope="session")
def frozen(pytestconfig: pytest.Config) -> Frozen:
    """``frozen("documents-own", "list", value)`` compares with the data, or writes them."""
    return Frozen(update=pytestconfig.getoption("update_contract", default=False))


@dataclass(frozen=True)
class Answer:
    """How a command line ended, and what it printed, with TODAY for today's date."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """The data of the JSON envelope on stdout."""
        assert self.out.startswith("{"), f"exit code {self.code}: {self.err}"
        return json.loads(self.out)["data"]


@dataclass(frozen=True)
class Tool:
    """Runs ``tickets`` as nobody's but the tests' own user, with a cache of its own."""

    environment: dict[str, str]

    def __call__(self, root: Path, *words: str, stdin: str = "") -> Answer:
        """Run a command line in this process, in the folder ``root``."""
        code, *printed = run_here(root, *words, environment=self.environment, stdin=stdin)
        return Answer(code, *map(undated, printed))

    def git(self, root: Path, *words: str, day: str = "2026-01-02") -> str:
        """Run git, which has to succeed, as Ada at noon of a day."""
        dates = {f"GIT_{role}_DATE": f"{day}T12:00:00+0000" for role in ("AUTHOR", "COMMITTER")}
        command = ["git", "-C", str(root), *words]
        environment = self.environment | dates
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout

    def commit(self, root: Path, message: str, day: str = "2026-01-02") -> str:
        """Commit all that is in a folder, which becomes a repository if need be; the hash."""
        if not (root / ".git").exists():
            self.git(root, "init", "--quiet", "--initial-branch=main")
        self.git(root, "add", "--all")
        self.git(root, "commit", "--quiet", "--allow-empty", "--message", message, day=day)
        return self.git(root, "rev-parse", "HEAD").strip()


@pytest.fixture(scope="session")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Tool:
    """``tool(root, "list", "--format", "json")`` runs a command line."""
    home = tmp_path_factory.mktemp("home")
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    person = {
        f"GIT_{role}_{key}": value
        for role in ("AUTHOR", "COMMITTER")
        for key, value in {"NAME": "Ada", "EMAIL": "ada@home"}.items()
    }
    own = {
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "CUDA_VISIBLE_DEVICES": "",
        "NO_COLOR": "1",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
    }
    return Tool(kept | person | own)


@pytest.fixture(scope="session")
def torch_of_the_data() -> str:
    """The version of torch, whose counts the data have; with another one there is nothing to compare."""
    torch = version("torch").partition("+")[0]
    if not list((ROOT / "evidence").rglob(f"*-torch{torch}-*.json")):
        pytest.skip(f"there is no evidence of torch {torch}")
    return torch


@pytest.fixture(scope="session")
def own(tool: Tool, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of this repository's register with what it measures, in git."""
    root = tmp_path_factory.mktemp("own") / "register"
    for folder in ("tickets", "fixes", "verifiers", "evidence", "templates"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    tool.commit(root, "The register")
    return root


@pytest.fixture(scope="session")
def shared(tool: Tool, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A register of the documents that the project grew from, in the folders they were filed under."""
    if not (SHARED / "corpus").is_dir():
        pytest.skip("there are no documents in ../shared")
    root = tmp_path_factory.mktemp("shared") / "register"
    shutil.copytree(SHARED / "corpus", root / "findings/corpus")
    shutil.copytree(SHARED / "seeds", root / "findings/seeds")
    for path in root.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    (root / "findings/corpus/LICENSE").unlink()
    (root / "tickets.toml").write_text('tickets = "findings"\n', encoding="utf-8")
    tool.commit(root, "The register")
    return root


@pytest.fixture(scope="session")
def forms(tool: Tool, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A register of documents in the forms that docs/tickets.md lists."""
    root = tmp_path_factory.mktemp("forms") / "register"
    shutil.copytree(DATA / "forms", root / "tickets")
    tool.commit(root, "The register")
    return root


@pytest.fixture(scope="session")
def irregular(tool: Tool, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A register of documents in every form that is read, most of them broken in some place."""
    root = tmp_path_factory.mktemp("irregular") / "register"
    (root / "tickets").mkdir(parents=True)
    texts = json.loads((DATA / "irregular-documents.json").read_text(encoding="utf-8"))
    for number, text in enumerate(texts):
        (root / f"tickets/{number:03}.md").write_bytes(text.encode("latin-1"))
    tool.commit(root, "The register")
    return root
