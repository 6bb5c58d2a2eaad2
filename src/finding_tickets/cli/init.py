"""``tickets init``: set up a register in a repository, with the tickets that are already there."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

from finding_tickets.cli.options import HERE, OutputFormat, Root, flag
from finding_tickets.cli.output import Format, say, write, write_json
from finding_tickets.errors import BadDataError, UsageError
from finding_tickets.ground.files import FileEdit, create, rewrite
from finding_tickets.ground.git import work_tree
from finding_tickets.register.adopt import SHAPELESS, Survey, survey
from finding_tickets.register.config import CONFIG_FILE, PROJECT_FILE, checked_root
from finding_tickets.report.templates import render
from finding_tickets.report.text import counted, fields_of

CONFIGURATION = "configuration.toml.j2"
AGENTS_FILE, AGENTS = "AGENTS.md", "agents.md.j2"
MOST_LISTED, MOST_NAMED = 8, 3


def init(
    root: Root = HERE,
    pyproject: Annotated[
        bool, flag("--pyproject", f"Configure in {PROJECT_FILE}.")
    ] = False,
    agents: Annotated[
        bool, flag("--agents", f"Add to {AGENTS_FILE} how agents measure.")
    ] = False,
    dry_run: Annotated[
        bool, flag("--dry-run", "Say what would be written, and write nothing.")
    ] = False,
    yes: Annotated[bool, flag("--yes", "Write it.")] = False,
    output_format: OutputFormat = Format.TABLE,
) -> None:
    """Show the tickets that are there, and configure a register for them."""
    place = (
        (work_tree(Path.cwd()) or Path.cwd()) if root == HERE else checked_root(root)
    )
    if pyproject and not (place / PROJECT_FILE).is_file():
        raise UsageError(
            f"there is no {PROJECT_FILE} in {place}", hint="leave out --pyproject"
        )
    found = survey(place)
    added = {}
    if not found.configured:
        table = "tool.tickets" if pyproject else ""
        file = PROJECT_FILE if pyproject else CONFIG_FILE
        added[file] = render(CONFIGURATION, {"found": found, "table": table})
    if agents:
        added[AGENTS_FILE] = render(AGENTS, {})
    # Printed first: if writing fails, this explains why.
    say("\n".join(_explained(found)))
    if not added:
        say("nothing to do")
    is_written = yes and bool(added) and not dry_run
    if is_written:
        for name, text in added.items():
            _write(place, name, text)
    if output_format is Format.JSON:
        item = {**_item(found), "files": [*added], "written": is_written}
        write_json("init", [item])
    elif is_written:
        write("\n".join(added))
    elif added:
        write("\n".join(f"--- {name}\n{text.strip()}" for name, text in added.items()))
    if is_written:
        steps = ["tickets lint lists what to improve"] if found.documents else []
        steps += [
            "tickets probe module:function --draft 1 writes a ticket from a measurement"
        ]
        say(f"next: {'; '.join(steps)}")
    elif added and dry_run:
        say("nothing was written (--dry-run)")
    elif added:
        raise UsageError("nothing was written", hint="--yes writes it")


def _write(root: Path, file: str, added: str) -> None:
    """Create a file, or add to the end of one that is there what it does not have yet."""

    def append(data: bytes) -> bytes:
        before = data.decode(errors="surrogateescape")
        if added in before:
            return data
        if before:
            before += "\n" if before.endswith("\n") else "\n\n"
        new = before + added
        if file == PROJECT_FILE:
            _check_toml(new)
        return new.encode(errors="surrogateescape")

    if (root / file).exists():
        rewrite(root, [FileEdit(file, append)])
        return
    try:
        create(root, {file: added})
    except OSError as error:
        raise UsageError(
            f"cannot write: {error.strerror}", file=error.filename
        ) from None


def _check_toml(text: str) -> None:
    """Raise BadDataError if pyproject.toml with the new table is no TOML."""
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        # For instance, nothing can be added after ``tool = {...}``.
        message = f"a table [tool.tickets] cannot be added: {error}"
        raise BadDataError(
            message, file=PROJECT_FILE, hint="leave out --pyproject"
        ) from None


def _item(found: Survey) -> dict[str, object]:
    """Return what was found, for JSON."""
    return {
        "root": str(found.root),
        **fields_of(
            found,
            "configured",
            "registers",
            "documents",
            "unnamed",
            "id_pattern",
            "unfit",
        ),
        "folders": [
            {"folder": folder, "documents": count}
            for folder, count in found.folders.items()
        ],
        "left_out": [
            {"path": path, "why": why} for path, why in found.left_out.items()
        ],
        "words": [each._asdict() for each in found.wordings],
        "unknown_labels": found.unknown,
        "series": [
            {"series": series, "documents": count}
            for series, count in found.series.items()
        ],
        "collisions": [
            {"id": name, "paths": paths} for name, paths in found.collisions.items()
        ],
    }


def _explained(found: Survey) -> Iterator[str]:
    """Yield sentences about what was found and the configuration does not show: by folders, then of IDs."""
    total = sum(found.documents.values())
    kinds = ", ".join(counted(count, kind) for kind, count in found.documents.items())
    if found.configured:
        yield f"{found.root} is configured by {found.configured}: {counted(total, 'document')}"
    elif total:
        yield f"found {kinds} in {counted(total + len(found.left_out), 'Markdown file')}"
        yield from _folders_explained(found)
    else:
        yield f"found no tickets in {found.root}; new ones go to tickets/"
        yield from [f"  {_reasons(found, found.left_out)}"] if found.left_out else []
    if found.registers:
        yield f"left alone, since they are registers of their own: {_listed(found.registers)}"
    if found.collisions:
        same = [
            f"{name} ({', '.join(paths)})" for name, paths in found.collisions.items()
        ]
        yield f"{counted(len(same), 'ID')} of more than one document: {_listed(same, MOST_NAMED)}"
    if found.unnamed:
        yield f"{counted(found.unnamed, 'document')} without an ID: the name of the file stands in for it"
    if found.unknown:
        names = [
            f"{label} (in {count})" for label, count in found.unknown.most_common()
        ]
        yield f"labels that are not understood, where a severity or a status is missing: {_listed(names)}"
        yield "  the table [labels] says what they state, such as severity = ['Prio']"
    if found.unfit:
        yield f"no pattern could be found for these IDs: {_listed(found.unfit)}; set id_pattern"


def _folders_explained(found: Survey) -> Iterator[str]:
    """Yield each folder with the number of its documents, and what is left out of it."""
    others = set(found.left_out)
    for folder, count in found.folders.items():
        inside = {
            path for path in others if folder == "." or path.startswith(f"{folder}/")
        }
        others -= inside
        yield f"  {folder}: {counted(count, 'document')}{f'; {_reasons(found, inside)}' if inside else ''}"
        if inside:
            # What is neither a README nor a template is what a user may want after all.
            names = sorted(
                inside, key=lambda path: (found.left_out[path] != SHAPELESS, path)
            )
            yield f"    not {_listed(names, MOST_NAMED)}"
    if others:
        yield f"  elsewhere: {_reasons(found, others)}"


def _reasons(found: Survey, paths: Iterable[str]) -> str:
    """Count the files that are left out, by their reason."""
    counts = Counter(found.left_out[path] for path in paths)
    reasons = ", ".join(f"{count} {why}" for why, count in counts.most_common())
    return f"left out {counts.total()} ({reasons})"


def _listed(names: Sequence[str], most: int = MOST_LISTED) -> str:
    """The first few names, and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
