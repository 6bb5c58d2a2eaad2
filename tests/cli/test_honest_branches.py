"""Honest branches pass the gate, and no more is measured than their inputs ask for."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from tests.cli.conftest import Ran
from tests.conftest import Git, Repository
from tests.verify.conftest import CLAIMS, FIX
from tests.verify.conftest import add_with_few_points as add

from finding_tickets.errors import ExitCode

Tickets = Callable[..., Ran]
NOTHING: set[str] = set()
READS = FIX.replace("import torch", "import torch\nfrom helper import scale").replace(
    ".item()", ".item() * scale()"
)
HELPER = """
import json
from pathlib import Path



def scale():
    return json.loads(Path(__file__).with_name("settings.json").read_text())["scale"]
"""


def commit(git: Git, message: str) -> None:
    """Commit everything."""
    git("add", "--all")
    git("commit", "--quiet", "-m", message)


def edit(repository: Repository, path: str, old: str, new: str) -> None:
    """Replace a text that a file has."""
    text = (repository.root / path).read_text(encoding="utf-8")
    assert old in text
    repository.write(path, text.replace(old, new))


class Branch:
    """What somebody does on a branch."""

    def __init__(self, repository: Repository, git: Git, tickets: Tickets) -> None:
        self.repository, self.git, self.tickets = repository, git, tickets
        self.root = repository.root

    def write(self, path: str, text: str | bytes) -> None:
        """Write a file."""
        self.repository.write(path, text)

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace a text that a file has."""
        edit(self.repository, path, old, new)

    def verify(self, *ids: str) -> None:
        """Measure again, and have new evidence."""
        assert self.tickets("verify", *ids).code == ExitCode.OK

    def on_main(self, path: str) -> None:
        """Let main go on meanwhile."""
        self.git("switch", "--quiet", "main")
        self.write(path, "main went on\n")
        commit(self.git, "main")
        self.git("switch", "--quiet", "work")


def rename_fix(at: Branch) -> None:
    """The function and the file of the fix have other names."""
    shutil.move(at.root / "fixes/a_1/fix.py", at.root / "src_fix.py")
    at.edit("src_fix.py", "def check", "def quick")
    block = "claims:"
    at.edit(
        "tickets/A-1.md", block, "variants: {found: fixes/a_1/found.py:check, fix: src_fix.py:quick}\nclaims:"
    )
    at.verify("A-1")


def merge_main(at: Branch) -> None:
    """Main is merged into the branch."""
    at.on_main("main.txt")
    at.write("mine.txt", "a\n")
    commit(at.git, "mine")
    at.git("merge", "--quiet", "--no-edit", "main")


def merge_twice(at: Branch) -> None:
    """Main and the branch were merged into each other."""
    at.git("switch", "--quiet", "main")
    at.write("main.txt", "a\n")
    commit(at.git, "main")
    at.git("tag", "-f", "was")
    at.git("switch", "--quiet", "work")
    at.write("mine.txt", "a\n")
    commit(at.git, "mine")
    at.git("switch", "--quiet", "main")
    at.git("merge", "--quiet", "--no-edit", "work")
    at.git("switch", "--quiet", "work")
    at.git("merge", "--quiet", "--no-edit", "was")


def rebase(at: Branch) -> None:
    """The branch is put on top of main."""
    at.write("mine.txt", "a\n")
    commit(at.git, "mine")
    at.on_main("main.txt")
    at.git("rebase", "--quiet", "main")


def submodule(at: Branch) -> None:
    """Code of others comes with the repository."""
    at.git("update-index", "--add", "--cacheinfo", f"160000,{at.git('rev-parse', 'HEAD').strip()},other")
    at.git("commit", "--quiet", "-m", "submodule")


def new_ticket(at: Branch) -> None:
    """A ticket with code, measured."""
    add(at.repository, "C-1", CLAIMS)
    at.verify("C-1")


def reworked(at: Branch, old: str, new: str) -> None:
    """The fix in other words, measured again."""
    at.edit("fixes/a_1/fix.py", old, new)
    at.verify("A-1")


def texts(path: str, text: str | bytes = "words\n") -> Callable[[Branch], None]:
    """A file that no ticket reads."""
    return lambda at: at.write(path, text)


def rework(old: str, new: str) -> Callable[[Branch], None]:
    """A change of the fix that keeps its costs."""
    return lambda at: reworked(at, old, new)


def ticket(old: str, new: str) -> Callable[[Branch], None]:
    """A change of a ticket's text."""
    return lambda at: at.edit("tickets/A-1.md", old, new)


def data(at: Branch) -> None:
    """Other settings are read by the fix, with evidence measured again."""
    at.write("settings.json", '{"scale": 1, "more": 2}\n')
    at.verify("B-1")


