"""``tickets init``: make a register of a repository, with the tickets that it has already."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

from finding_tickets.cli.options import HERE, OutputFormat, Root, flag
from finding_tickets.cli.output import Format, counted, say, write, write_json
from finding_tickets.errors import BadDataError, UsageError
from finding_tickets.ground.files import FileEdit, create, rewrite
from finding_tickets.ground.git import work_tree
from finding_tickets.register.adopt import Survey, survey
from finding_tickets.register.config import CONFIG_FILE, PROJECT_FILE, Config, checked_root
from finding_tickets.register.files import SIDECAR
from finding_tickets.report.templates import render

FIRST = "EXAMPLE"
VERIFIER = "verifiers/example.py"
EXAMPLES = {
    VERIFIER: "verifier.py.j2",
    "fixes/example/found.py": "found.py.j2",
    "fixes/example/fix.py": "fix.py.j2",
}
"""A first verifier with two variants that run, by their templates."""

HEAD = "# Where the finding tickets of this repository are; every other setting has a default.\n"
MOST_SERIES = 8


def init(
    root: Root = HERE,
    pyproject: Annotated[bool, flag("--pyproject", f"Configure in {PROJECT_FILE}.")] = False,
    dry_run: Annotated[bool, flag("--dry-run", "Say what would be written, and write nothing.")] = False,
    output_format: OutputFormat = Format.TABLE,
) -> None:
    """Configure a register and write a first verifier."""
    place = (work_tree(Path.cwd()) or Path.cwd()) if root == HERE else checked_root(root)
    if pyproject and not (place / PROJECT_FILE).is_file():
        raise UsageError(f"there is no {PROJECT_FILE} in {place}", hint="leave out --pyproject")
    found = survey(place)
    texts: dict[str, str] = {}
    added = ""
    if not found.configured:
        if pyproject:
            added = f"\n[tool.tickets]\n{HEAD}{found.settings()}"
        else:
            texts[CONFIG_FILE] = HEAD + found.settings()
        if not found.documents and not (found.root / "tickets").is_dir():
            # Git keeps no empty folder.
            texts["tickets/.gitkeep"] = ""
        if not any((found.root / "verifiers").glob("*.py")) and not (found.root / "fixes/example").exists():
            own = found.root / Config().templates
            texts |= {path: render(template, {"id": FIRST}, own) for path, template in EXAMPLES.items()}
    # What was found is said first: it explains an error in writing.
    say("\n".join(_explained(found)))
    if not dry_run:
        _write(place, texts, added)
    shown = {**({PROJECT_FILE: added} if added else {}), **texts}
    if output_format is Format.JSON:
        item = {
            "root": str(found.root),
            "configured": found.configured,
            "folders": [{"folder": folder, "documents": count} for folder, count in found.folders.items()],
            "documents": dict(found.documents),
            "series": [{"series": series, "documents": count} for series, count in found.series.items()],
            "id_pattern": found.id_pattern,
            "unfit": list(found.unfit),
            "files": list(shown),
            "written": not dry_run and bool(shown),
        }
        write_json("init", [item])
    elif dry_run:
        write("\n".join(f"--- {path}\n{text.strip()}" for path, text in shown.items()))
    elif shown:
        write("\n".join(shown))
    if found.configured or dry_run:
        say("nothing to do" if found.configured else "nothing was written (--dry-run)")
    else:
        steps = ["tickets lint says what could be better in them"] if found.documents else []
        steps += ["tickets probe module:function --draft 1 writes a ticket from a measurement"]
        steps += [f"python {VERIFIER} shows how a verifier measures"] if VERIFIER in texts else []
        say(f"next: {'; '.join(steps)}")


def _write(root: Path, texts: Mapping[str, str], added: str) -> None:
    """Create the files, and add to pyproject.toml where that is wanted; all or nothing."""

    def append(data: bytes) -> bytes:
        gap = b"" if data.endswith(b"\n") or not data else b"\n"
        new = data + gap + added.encode()
        try:
            tomllib.loads(new.decode())
        except tomllib.TOMLDecodeError as error:
            # Such as after ``tool = {...}``, to which nothing can be added.
            message, hint = f"a table [tool.tickets] cannot be added: {error}", "leave out --pyproject"
            raise BadDataError(message, file=PROJECT_FILE, hint=hint) from None
        return new

    edits = [FileEdit(PROJECT_FILE, append)] if added else []
    # What cannot be added is found out before any file is there.
    rewrite(root, edits, dry_run=True)
    try:
        create(root, texts)
    except OSError as error:
        raise UsageError(f"cannot write: {error.strerror}", file=error.filename) from None
    rewrite(root, edits)


def _explained(found: Survey) -> Iterator[str]:
    """What was found, in sentences."""
    total = sum(found.documents.values())
    kinds = ", ".join(counted(count, kind) for kind, count in found.documents.items())
    if found.configured:
        yield f"{found.root} is configured by {found.configured}: {counted(total, 'document')}"
    elif total:
        places = ", ".join(f"{folder} ({count})" for folder, count in found.folders.items())
        yield f"found {kinds} in {places}"
        yield f"their files stay unchanged; ID{SIDECAR} beside one can say how to measure it"
    else:
        yield f"found no tickets in {found.root}; new ones go to tickets/"
    if found.series:
        shown = [f"{series}-N ({count})" for series, count in list(found.series.items())[:MOST_SERIES]]
        more = len(found.series) - len(shown)
        yield f"IDs: {', '.join(shown)}{f' and {more} more series' if more else ''}"
    if found.id_pattern:
        yield "some of these IDs have an unusual form; id_pattern describes it"
    if found.unfit:
        yield f"no pattern fits these IDs; set id_pattern yourself: {', '.join(found.unfit[:MOST_SERIES])}"
