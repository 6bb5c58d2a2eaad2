"""What was read before is not read again, and nobody can tell but by the time it takes."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.conftest import Repository
from tests.lint.conftest import lint

from finding_tickets.documents import reading
from finding_tickets.documents.reading import read_document
from finding_tickets.ground.cache import cache_folder
from finding_tickets.ground.store import Store
from finding_tickets.lint.contradictions import CONTRADICTIONS, contradictions_of
from finding_tickets.register import load as loading
from finding_tickets.register.entries import Entry
from finding_tickets.register.files import State, is_settled
from finding_tickets.register.load import Register, load

SECOND = 10**9
LATER = 3 * SECOND
TABLES = ("\n## Related Findings\n\n- A-2: see there\n", "\n## Cross-Review: DRL\n\n**Verdict:** MAYBE\n")
FIXED = "## Resolution\n\n### Status: FIXED\n\nIt asks once.\n"
LIST = """
import json, sys
from pathlib import Path
opened = []
sys.addaudithook(lambda event, values: opened.append(str(values[0])) if event == "open" else None)
from finding_tickets.register.load import load
found = load(Path(sys.argv[1]))
tickets = [name for name in opened if name.endswith((".md", ".remediation.yaml"))]
print(json.dumps([[entry.id for entry in found.entries], tickets, sorted(sys.modules)]))
"""


@pytest.fixture
def register(repository: Repository) -> Repository:
    """Three tickets, one with a misspelt word, a file that is no document, and one that is no text."""
    repository.ticket("A-1", more=TABLES[0])
    repository.ticket("A-2", severity="dire", more=TABLES[1])
    repository.ticket("A-10", path="tickets/old/last.md", rows="| **Domain** | `a`, `b/c` |\n")
    repository.write("tickets/README.md", "# How we work\n")
    repository.write("tickets/bad.md", b"\xff")
    return repository


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the files that are read, in that order; all were written a while ago."""
    paths: list[str] = []
    actual, clock = read_document, time.time_ns

    def noting(data: bytes, path: str, *words: object) -> object:
        paths.append(path)
        return actual(data, path, *words)  # type: ignore[arg-type] # passed on as they come

    monkeypatch.setattr(reading, "read_document", noting)
    monkeypatch.setattr(time, "time_ns", lambda: clock() + LATER)
    return paths


Seen = tuple[list[Entry], list[tuple[str, str, str]]]


def truth(repository: Repository) -> Seen:
    """The entries and problems of a register that is read whole, these by file, rule and level."""
    return seen(load(repository.root, cached=False))


def seen(register: Register) -> Seen:
    """The same of a register."""
    return list(register.entries), sorted(
        (file, rule, level) for file, rule, level in register.problem_levels()
    )


def stored() -> Path:
    """The only store there is."""
    folder = cache_folder()
    assert folder is not None
    (file,) = (folder / loading.STORES).iterdir()
    return file


def test_a_listing_has_what_loading_has(register: Repository, read: list[str]) -> None:
    """Rows, in their order, and problems are those of the register, from files and from the index."""
    expected = truth(register)
    read.clear()
    assert ["A-1", "A-2", "A-10"] == [row.id for row in load(register.root).entries]
    assert 5 == len(read)
    assert expected == seen(load(register.root))
    assert 5 == len(read)


@pytest.mark.usefixtures("read")
def test_nothing_is_opened_or_imported_again(register: Repository) -> None:
    """With an index, a listing opens no ticket, and loads neither pydantic nor the Markdown parser."""
    load(register.root)
    line = [sys.executable, "-c", LIST, str(register.root)]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    ids, opened, modules = json.loads(done.stdout)
    assert (["A-1", "A-2", "A-10"], []) == (ids, opened)
    assert set() == {"pydantic", "pyromark", "yaml", "multiprocessing"} & set(modules)


