"""``tickets init``: set up a register in a repository, with the tickets that are already there."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from finding_tickets.cli.options import HERE, OutputFormat, Root, flag
from finding_tickets.cli.output import Format, say, write, write_json
from finding_tickets.errors import BadDataError, UsageError
from finding_tickets.ground.files import FileEdit, create, rewrite
from finding_tickets.ground.git import work_tree
from finding_tickets.register.adopt import Survey, survey
from finding_tickets.register.config import CONFIG_FILE, PROJECT_FILE, Config, checked_root
from finding_tickets.register.files import SIDECAR
from finding_tickets.report.templates import render
from finding_tickets.report.text import counted

EXAMPLE_ID = "EXAMPLE"
VERIFIER = "verifiers/example.py"
EXAMPLES = {
    VERIFIER: "verifier.py.j2",
    "fixes/example/found.py": "found.py.j2",
    "fixes/example/fix.py": "fix.py.j2",
}
"""A first verifier with two variants that run, by their templates."""

CONFIG_COMMENT = "# Where the finding tickets of this repository are; every other setting has a default.\n"
MOST_LISTED = 8


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
            added = f"\n[tool.tickets]\n{CONFIG_COMMENT}{found.settings()}"
        else:
            texts[CONFIG_FILE] = CONFIG_COMMENT + found.settings()
        if not found.documents and not (place / "tickets").is_dir():
            # Git keeps no empty folder.
            texts["tickets/.gitkeep"] = ""
        if not any((place / "verifiers").glob("*.py")) and not (place / "fixes/example").exists():
            own = place / Config().templates
            texts |= {path: render(template, {"id": EXAMPLE_ID}, own) for path, template in EXAMPLES.items()}
    # Printed first: if writing fails, this explains why.
    say("\n".join(_explained(found)))
    if not dry_run:
        _write(place, texts, added)
    shown = {**({PROJECT_FILE: added} if added else {}), **texts}
    if output_format is Format.JSON:
        item = {
            "root": str(place),
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
    if found.configured:
        # Whoever asks for a table in pyproject.toml has to know that there will be none.
        ignored = pyproject and found.configured != PROJECT_FILE
        say("nothing to do" + (f"; --pyproject is ignored: {found.configured} counts" if ignored else ""))
    elif dry_run:
        say("nothing was written (--dry-run)")
    else:
        steps = ["tickets lint lists what to improve in the tickets"] if found.documents else []
        steps += ["tickets probe module:function --draft 1 writes a ticket from a measurement"]
        steps += [f"python {VERIFIER} shows how a verifier measures"] if VERIFIER in texts else []
        say(f"next: {'; '.join(steps)}")


def _write(root: Path, texts: Mapping[str, str], added: str) -> None:
    """Create the files, and append ``added``, if any, to pyproject.toml; all or nothing."""

    def append(data: bytes) -> bytes:
        gap = "" if data.endswith(b"\n") or not data else "\n"
        new = data + (gap + added if data else added.lstrip()).encode()
        try:
            tomllib.loads(new.decode())
        except tomllib.TOMLDecodeError as error:
            # For instance, nothing can be added after ``tool = {...}``.
            message, hint = f"a table [tool.tickets] cannot be added: {error}", "leave out --pyproject"
            raise BadDataError(message, file=PROJECT_FILE, hint=hint) from None
        return new

    edits = [FileEdit(PROJECT_FILE, append)] if added else []
    # Find out whether it can be added before any file is created.
    rewrite(root, edits, dry_run=True)
    try:
        created = create(root, texts)
    except OSError as error:
        raise UsageError(f"cannot write: {error.strerror}", file=error.filename) from None
    try:
        rewrite(root, edits)
    except BadDataError:
        for path in created:
            path.unlink(missing_ok=True)
        raise


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
        yield f"IDs: {_listed([f'{series}-N ({count})' for series, count in found.series.items()])}"
    if found.id_pattern:
        yield "some of these IDs have an unusual form; id_pattern describes it"
    if found.unfit:
        yield f"no pattern could be found for these IDs: {_listed(found.unfit)}; set id_pattern"


def _listed(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    more = len(names) - MOST_LISTED
    return ", ".join(names[:MOST_LISTED]) + (f" and {more} more" if more > 0 else "")
