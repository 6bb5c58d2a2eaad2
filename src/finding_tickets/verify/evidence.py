"""Recorded verifications: one deterministic file for each ticket and environment, and whether it still holds.

A file is an in-toto Statement with the test-result predicate, https://github.com/in-toto/attestation: the
subjects are the variants in the work tree, the configuration is everything else that the result depends on.
What the predicate has no key for stands beside its own ones: the whole verification, and a digest by which an
edit of the file is found out.
"""

from __future__ import annotations

import ast
import errno
import os
import re
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError
from finding_tickets.ground import __version__
from finding_tickets.ground.files import replace, safe_name
from finding_tickets.ground.imports import ABSENT, TOOL_PACKAGES, answer, reach, value_of
from finding_tickets.measure.tasks import TOOL as TOOL_FOLDERS
from finding_tickets.model.verification import Evidence, Input, Verification
from finding_tickets.register.files import LARGEST_DIGEST, UNREADABLE, DiskFiles
from finding_tickets.register.intoto import (
    NO_STATEMENT,
    NoStatementError,
    input_of,
    read_statement,
    resource,
    write_statement,
)
from finding_tickets.register.staleness import (
    BUILT_IN,
    OWN_PYTHON,
    PYTHON,
    REMEDIATION,
    SITE,
    TOOL,
    TORCH,
    CurrentVerdict,
    Verdicts,
    code_inputs,
    distributions,
    is_below,
    normal,
    package_value,
    shadows,
    stem_of,
)
from finding_tickets.verify.plan import Plan

if TYPE_CHECKING:
    from finding_tickets.measure.processes.isolation import TaskOutcome

