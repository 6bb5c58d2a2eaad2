"""The documents of a register as they stood at many commits; what is the same in several is read once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from finding_tickets.documents.reading import Document, read_document
from finding_tickets.documents.remediation import read_sidecar
from finding_tickets.errors import BadDataError
from finding_tickets.ground.objects import Snapshot
from finding_tickets.model.problem import Level, Problem
from finding_tickets.model.remediation import Remediation
from finding_tickets.register.config import CONFIG_FILE, PROJECT_FILE, Config, config_from
from finding_tickets.register.files import SUFFIX
from finding_tickets.register.root import is_repository
from finding_tickets.register.sidecars import names_of

_REMEDIATION_RULES = "remediation-"


@dataclass(frozen=True)
class Stated:
    """What a document said of its measurement at some commits.

    ``digest`` is that of the bytes that the remediation was read from, ``problem`` what is wrong with them.
    """

    id: str
    path: str
    remediation: Remediation | None
    digest: str
    problem: str | None = None


class Registers:
    """Reads the register at ``root`` as it was at commits."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._is_repository = is_repository(root)
        self._configs: dict[tuple[str | None, str | None], Config | BadDataError] = {}
        self._registers: dict[tuple[object, ...], Mapping[str, Stated]] = {}
        self._files: dict[tuple[str, str, int], Stated | None] = {}
        self._sidecars: dict[tuple[str, str, int], Stated] = {}

    def config(self, snapshot: Snapshot) -> Config:
        """The configuration at a commit.

        Raises:
            BadDataError: It is wrong.
        """
        key = snapshot.file(CONFIG_FILE), snapshot.file(PROJECT_FILE)
        if key not in self._configs:
            self._configs[key] = self._config(snapshot)
        config = self._configs[key]
        if isinstance(config, BadDataError):
            raise config
        return config

    def all(self, snapshot: Snapshot) -> Mapping[str, Stated]:
        """What every document said at a commit, by its ID, whose case is folded.

        Raises:
            BadDataError: The configuration there is wrong.
        """
        config = self.config(snapshot)
        folders = config.tickets if self._is_repository else ("",)
        key = (id(config), *map(snapshot.folder, folders))
        if key not in self._registers:
            self._registers[key] = self._all(snapshot, config, folders)
        return self._registers[key]

    def document(self, snapshot: Snapshot, stated: Stated) -> Document:
        """The whole of a document at a commit at which it said this.

        Raises:
            LookupError: It did not.
        """
        document, _ = read_document(
            snapshot.content(stated.path) or b"", stated.path, self.config(snapshot).vocabulary
        )
        if document is None:
            raise LookupError(f"there is no document {stated.path}")
        return replace(document, remediation=stated.remediation)

    def _all(self, snapshot: Snapshot, config: Config, folders: tuple[str, ...]) -> Mapping[str, Stated]:
        found: dict[str, Stated] = {}
        for path, name in (file for folder in folders for file in snapshot.files(folder)):
            stated = self._stated(snapshot, path, name, config) if _is_read(path) else None
            if stated:
                key = stated.id.casefold()
                found[key] = _twice(found[key], stated) if key in found else stated
        return found

    def _config(self, snapshot: Snapshot) -> Config | BadDataError:
        texts = {name: snapshot.content(name) for name in (CONFIG_FILE, PROJECT_FILE)}
        known = {name: text for name, text in texts.items() if text is not None}
        try:
            return config_from(self._root, known)
        except BadDataError as error:
            return BadDataError(error.message, file=Path(error.file or "").name, line=error.line)

    def _stated(self, snapshot: Snapshot, path: str, name: str, config: Config) -> Stated | None:
        key = (path, name, id(config))
        if key not in self._files:
            self._files[key] = _read(snapshot.objects.content(name), path, config)
        stated = self._files[key]
        if stated is None:
            return None
        beside = ((file, found) for file in names_of(path, stated.id) if (found := snapshot.file(file)))
        file, found = next(beside, ("", ""))
        return self._with(stated, snapshot, file, found) if file else stated

    def _with(self, stated: Stated, snapshot: Snapshot, sidecar: str, name: str) -> Stated:
        """What a document said with the remediation that stood beside it."""
        key = (sidecar, name, id(stated))
        if key not in self._sidecars:
            self._sidecars[key] = _beside(stated, snapshot.objects.content(name) or b"", sidecar)
        return self._sidecars[key]


def _is_read(path: str) -> bool:
    return path.lower().endswith(SUFFIX)


def _read(data: bytes | None, path: str, config: Config) -> Stated | None:
    if data is None or len(data) > config.largest_file:
        return None
    document, problems = read_document(data, path, config.vocabulary)
    if document is None:
        return None
    remediation = document.remediation
    return Stated(document.id.value, path, remediation, _digest(remediation), _first_problem(problems))


def _beside(stated: Stated, data: bytes, sidecar: str) -> Stated:
    if stated.remediation:
        problem = f"the ticket has a Remediation section, and {sidecar} beside it is one too"
        return replace(stated, problem=problem)
    remediation, problems = read_sidecar(data, sidecar)
    return replace(
        stated, remediation=remediation, digest=remediation.digest, problem=_first_problem(problems)
    )


def _digest(remediation: Remediation | None) -> str:
    return remediation.digest if remediation else hashlib.sha256(b"").hexdigest()


def _first_problem(problems: tuple[Problem, ...]) -> str | None:
    """The first error in a remediation."""
    wrong = (each for each in problems if each.level is Level.ERROR)
    return next((str(each) for each in wrong if each.rule.startswith(_REMEDIATION_RULES)), None)


def _twice(one: Stated, other: Stated) -> Stated:
    places = ", ".join(sorted({one.path, other.path}))
    return replace(one, problem=f"{one.id} is the ID of several documents: {places}")
