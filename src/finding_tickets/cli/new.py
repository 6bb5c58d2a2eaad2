"""``tickets new``: a new ticket with the next free ID, from options, answers on a terminal or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Annotated

import typer

from finding_tickets.cli.content import drafts, places
from finding_tickets.cli.options import HERE, OutputFormat, Root, known
from finding_tickets.cli.output import Format, say, write, write_json
from finding_tickets.errors import ExitCode, UsageError
from finding_tickets.register.config import Config
from finding_tickets.register.creation import create
from finding_tickets.register.draft import Draft
from finding_tickets.register.load import Register, load
from finding_tickets.register.numbering import free_ids
from finding_tickets.register.root import is_repository
from finding_tickets.register.taken import on_branches
from finding_tickets.report.drafts import ticket_files

ATTEMPTS = 1000


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
        "locations": places(file or (), symbol),
        "categories": known("category", category, register.config.vocabulary.categories),
    }
    given = {name: value for name, value in options.items() if value not in (None, [])}
    created: list[tuple[str, list[str]]] = []
    try:
        wanted = drafts(register, given, source)
        taken = _taken(register)
        for draft in wanted:
            ticket_id, files = _add(register, draft, taken, with_verifier)
            taken.append(files[0])
            created.append((ticket_id, files))
    finally:
        # Of several drafts, those before one that fails are there to stay.
        if created:
            _show(created, output_format)
    return ExitCode.OK


def _show(created: list[tuple[str, list[str]]], output_format: Format) -> None:
    if output_format is Format.JSON:
        write_json("new-tickets", [{"id": name, "files": files} for name, files in created])
    else:
        write("\n".join(file for _, files in created for file in files))
    say(f"created {', '.join(name for name, _ in created)}")


def _register(root: Path) -> Register:
    """The register to add to; the first ticket of a repository starts one in the current folder."""
    try:
        return load(root)
    except UsageError:
        if root != HERE:
            raise
        return Register(Path.cwd(), Config(), (), ())


def _folders(register: Register) -> Sequence[str]:
    """The folders of the documents; a bare folder of Markdown files is one itself."""
    bare = register.documents and not is_repository(register.root)
    return (".",) if bare else register.config.tickets


def _taken(register: Register) -> list[str]:
    """The files that have taken a number, whether or not a document could be read from them here."""
    elsewhere = on_branches(register.root, _folders(register))
    return [*elsewhere, *(problem.file for problem in register.problems)]


def _add(
    register: Register, draft: Draft, taken: Sequence[str], with_verifier: bool
) -> tuple[str, list[str]]:
    """Write the files of one ticket; an ID that another process takes in between is passed over."""
    root, today = register.root, datetime.now().astimezone().date()
    folder = _folders(register)[0]
    for ticket_id in islice(free_ids(register.documents, draft.batch, draft.agent, taken), ATTEMPTS):
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
