"""``tickets new``: a new ticket with the next free ID, from options, answers on a terminal or JSON."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Annotated

import typer

from finding_tickets.cli.options import HERE, OutputFormat, Root, known
from finding_tickets.cli.output import Format, ask, say, write, write_json
from finding_tickets.errors import BadDataError, ExitCode, UsageError
from finding_tickets.ground.files import create
from finding_tickets.ground.git import paths_on_branches
from finding_tickets.model.vocabulary import word_for
from finding_tickets.register.config import Config
from finding_tickets.register.identifiers import free_ids
from finding_tickets.register.load import Register, load
from finding_tickets.register.new import Draft, draft_of, read_drafts
from finding_tickets.register.root import is_repository
from finding_tickets.report.templates import EXAMPLE, Attached, ticket_files

ATTEMPTS = 1000
STDIN = "-"
REQUIRED = ("title", "severity")
QUESTIONS = {"title": "What is wrong", "severity": "Severity, P0 to P4", "summary": "In a sentence"}
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
    register = register_to_add_to(root)
    if symbol and not file:
        raise UsageError("--symbol needs the --file that it is in")
    locations: list[dict[str, object]] = []
    for place in file or ():
        path, _, lines = place.rpartition(":") if LINES.search(place) else (place, "", "")
        spans = [tuple(map(int, span.split("-"))) for span in lines.split(",") if span]
        locations.append({"file": path, "lines": [(span[0], span[-1]) for span in spans], "symbol": symbol})
    options = {
        "title": title,
        "severity": severity,
        "batch": batch,
        "agent": agent,
        "domains": domain,
        "summary": summary,
        "locations": locations,
        "categories": known("category", category, register.config.vocabulary.categories),
    }
    content = {name: value for name, value in options.items() if value not in (None, [])}
    created: list[tuple[str, list[str]]] = []
    try:
        if source is None:
            drafts = [_draft(register, content)]
        elif content:
            raise UsageError("--from states the whole content: leave out the options that state some of it")
        else:
            drafts = read_drafts(read_input(source).decode(), "standard input" if source == STDIN else source)
        taken, attached = taken_names(register), EXAMPLE if with_verifier else None
        for draft in drafts:
            ids = free_ids(register.documents, draft.batch, draft.agent, taken)
            ticket_id, files = add(register, draft, ids, attached)
            taken.append(files[0])
            created.append((ticket_id, files))
    except UnicodeDecodeError as error:
        raise BadDataError(f"cannot be read: {error}", file=source) from None
    finally:
        # Of several drafts, the tickets before one that fails stay.
        if created and output_format is Format.JSON:
            write_json("new-tickets", [{"id": name, "files": files} for name, files in created])
        elif created:
            write("\n".join(path for _, files in created for path in files))
        if created:
            say(f"created {', '.join(name for name, _ in created)}")
    return ExitCode.OK


def read_input(file: str) -> bytes:
    """The bytes of a file, or of standard input for ``-``.

    Raises:
        BadDataError: It cannot be read.
    """
    try:
        return sys.stdin.buffer.read() if file == STDIN else Path(file).read_bytes()
    except OSError as error:
        raise BadDataError(f"cannot be read: {error.strerror or error}", file=file) from None


def _draft(register: Register, options: Mapping[str, object]) -> Draft:
    """The draft that the options state; on a terminal the user is asked for what they leave open."""
    words = register.config.vocabulary
    content = dict(options)
    if sys.stdin.isatty() and any(name not in options for name in REQUIRED):
        for name, question in QUESTIONS.items():
            while name not in content:
                answer = ask(question)
                if name == "severity" and answer and word_for(answer, words.severities) is None:
                    say(f"{answer}: no such severity (one of {', '.join(words.severities)})")
                elif answer:
                    content[name] = answer
                elif name not in REQUIRED:
                    break
    for name in REQUIRED:
        if name not in content:
            raise UsageError(f"a ticket needs --{name}", hint="on a terminal, tickets new asks for it")
    (severity,) = known("severity", [str(content["severity"])], words.severities)
    try:
        return draft_of({**content, "severity": severity}, "options")
    except BadDataError as error:
        # The error is on the command line, and in no file.
        raise UsageError(error.message) from None


def register_to_add_to(root: Path) -> Register:
    """The register to add to; the first ticket of a repository starts one in the current folder."""
    try:
        return load(root)
    except UsageError:
        if root != HERE:
            raise
        return Register(Path.cwd(), Config(), (), ())


def taken_names(register: Register) -> list[str]:
    """The files whose names use a number, on any branch, readable or not."""
    elsewhere = paths_on_branches(register.root, _folders(register))
    return [*elsewhere, *(problem.file for problem in register.problems)]


def add(
    register: Register, draft: Draft, ids: Iterator[str], attached: Attached | None = None
) -> tuple[str, list[str]]:
    """Write the files of one ticket, and return its ID and their paths; the ticket's comes first.

    An ID that another process has used meanwhile is skipped.

    Raises:
        UsageError: A file cannot be written.
        BadDataError: The ticket could not be read again.
    """
    for ticket_id in islice(ids, ATTEMPTS):
        texts = texts_of(register, draft, ticket_id, attached)
        try:
            create(register.root, texts)
        except FileExistsError:
            continue
        except OSError as error:
            raise UsageError(f"cannot write: {error.strerror}", file=error.filename) from None
        return ticket_id, list(texts)
    raise UsageError(f"no free ID among the next {ATTEMPTS}", file=str(register.root / _folders(register)[0]))


def texts_of(
    register: Register, draft: Draft, ticket_id: str, attached: Attached | None = None
) -> dict[str, str]:
    """The text of every file of a ticket with this ID, by its path; the ticket's comes first.

    Raises:
        BadDataError: The ticket could not be read again.
    """
    path = (PurePosixPath(_folders(register)[0]) / f"{ticket_id}.md").as_posix()
    return ticket_files(register, draft, ticket_id, path, datetime.now().astimezone().date(), attached)


def _folders(register: Register) -> Sequence[str]:
    """The folders of the documents; a bare folder of Markdown files is one itself."""
    bare = register.documents and not is_repository(register.root)
    return (".",) if bare else register.config.tickets
