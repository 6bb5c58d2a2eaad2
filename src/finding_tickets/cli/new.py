"""``tickets new``: a new ticket with the next free ID, from options, answers on a terminal or JSON."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Annotated

import typer

from finding_tickets.cli.options import HERE, OutputFormat, Root, known
from finding_tickets.cli.output import Format, ask, say, write, write_json
from finding_tickets.errors import BadDataError, ExitCode, UsageError
from finding_tickets.register.config import Config
from finding_tickets.register.creation import create
from finding_tickets.register.draft import Draft, draft_of, read_drafts
from finding_tickets.register.load import Register, load
from finding_tickets.register.numbering import free_ids
from finding_tickets.register.root import is_repository
from finding_tickets.report.drafts import ticket_files

STDIN = "-"
ATTEMPTS = 1000
REQUIRED = ("title", "severity")
QUESTIONS = {
    "title": "What is wrong",
    "severity": "Severity, P0 to P4",
    "summary": "In a sentence",
}
LINES = re.compile(r":\d+(-\d+)?(,\d+(-\d+)?)*$")


def new(
    root: Root = HERE,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="What is wrong, in a line.")] = None,
    severity: Annotated[str | None, typer.Option(metavar="WORD", help="How bad it is: P0 to P4.")] = None,
    batch: Annotated[int | None, typer.Option(min=0, help="The batch, for an ID such as B7-PT-04.")] = None,
    agent: Annotated[str | None, typer.Option(metavar="WORD", help="Who found it, for the ID.")] = None,
    domain: Annotated[list[str] | None, typer.Option(metavar="WORD", help="Repeatable.")] = None,
    summary: Annotated[str | None, typer.Option(metavar="TEXT", help="The finding in a sentence.")] = None,
    file: Annotated[
        list[str] | None, typer.Option(metavar="PATH[:LINES]", help="Where it is: a.py:10-20 (repeatable).")
    ] = None,
    symbol: Annotated[
        str | None, typer.Option(metavar="NAME", help="The function or class it is in.")
    ] = None,
    category: Annotated[list[str] | None, typer.Option(metavar="WORD", help="Repeatable.")] = None,
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="FILE", help="Read JSON from a file, or from stdin with -."),
    ] = None,
    with_verifier: Annotated[
        bool, typer.Option("--with-verifier", help="Add a verifier and two variants that run.")
    ] = False,
    output_format: OutputFormat = Format.TABLE,
) -> ExitCode:
    """Write a ticket under the next free ID."""
    register = _register(root)
    options = {
        "title": title,
        "severity": severity,
        "batch": batch,
        "agent": agent,
        "domains": domain,
        "summary": summary,
        "locations": _places(file or (), symbol),
        "categories": category,
    }
    drafts = _drafts(
        register, {name: value for name, value in options.items() if value or value == 0}, source
    )
    created = [_add(register, draft, with_verifier) for draft in drafts]
    if output_format is Format.JSON:
        write_json("new-tickets", [{"id": name, "files": files} for name, files in created])
    else:
        write("\n".join(file for _, files in created for file in files))
    say(f"created {', '.join(name for name, _ in created)}")
    return ExitCode.OK


def _register(root: Path) -> Register:
    """The register to add to; the first ticket of a repository starts one in the current folder."""
    try:
        return load(root)
    except UsageError:
        if root != HERE:
            raise
        return Register(Path.cwd(), Config(), (), ())


def _places(files: Sequence[str], symbol: str | None) -> list[dict[str, object]]:
    """Locations in the form of a draft, from ``path.py:10-20,30``."""
    if symbol and not files:
        raise UsageError("--symbol needs the --file that it is in")
    places: list[dict[str, object]] = []
    for file in files:
        path, _, lines = file.rpartition(":") if LINES.search(file) else (file, "", "")
        pairs = [tuple(map(int, span.split("-"))) for span in lines.split(",") if span]
        places.append({"file": path, "lines": [(pair[0], pair[-1]) for pair in pairs], "symbol": symbol})
    return places


def _drafts(register: Register, options: dict[str, object], source: str | None) -> list[Draft]:
    """What to write: the content of a file or of standard input, else what options and answers say."""
    if source is None:
        return [_draft(register, options)]
    if options:
        raise UsageError("--from states the whole content: leave out the options that state some of it")
    return read_drafts(_text(source), "standard input" if source == STDIN else source)


def _text(source: str) -> str:
    try:
        return sys.stdin.read() if source == STDIN else Path(source).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadDataError(f"cannot be read: {error}", file=source) from None


def _draft(register: Register, options: dict[str, object]) -> Draft:
    content = _asked(options) if sys.stdin.isatty() else options
    for name in REQUIRED:
        if name not in content:
            raise UsageError(f"a ticket needs --{name}", hint="on a terminal, tickets new asks for it")
    words = register.config.vocabulary.severities
    (severity,) = known("severity", [str(content["severity"])], words)
    return draft_of({**content, "severity": severity}, "options")


def _asked(options: dict[str, object]) -> dict[str, object]:
    """The options with answers to the questions that they leave open; an empty answer is none."""
    answers = {name: ask(question) for name, question in QUESTIONS.items() if name not in options}
    return {**options, **{name: answer for name, answer in answers.items() if answer}}


def _add(register: Register, draft: Draft, with_verifier: bool) -> tuple[str, list[str]]:
    """Write the files of one ticket; an ID that another process takes in between is passed over."""
    root, today = register.root, datetime.now().astimezone().date()
    bare = register.documents and not is_repository(root)
    folder = "." if bare else register.config.tickets[0]
    for ticket_id in islice(free_ids(register.documents, draft.batch, draft.agent), ATTEMPTS):
        path = (PurePosixPath(folder) / f"{ticket_id}.md").as_posix()
        texts = ticket_files(register, draft, ticket_id, path, today, with_verifier)
        try:
            create(root, texts)
        except FileExistsError:
            continue
        except OSError as error:
            raise UsageError(f"cannot write: {error.strerror}", file=error.filename) from None
        return ticket_id, list(texts)
    raise UsageError(f"no free ID among the next {ATTEMPTS}", file=str(root / folder))