def helper(at: Branch) -> None:
    """A new module that the fix imports."""
    at.write(
        "tools.py", "import torch\n\nsums = lambda tensors: torch.stack([each.sum() for each in tensors])\n"
    )
    at.edit("fixes/a_1/fix.py", "torch.stack([tensor.sum() for tensor in tensors])", "sums(tensors)")
    at.edit("fixes/a_1/fix.py", "import torch", "import torch\nfrom tools import sums")
    at.verify("A-1")


def claims_tightened(at: Branch) -> None:
    """More is claimed, and holds."""
    at.edit("tickets/A-1.md", "fix: {syncs: 1,", "fix: {syncs: 1, h2d: 0,")
    at.verify("A-1")


def closed(at: Branch) -> None:
    """A verified ticket is closed as fixed."""
    at.edit("tickets/A-1.md", "`wont-fix`", "`fixed`")


BRANCHES: dict[str, tuple[Callable[[Branch], object], set[str]]] = {
    "a module": (texts("package/new.py", "x = 1\n"), NOTHING),
    "a test": (texts("tests/test_new.py", "def test_it(): ...\n"), NOTHING),
    "a link": (lambda at: (at.root / "link").symlink_to("code.py"), NOTHING),
    "a mode": (lambda at: (at.root / "fixes/a_1/fix.py").chmod(0o755), NOTHING),
    "a file that is gone": (lambda at: (at.root / "code.py").unlink(), NOTHING),
    "an open ticket": (lambda at: at.repository.ticket("C-1", status="open") and None, NOTHING),
    "a ticket": (new_ticket, NOTHING),
    "another title": (ticket("It waits", "It waits for the GPU"), NOTHING),
    "a comment": (rework("def check", "# It waits once.\ndef check"), {"A-1"}),
    "formatting": (rework("import torch\n", "import torch\n\n\n\n"), {"A-1"}),
    "another local name": (rework("tensor.sum() for tensor in", "each.sum() for each in"), {"A-1"}),
    "line ends": (rework("\n", "\r\n"), {"A-1"}),
    "a refactoring": (rework(".double().sum()", ".double().sum(dim=0)"), {"A-1"}),
    "a helper": (helper, {"A-1"}),
    "data that is read": (data, {"B-1"}),
    "claims": (claims_tightened, {"A-1"}),
    "a closed ticket": (closed, {"A-1"}),
    "a renamed fix": (rename_fix, {"A-1"}),
    "a merge": (merge_main, NOTHING),
    "merges of both": (merge_twice, NOTHING),
    "a rebase": (rebase, NOTHING),
    "a submodule": (submodule, NOTHING),
    "a verifier of nobody": (texts("verifiers/z_9.py", "x = 1\n"), NOTHING),
    "a name that is no ASCII": (texts("\u00fc \u65e5.txt"), NOTHING),
    "both measured again": (lambda at: at.verify("A-1", "B-1"), NOTHING),
}


@contextmanager
def branch(git: Git) -> Iterator[None]:
    """A branch of its own, and everything as before when it is done."""
    git("switch", "--quiet", "--create", "work")
    try:
        yield
    finally:
        git("add", "--all")
        git("reset", "--quiet", "--hard", "start")
        git("clean", "--quiet", "-ffdx")
        git("switch", "--quiet", "--force-create", "main", "start")
        git("branch", "--quiet", "-D", "work")


def start(repository: Repository, git: Git, tickets: Tickets) -> None:
    """Measure and commit all tickets, and keep that as what every branch starts from."""
    assert tickets("verify", "--all").code == ExitCode.OK
    repository.write(".gitignore", "__pycache__/\n")
    commit(git, "base")
    git("tag", "start")


def checked(git: Git, tickets: Tickets, name: str) -> tuple[int, set[str], str]:
    """Commit the branch, and return how the gate ends, what it measures, and what it says."""
    git("add", "--all")
    git("commit", "--quiet", "--allow-empty", "-m", name)
    ran = tickets("check", "--base", "main", "--format", "json")
    looked = {item["ticket"] for item in ran.data} if ran.out else set()
    return ran.code, looked, f"{ran.err}{ran.out[:1500]}"


@pytest.mark.slow
def test_honest_branches_pass(repository: Repository, git: Git, tickets: Tickets) -> None:
    """Each passes, and what is measured again is what its changes are about."""
    add(repository, "A-1", CLAIMS)
    add(repository, "B-1", CLAIMS, fix=READS)
    repository.write("helper.py", HELPER)
    repository.write("settings.json", '{"scale": 1}\n')
    start(repository, git, tickets)
    wrong: dict[str, tuple[int, set[str], str]] = {}
    for name, (work, measured) in BRANCHES.items():
        with branch(git):
            try:
                work(Branch(repository, git, tickets))
                ended = checked(git, tickets, name)
            except AssertionError as error:
                ended = 0, set(), str(error)
            if ended[:2] != (ExitCode.OK, measured):
                wrong[name] = ended
    assert {} == {name: ended[:2] for name, ended in wrong.items()}, [ended[2] for ended in wrong.values()]