MOST_FILES, MOST_CLOCKS, MOST_NAMED = 10_000, 100, 3
# What finds modules first asks for an extension module of one Python.
_CANDIDATE = re.compile(r"(?:/__init__)?\.(?:cpython|pypy|cp)[^/.]*\.(?:so|pyd)$")
_SUFFIX = re.compile(r"(?:/__init__)?(?:(?:\.(?:cpython|pypy|cp)[^/.]*|\.abi3)?\.(?:so|pyd)|\.py)$")
_NO_FILE = re.compile(r"^\.git(/|$)|(^|/)<(unknown|string)>$")
_BYTECODE = re.compile(r"(^|/)__pycache__(/|$)|\.pyc$")
_CACHED = re.compile(r"__pycache__/([^/.]+)\.[^/]*\.pyc$")
_IMPORTS = re.compile(
    rb"^[ \t]*(?:from[ \t]+(\w[\w.]*)[ \t]+import\b|import[ \t]+(\w[\w., \t]*))", re.MULTILINE
)
_STANDARD = re.compile(r"/lib(?:64)?/(?:python|pypy|libpython)3[.\d]*[/.]")
# What the system is made of, and what libraries ask it about the machine, its users and their own process.
_SYSTEM = re.compile(
    r"/(usr|bin|sbin|lib\w*)(/|$)|/etc/(ld\.so|local|nsswitch|passwd|group|host|resolv|ssl|os-release"
    r"|inputrc|gitconfig|mime|terminfo)"
    r"|/proc/(self|thread-self|\d+|driver|sys)(/|$)|/proc/(cpuinfo|meminfo|stat|filesystems|mounts)$"
    r"|/sys/(devices|fs|module|class|kernel|bus)(/|$)|/dev/(null|zero|full|u?random|tty|nvidia|fd|std|pts)"
)
# They are known by their versions.
_KNOWN = {TORCH, "torchgen", "functorch", TOOL}
# Torch's wheels for CUDA pin and import it, those for the CPU do not have it: one torch, the same evidence.
_BROUGHT_BY_TORCH = {"triton"}
_CLOCK = {"time", "datetime", "date"}
_READINGS = frozenset(
    (
        *("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "now", "utcnow"),
        *("today", "localtime", "gmtime", "ctime", "strftime"),
    )
)


def dump(evidence: Evidence) -> bytes:
    """The bytes of a Statement; the same evidence gives the same bytes."""
    claims = evidence.verification.claims
    failed = [claim.id for claim in claims if claim.is_surprise]
    is_passed = bool(claims) and all(claim.as_expected for claim in claims)
    # Operations are never kept.
    exclude: dict[str, Any] = {"variants": {name: {"operations"} for name in evidence.verification.variants}}
    if not evidence.verification.clock:
        exclude["clock"] = True
    predicate: dict[str, Any] = {
        "result": "FAILED" if failed else "PASSED" if is_passed else "WARNED",
        "configuration": [resource(each) for each in evidence.inputs if not each.is_subject],
        "passedTests": [claim.id for claim in claims if claim.as_expected],
        "warnedTests": [claim.id for claim in claims if claim.holds is None],
        "failedTests": failed,
        "verification": evidence.verification.model_dump(mode="json", exclude=exclude),
    }
    return write_statement((resource(each) for each in evidence.inputs if each.is_subject), predicate)


def load(content: bytes) -> Evidence:
    """The evidence in a Statement.

    Raises:
        NoStatementError: It is none, or it was edited.
    """
    statement = read_statement(content)
    try:
        predicate = statement["predicate"]
        inputs = [
            {"name": name, "kind": kind, "value": value, "is_subject": is_subject}
            for place, is_subject in ((statement["subject"], True), (predicate["configuration"], False))
            for name, kind, value in map(input_of, place)
        ]
        return Evidence.model_validate({"inputs": inputs, "verification": predicate["verification"]})
    except ValidationError as error:
        wrong = error.errors()[0]
        place = ".".join(str(part) for part in wrong["loc"] if part != "verification")
        raise NoStatementError(f"{place}: {wrong['msg']}") from None
    except (LookupError, TypeError, AttributeError):
        raise NoStatementError(NO_STATEMENT) from None


def name_of(verification: Verification) -> str:
    """The file of a verification within the folder of evidence."""
    name = safe_name(f"{verification.meter}-torch{verification.torch}-{verification.device}")
    return f"{safe_name(verification.ticket)}/{name}.json"


def write(evidence: Evidence, root: Path, folder: str) -> None:
    """Record evidence, aside and then in one step; a file that already says the same is not touched.

    Raises:
        OSError: The file cannot be written.
    """
    file = root / folder / name_of(evidence.verification)
    if not Path(os.path.realpath(file)).is_relative_to(os.path.realpath(root)):
        raise OSError(errno.EXDEV, "the link leaves the repository", str(file))
    content = dump(evidence)
    if not file.is_file() or file.read_bytes() != content:
        file.parent.mkdir(parents=True, exist_ok=True)
        replace(file, content, mode=0o644)


def read(ticket: str, root: Path, folder: str) -> list[Evidence]:
    """All evidence on a ticket in the work tree; that of real GPUs first.

    Raises:
        BadDataError: A file is not what ``write`` writes.
    """
    recorded = []
    for file in sorted((root / folder / safe_name(ticket)).glob("*.json")):
        try:
            recorded.append(load(file.read_bytes()))
        except (OSError, NoStatementError) as error:
            raise BadDataError(
                f"is no evidence: {error}",
                file=file.relative_to(root).as_posix(),
                hint="restore it, or remove it and verify again",
            ) from None
    return sorted(recorded, key=lambda evidence: evidence.verification.meter != "cuda")


def current_verdict(document: Document, root: Path, folder: str = "evidence") -> CurrentVerdict:
    """The verdict on a document from its evidence in ``folder``; nothing that it speaks of is imported.

    Raises:
        BadDataError: A file of evidence cannot be read, or was edited.
    """
    return Verdicts(root, folder).current(document.id.value, code_inputs(document.remediation))


@dataclass(frozen=True)
class RestsOn:
    """The inputs of runs, first those of a repository, and what else they rest on, in a few words each."""

    repository: tuple[Input, ...] = ()
    environment: tuple[Input, ...] = ()
    unseen: tuple[str, ...] = ()
    clock: tuple[str, ...] = ()  # the files that read it


def inputs(planned: Plan, document: Document, done: Verification, rests: RestsOn) -> tuple[Input, ...]:
    """What a verification depends on: versions of what measures, the Remediation section, commits and code.

    Code at a revision is known by its commit.
    """
    subjects = set(planned.files) - {planned.verifier}
    revisions = {str(revision): revision.commit for revision in planned.revisions.values()}
    remediation = document.remediation.digest if document.remediation else ABSENT
    return (
        Input(name=TOOL, kind="version", value=__version__),
        Input(name=TORCH, kind="version", value=done.torch),
        *rests.environment,
        Input(name=REMEDIATION, kind="file", value=remediation),
        *(Input(name=name, kind="commit", value=revisions[name]) for name in sorted(revisions)),
        *(
            each.model_copy(update={"is_subject": each.kind == "file" and each.name in subjects})
            for each in rests.repository
        ),
    )


def rests_on(
    outcomes: Iterable[TaskOutcome], planned: Plan, root: Path, elsewhere: Collection[str]
) -> RestsOn:
    """What the runs of a plan rest on, in the repository at ``root`` and outside of it.

    ``elsewhere`` are folders that are known otherwise, such as those of revisions.
    """
    used = _UsedFiles(root, elsewhere)
    is_watched = False
    for outcome in outcomes:
        is_watched |= bool(outcome.accesses)
        used.unseen |= dict.fromkeys(outcome.unseen)
        written = set[str]()
        for access in outcome.accesses:
            if access.how == "written":
                written.add(access.path)
            used.add(access.path, access.how, access.state, is_own=access.path in written)
    # The verifier may come from another folder than the code.
    places = {file: planned.verifiers if file == planned.verifier else planned.root for file in planned.files}
    used.files = {**{file: None for file in places if places[file] == root}, **used.files}
    if not is_watched:
        # Nobody saw what was imported: all that could be counts.
        def read_text(path: str) -> bytes | None:
            return (root / path).read_bytes() if (root / path).is_file() else None

        for path in reach(read_text, used.files, planned.modules):
            used.stems.add(stem_of(path))
            if (root / path).is_file():
                used.files.setdefault(path)
    return used.summary()


class _UsedFiles:
    """What runs have used, by its path from ``root``, or by its absolute path."""

    def __init__(self, root: Path, elsewhere: Collection[str]) -> None:
        self.root, self.elsewhere = root, elsewhere
        self.files: dict[str, tuple[int, int] | None] = {}  # with their states when first read
        self.inside: dict[str, set[str]] = defaultdict(set)  # what else was done in the repository, by how
        self.packages: dict[tuple[str, str], dict[str, bool]] = defaultdict(dict)
        self.stems, self.outside, self.code = set[str](), set[str](), set[str]()
        self.unseen: dict[str, None] = {}
        # Not those of the standard library, and not that of the program.
        entries = {each for each in sys.path if each} - {os.path.dirname(sys.executable)}  # noqa: PTH120
        sites = {
            each
            for each in entries
            if SITE.search(f"{each}/") or not (is_below(each, str(self.root)) or _STANDARD.search(f"{each}/"))
        }
        self._sites = sorted({each for site in sites for each in (site, os.path.realpath(site))}, key=len)
        self._tool = tuple(f"{each(folder)}/" for folder in TOOL_FOLDERS for each in (str, os.path.realpath))

    def add(self, path: str, how: str, state: tuple[int, int] | None, *, is_own: bool) -> None:
        """Note a use of an absolute path; ``is_own`` where the run has written there before."""
        if f"{path}/".startswith(self._tool):
            return
        # Folders may be within each other.
        near = (folder for folder in (str(self.root), *self.elsewhere) if is_below(path, folder))
        nearest = max(near, key=len, default="")
        is_inside = nearest == str(self.root)
        site = next((each for each in reversed(self._sites) if is_below(path, each)), "")
        if (match := SITE.search(path)) and not is_inside:
            site = site or path[: match.end() - 1]
        name = path[len(nearest) + 1 :]
        is_used = state and how in {"read", "ran", "loaded"}
        if site and (not is_inside or is_below(site, str(self.root))):
            if is_used:
                name = path[len(site) + 1 :]
                source = _CACHED.sub(r"\1.py", name)
                name = source if os.path.isfile(f"{site}/{source}") else name  # noqa: PTH113 - of thousands
                files = self.packages[site, name.partition("/")[0].removesuffix(".py")]
                files[name] = files.get(name, False) or how != "loaded"
        elif nearest and not is_inside:
            self.code |= {path} if path.endswith(".py") else set()
        elif not nearest:
            is_known = is_own or _SYSTEM.match(path) or _STANDARD.search(path)
            self.outside |= {path} if is_used and not is_known and not Path(path).is_dir() else set()
        # Python names code without a file so, and looks for it in the folder that it runs in.
        elif _NO_FILE.search(name) or not name.isprintable():
            return
        elif _BYTECODE.search(name):
            self.unseen |= {f"bytecode in the repository: {name}": None} if how == "read" and state else {}
        elif how in {"written", "listed"} or (how in {"linked", "looked"} and not is_own):
            self.inside[how].add(name)
            if how == "looked" and (candidate := _CANDIDATE.search(name)):
                self.stems.add(name[: candidate.start()])
        elif is_used and not is_own:
            # Of a file that was edited between two runs nobody can say which one was measured.
            self.files[name] = state if self.files.get(name, state) in {state, None} else (-1, 0)

    def summary(self) -> RestsOn:
        """The inputs, sorted, and what is to be said of the rest."""
        disk, everything = DiskFiles(self.root), DiskFiles(Path("/"))
        looked, folders, written = (self.inside[how] for how in ("looked", "listed", "written"))
        tops, own, clocks = set[str](), set[str](), set[str]()
        places = {f"{self.root}/{path}": True for path in self.files} | dict.fromkeys(self.code, True)
        for (site, _), files in self.packages.items():
            for name, is_read in files.items():
                if is_read:
                    places.setdefault(f"{site}/{name}", False)
        for place, is_own in places.items():
            text = b""
            if place.endswith(".py"):
                with suppress(OSError):
                    text = Path(place).read_bytes()
            names, reads_clock = _imports_and_clock(text)
            tops |= set(names)
            if is_own:
                own |= set(names)
                self.stems |= {*names, *map("src/".__add__, names)}
                clocks |= {self._name_in_repository(place)} if reads_clock else set()
        packages = self._packages(tops, _KNOWN | (_BROUGHT_BY_TORCH - own))
        outside = [
            Input(name=path, kind="file", value=value)
            for path in sorted(self.outside)
            if (value := everything.digest(path[1:]))
        ]
        # What a run only writes is no input; what it reads and then writes is another one for the next run.
        around, kept = set[str](), set[str]()
        for path in written:
            around.update(map(str, Path(path).parents), [""])
            is_used = path in self.files or (path in looked and disk.names(path) is None)
            kept |= {path} if is_used and not path.endswith(".py") else set()
        kept |= around & folders
        said = list[str]()
        itself = "what it reads or looks for in the repository, and writes itself"
        for what, these in (("files outside of the repository", self.outside), (itself, kept)):
            more = f" and {len(these) - MOST_NAMED} more" if len(these) > MOST_NAMED else ""
            said += [f"{what}: {', '.join(sorted(these)[:MOST_NAMED])}{more}"] if these else []
        said += self.unseen
        # Behind a link of the repository, the link is enough.
        real = ((f"{self.root}/{path}", os.path.realpath(f"{self.root}/{path}")) for path in self.files)
        behind = {place.removeprefix(f"{self.root}/") for path, place in real if place != path}
        left_out = behind | kept
        self.files = {path: state for path, state in self.files.items() if path not in left_out}
        found = [*self._contents(disk, said), *self._answers(disk)]
        known = {each.name for each in found} | behind
        known |= {str(folder) for name in known for folder in Path(name).parents}
        for path in sorted(looked, reverse=True):
            value = value_of("path", path, "", disk)
            is_own = not path or path in written or path in around
            if is_own or path in known or _SUFFIX.sub("", path) in self.stems:
                continue
            if value == "file":
                found += self._contents(disk, said, [path])
            else:
                found.append(Input(name=path, kind="path", value=value))
                known |= {str(each) for each in Path(path).parents if value != "nothing"}
        found += [
            Input(name=folder, kind="names", value=value_of("names", folder, "", disk))
            for folder in folders - kept
        ]
        links = {path: disk.link(path) for path in self.inside["linked"]}
        found += [Input(name=path, kind="link", value=target) for path, target in links.items() if target]
        found.sort(key=lambda each: (each.name, each.kind))
        if len(found) > MOST_FILES:
            said.append(f"only {MOST_FILES} of {len(found)} inputs are known")
        version = Input(name=PYTHON, kind="version", value=OWN_PYTHON)
        clock = tuple(sorted(clocks)[:MOST_CLOCKS])
        return RestsOn(tuple(found[:MOST_FILES]), (version, *packages, *outside), tuple(said), clock)

    def _name_in_repository(self, place: str) -> str:
        """A file of the work tree or of a revision as every clone names it."""
        folders = (folder for folder in (str(self.root), *self.elsewhere) if is_below(place, folder))
        return place.removeprefix(f"{max(folders, key=len, default='')}/")

    def _contents(self, disk: DiskFiles, said: list[str], paths: Iterable[str] = ()) -> Iterator[Input]:
        """The files that were read, by what they were then."""
        for path in paths or sorted(self.files):
            value, state = disk.digest(path), self.files.get(path)
            there = None
            with suppress(OSError):
                there = (self.root / path).stat()
            if state and (there is None or state != (there.st_size, there.st_mtime_ns)):
                value = ABSENT
            if value == UNREADABLE or (there and not value):
                said.append(f"what cannot be read again: {path}")
            elif there and there.st_size > LARGEST_DIGEST:
                said.append(f"{path}, of which only the beginning is known: it has {there.st_size} bytes")
            yield Input(name=path, kind="file", value=value or ABSENT)

    def _answers(self, disk: DiskFiles) -> Iterator[Input]:
        """What answers the imports, where the files do not say it."""
        shadowed = {stem for folder in ("", "src") for stem in shadows(folder, disk)}
        free: dict[str, list[str]] = {"": [], "src": []}
        for stem in sorted(shadowed | self.stems):
            folder, _, tail = stem.rpartition("/")
            if tail in TOOL_PACKAGES or (folder in {"", "src"} and tail in BUILT_IN):
                continue
            found = answer(stem, disk)
            if tail in sys.stdlib_module_names and not found.removesuffix(f"{stem}/"):
                continue
            if not found:
                free.setdefault(folder, []).append(tail)
            elif not (found in self.files and stem_of(found) == stem):
                yield Input(name=stem, kind="import", value=found)
        for folder, names in sorted(free.items()):
            yield Input(name=folder, kind="no modules", value=" ".join(names))

    def _packages(self, tops: Collection[str], known: Collection[str]) -> list[Input]:
        """The packages whose files ran, or that code names and that were loaded before, each once.

        Those in ``known`` are left out.
        """
        found: dict[str, tuple[str, dict[str, str | None]]] = {}
        for (site, top), files in sorted(self.packages.items()):
            name, version = _distribution(site, top)
            # Torch and the tool have some of them loaded already.
            is_named = top.partition(".")[0] in tops
            counted = [file for file, is_read in files.items() if is_read or is_named]
            # What is asked about all that is installed says nothing of it.
            if counted and not {top, name, normal(name)}.intersection(known) and not top.endswith("-info"):
                disk = DiskFiles(Path(site))
                digests = found.setdefault(name, (version, {}))[1]
                digests.update({each: disk.digest(each) for each in counted})
        return [
            Input(name=name, kind="package", value=package_value(*each))
            for name, each in sorted(found.items())
        ]


@lru_cache(maxsize=4096)
def _imports_and_clock(text: bytes) -> tuple[tuple[str, ...], bool]:
    """The modules that code imports, and whether it reads the clock."""
    lines = [(one or several).decode() for one, several in _IMPORTS.findall(text)]
    names = [part.strip().partition(".")[0].partition(" ")[0] for line in lines for part in line.split(",")]
    imported = tuple(dict.fromkeys(filter(None, names)))
    nodes: list[ast.AST] = []
    if _CLOCK.intersection(names):
        with suppress(SyntaxError, ValueError, RecursionError):
            nodes = list(ast.walk(ast.parse(text)))
    clocks = set(_CLOCK)
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            of_clock = getattr(node, "module", "") in _CLOCK
            if of_clock and _READINGS.intersection(each.name for each in node.names) - _CLOCK:
                return imported, True
            clocks |= {each.asname or each.name for each in node.names if of_clock or each.name in _CLOCK}
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr in _READINGS:
            owner = node.value
            name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
            if name in clocks:
                return imported, True
    return imported, False


@lru_cache(maxsize=1024)
def _distribution(site: str, top: str) -> tuple[str, str]:
    """The name and the version of the distribution that a package belongs to; its own name for none."""
    known = distributions(site)
    name = re.sub(r"-[^-]*\.(?:dist|egg)-info$|\.libs$", "", top)
    if normal(name) in known:
        return name, known[normal(name)]
    for record in sorted(Path(site).glob("*.dist-info/RECORD")):
        with suppress(OSError, ValueError):
            if re.search(rf"^{re.escape(top)}(?:/|\.)", record.read_text(encoding="utf-8"), re.MULTILINE):
                name, _, version = record.parent.name.removesuffix(".dist-info").partition("-")
                return name, version
    return top, ""