def test_only_what_changed_is_read_again(register: Repository, read: list[str]) -> None:
    """A file with other bytes is read again, although its size and its time of modification are the same."""
    load(register.root)
    file = register.root / "tickets" / "A-1.md"
    before = file.stat()
    file.write_bytes(file.read_bytes().replace(b"It waits", b"It leaks"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (before.st_size, before.st_mtime_ns) == (file.stat().st_size, file.stat().st_mtime_ns)
    read.clear()
    assert "It leaks" == load(register.root).entries[0].title
    assert ["tickets/A-1.md"] == read


@pytest.mark.usefixtures("read")
def test_remediations_beside_their_tickets(register: Repository) -> None:
    """What stands in a file of its own is remembered with what is wrong in it, and read when it changes."""
    register.write("tickets/A-1.remediation.yaml", "verifier: verifiers/a.py\n")
    register.write("tickets/A-2.remediation.yaml", "verifier: [\n")
    register.write("tickets/A-3.remediation.yaml", "verifier: verifiers/of_nothing.py\n")
    assert "verifiers/a.py" == load(register.root).entries[0].verifier
    assert truth(register)[1] == seen(load(register.root))[1]
    line = [sys.executable, "-c", LIST, str(register.root)]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    _, opened, modules = json.loads(done.stdout)
    assert ([], set()) == (opened, {"pydantic", "pyromark", "yaml"} & set(modules))
    register.write("tickets/A-1.remediation.yaml", "verifier: verifiers/b.py\n")
    assert "verifiers/b.py" == load(register.root).entries[0].verifier


def test_a_fresh_file_is_not_kept(
    register: Repository, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What changed within the last tick of the clock may change once more unseen, so it is read each time."""
    file = register.root / "tickets" / "A-1.md"
    monkeypatch.setattr(time, "time_ns", lambda: file.stat().st_ctime_ns + 1)
    load(register.root)
    read.clear()
    load(register.root)
    assert "tickets/A-1.md" in read


@pytest.mark.parametrize(
    ("modified", "changed", "now", "settled"),
    [
        (100.123, 100.123, 100.173, False),  # exactly one tick of 50 ms
        (100.123, 100.123, 100.174, True),
        (100.123, 99.5, 100.15, False),
        (90.0, 100.123, 100.15, False),
        (100.0, 100.0, 102.0, False),  # times in whole seconds: a tick may be two
        (100.0, 100.0, 102.001, True),
        (500.0, 100.123, 101.0, True),  # a program set the time of modification
        (100.123, 500.123, 101.0, False),  # the clock was set back
    ],
)
def test_settled(modified: float, changed: float, now: float, settled: bool) -> None:
    """A state can be relied on once its file system's clock has ticked since, coarse as that may be."""
    state = State(1, 1, round(modified * 1000) * 10**6, round(changed * 1000) * 10**6)
    assert settled is is_settled(state, round(now * 1000) * 10**6)


def test_other_words_read_anew(register: Repository, read: list[str]) -> None:
    """With another vocabulary everything is read again, and what was read before does not count."""
    load(register.root)
    register.write("tickets.toml", 'severities = {P0 = ["dire"]}\n')
    read.clear()
    assert "P0" == load(register.root).entries[1].severity
    assert 5 == len(read)
    load(register.root)
    assert 5 == len(read)


def damages() -> Iterator[Callable[[bytes], bytes]]:
    """Ways in which a file may be damaged: emptied, cut, overwritten, and bytes changed here and there."""
    yield lambda _: b""
    yield lambda _: b"# not a database\n" * 100
    yield lambda data: data[: len(data) // 2]
    yield lambda data: data[:100] + b"\0" * (len(data) - 100)
    yield lambda data: data[:4096] + data[8192:]

    def with_changes(chance: random.Random) -> Callable[[bytes], bytes]:
        def changed(data: bytes) -> bytes:
            new = bytearray(data)
            for _ in range(chance.choice((1, 3, 30))):
                new[chance.randrange(len(new))] = chance.randrange(256)
            return bytes(new)

        return changed

    # Of what is kept a checksum finds them all, of the database sqlite most.
    for seed in range(30):
        yield with_changes(random.Random(seed))  # noqa: S311 - chance, not secrecy


def test_a_damaged_index(register: Repository, read: list[str]) -> None:
    """Whatever happened to the file of the index, listings are right, and soon they have an index again."""
    expected = truth(register)
    load(register.root)
    file = stored()
    sound = file.read_bytes()
    for damage in damages():
        file.write_bytes(damage(sound))
        assert expected == seen(load(register.root))
        assert expected == seen(load(register.root))
        read.clear()
        assert expected == seen(load(register.root))
        assert [] == read


def test_a_folder_that_cannot_be_written(
    register: Repository, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing can be kept, everything is read each time."""
    for folder in (register.root / "code.py", Path("/proc")):
        monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
        expected = truth(register)
        read.clear()
        assert expected == seen(load(register.root)) == seen(load(register.root))
        assert 10 == len(read)


@pytest.mark.slow
def test_a_full_disk(register: Repository) -> None:
    """Where the index does not fit on the disk, listings do without it and leave nothing that misleads."""
    code = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n" + LIST
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-B", "-c", code, str(register.root)],
            capture_output=True,
            text=True,
            check=True,
        )
        assert ["A-1", "A-2", "A-10"] == json.loads(done.stdout)[0]
    assert truth(register) == seen(load(register.root))


@pytest.mark.slow
def test_many_at_once(register: Repository) -> None:
    """Processes that list the same register at the same time, with no index before, all list it right."""
    for number in range(20, 60):
        register.ticket(f"A-{number}")
    entries, _ = truth(register)
    line = [sys.executable, "-c", LIST, str(register.root)]
    started = [subprocess.Popen(line, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    printed = [process.communicate(timeout=60)[0] for process in started]
    assert [[entry.id for entry in entries]] * 6 == [json.loads(text)[0] for text in printed]
    assert truth(register) == seen(load(register.root))


def test_changed_code_reads_anew(
    register: Repository, read: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nothing counts that other code has read: that of claims too, and modules of one name are told apart."""
    for room in ("claims", "documents", "ground", "lint/rules", "model", "register"):
        (tmp_path / "package" / room).mkdir(parents=True)
    package = tmp_path / "package"
    documents, relations = package / "documents" / "relations.py", package / "register" / "relations.py"
    claims = package / "claims" / "language.py"
    for file in (claims, documents, relations):
        file.write_text("# short\n" if file is documents else "# a longer line\n")
        os.utime(file, (1, 1))
    monkeypatch.setattr(loading, "_PACKAGE", package)

    def files_read() -> int:
        read.clear()
        load(register.root)
        return len(read)

    assert [5, 0] == [files_read(), files_read()]
    claims.write_text("# other\n")
    assert [5, 0] == [files_read(), files_read()]
    # The same two names, sizes and times, each in the place of the other.
    documents.rename(tmp_path / "kept")
    relations.rename(documents)
    (tmp_path / "kept").rename(relations)
    assert [5, 0] == [files_read(), files_read()]


@pytest.mark.usefixtures("read")
def test_contradictions_are_those_of_lint_and_kept(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report gets what lint says of these rules; the second time no document is made for that."""
    repository.ticket("A-1", more=FIXED)
    repository.ticket("A-2", path="tickets/fixed/A-2.md", status="open")
    repository.ticket("A-3", more=f"<!-- lint-ignore contradiction: the folder says it -->\n\n{FIXED}")
    repository.ticket("A-4")
    expected = [(each.file, each.rule) for each in lint(repository.load()) if each.rule in CONTRADICTIONS]
    assert [("tickets/A-1.md", "contradiction"), ("tickets/fixed/A-2.md", "folder")] == expected
    for number in range(2):
        register = load(repository.root)
        if number:
            monkeypatch.setattr(register, "document", None)
        told = {entry.id: contradictions_of(register, entry) for entry in register.entries}
        register.save()
        assert expected == [(each["file"], each["rule"]) for found, _ in told.values() for each in found]
        assert ["contradiction"] == list(told["A-3"][1])


@pytest.mark.usefixtures("read")
def test_documents_are_those_of_their_files(register: Repository) -> None:
    """From the store, one by one or all at once, and with the remediation beside them."""
    register.write("tickets/A-1.remediation.yaml", "claims: {fix: {syncs: 1}}\n")
    expected = load(register.root, cached=False).documents
    assert expected[0].remediation
    load(register.root)
    assert expected == load(register.root).documents
    warm = load(register.root)
    assert expected == tuple(map(warm.document, warm.entries))
    assert load(register.root, cached=False).problems == warm.problems


def test_a_store_of_another_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it counts, and it is emptied; only so many stores stay."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    Store("x", "a", "one", 2).write("k", {"p": ("s", b"v")})
    assert {"p": ("s", b"v")} == Store("x", "a", "one", 2).read("k")
    assert {} == Store("x", "a", "two", 2).read("k")
    assert {} == Store("x", "a", "one", 2).read("k")
    for name in "bcd":
        Store("x", name, "one", 2).write("k", {"p": ("s", b"v")})
    assert 2 == len(list((tmp_path / "finding-tickets/x").iterdir()))
