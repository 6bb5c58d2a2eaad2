"""Find what a branch changes in the rules that its tickets are measured by: verifiers, variants, claims."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError, RevisionError, UsageError
from finding_tickets.ground.commits import Checkouts, Revision
from finding_tickets.ground.files import fixes_folder
from finding_tickets.ground.git import GitError, ask, shallow_commits
from finding_tickets.ground.statements import Statement, parse_file, read_statements
from finding_tickets.model.ticket import Claim
from finding_tickets.register.config import is_repository
from finding_tickets.register.load import Register, load
from finding_tickets.verify.judge import FIX
from finding_tickets.verify.plan import places_of, stated_in, verifier_of

SHALLOW = (
    "the clone is shallow: fetch more of its history, on GitHub with fetch-depth: 0"
)


@dataclass(frozen=True)
class Base:
    """The commit at which a branch began, with a checkout; without a register if there was none."""

    revision: Revision
    root: Path
    register: Register | None

    @cached_property
    def documents(self) -> dict[str, Document]:
        """Return the documents by their IDs in lower case."""
        documents = self.register.documents if self.register else ()
        return {each.id.value.casefold(): each for each in documents}


def find_base(root: Path, name: str) -> Base:
    """Return the commit at which the branch of the work tree left the revision ``name``.

    Raises:
        UsageError: The revision does not exist, or shares no commit with the branch.
        BadDataError: The configuration at the base is wrong.
    """
    checkouts = Checkouts(root)
    try:
        tip = checkouts.revision(name)
        commit = ask(root, "merge-base", tip.commit, "HEAD").strip()
        folder = checkouts.files(Revision(name, commit))
    except RevisionError as error:
        raise UsageError(f"--base {name}: {error}") from None
    except GitError as error:
        hint = (
            SHALLOW
            if shallow_commits(root)
            else "name a revision that the branch began at"
        )
        raise UsageError(
            f"--base {name}: no commit in common with HEAD ({error})", hint=hint
        ) from None
    # Nothing marks a bare folder of tickets as a register: there, any folder is one.
    exists = folder.is_dir() and (is_repository(folder) or not is_repository(root))
    return Base(
        Revision(name, commit), folder, load(folder, cached=False) if exists else None
    )


def changed_rules(old: Document, new: Document, base: Path, head: Path) -> list[str]:
    """Return the changes that a branch makes to the rules of a ticket's measurement.

    Additions do not count, because every old demand still holds; nor does a new name of the fix.
    """
    before, after = _statements(old, base), _statements(new, head)
    changes = []
    for name, text in before.items():
        if name == f"variants.{FIX}" and _find_function(head, text) is None:
            # It has another name, or is gone, which its measurement says.
            continue
        if name not in after:
            changes.append(f"{name} is gone")
        elif after[name] != text:
            changes.append(f"{name}: {text} -> {after[name]}")
    for file in _files(old, before, base):
        if not (head / file).exists():
            changes.append(f"{file} is gone")
        elif _code(base / file) != _code(head / file):
            changes.append(f"{file} is changed")
    now = {_claim_text(claim): claim.id for claim in stated_in(new).claims}
    for claim in stated_in(old).claims:
        if (text := _claim_text(claim)) not in now:
            others = [
                other.partition(" ")[2]
                for other, name in now.items()
                if name == claim.id
            ]
            said = f" -> {others[0]}" if others else ", which is gone"
            changes.append(f"claim {text}{said}")
    return changes


def find_fix(document: Document, root: Path) -> Statement | None:
    """Return where the fix of a ticket is defined; None if it is not there."""
    return _find_function(root, _statements(document, root).get(f"variants.{FIX}", ""))


def _find_function(root: Path, place: str) -> Statement | None:
    """Return the definition of a variant, ``path.py:function``."""
    file, _, function = place.partition("@")[0].partition(":")
    for statement in read_statements(root, file):
        if statement.code.startswith(f"def {function}("):
            return statement
    return None


def _statements(document: Document, root: Path) -> dict[str, str]:
    """Return what a ticket names as its verifier, command, variants and decision."""
    remediation = stated_in(document)
    stated: dict[str, str | None] = {
        "decision": remediation.decision if document.remediation else None,
        "within": remediation.within,
        "sweep": "; ".join(map(str, remediation.sweep)),
        "data": ", ".join(remediation.data),
    }
    if remediation.place:
        stated["place"] = " ".join(map(str, remediation.place.key))
        # Of a fix that is there, one that may wait elsewhere is a change.
        moved = "; ".join(each.code for each in remediation.moved) or "nothing"
        stated["moved"] = moved if FIX in remediation.variants else None
    if remediation.run:
        stated["run"] = remediation.run.raw
    else:
        stated["verifier"] = verifier_of(document, root)
    # A folder whose files are no variants is an error of the plan, which says so.
    with suppress(BadDataError):
        for name, place in places_of(document, root).items():
            stated[f"variants.{name}"] = place
    return {name: text for name, text in stated.items() if text}


def _files(document: Document, stated: Mapping[str, str], root: Path) -> Iterator[str]:
    """Yield the files that only serve to measure: the verifier with its helpers, and copies of variants."""
    if "verifier" in stated:
        yield from _with_helpers(stated["verifier"], root)
    for name, place in stated.items():
        if (
            name.startswith("variants.")
            and name != f"variants.{FIX}"
            and "@" not in place
        ):
            file = place.partition(":")[0]
            if Path(file).is_relative_to(fixes_folder(document.id.value)):
                yield file


def _with_helpers(verifier: str, root: Path) -> list[str]:
    """Return a verifier and the files in its folder that it imports."""
    found = [verifier]
    for file in found:
        names = []
        for node in ast.walk(parse_file(root / file) or ast.Module([], [])):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names += [
                    getattr(node, "module", None) or "",
                    *(alias.name for alias in node.names),
                ]
        for name in names:
            path = Path(verifier).with_name(f"{name.rpartition('.')[2]}.py").as_posix()
            if path not in found and (root / path).is_file():
                found.append(path)
    return found


def _code(file: Path) -> object:
    """Return the code of a file without comments and layout; its bytes if it is not Python."""
    tree = parse_file(file)
    if tree:
        return ast.dump(tree)
    return file.read_bytes() if file.is_file() else None


def _claim_text(claim: Claim) -> str:
    """Return everything that a claim demands."""
    within = f" within {claim.tolerance:g}" if claim.tolerance is not None else ""
    expected = " (expected to be refuted)" if claim.expect == "refuted" else ""
    return f"{claim.variant}.{claim.metric} {claim.text}{within}{expected}"
