"""``tickets new``: a new ticket with the next free ID, from options or JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Annotated

import typer

from finding_tickets.cli.options import (
    HERE,
    AgentWord,
    OutputFormat,
    Root,
    SeverityWord,
    flag,
    option,
    read_input,
    today,
    words_of,
)
from finding_tickets.cli.output import Format, say, write, write_json
from finding_tickets.errors import BadDataError, ExitCode, UsageError
from finding_tickets.ground.files import create
from finding_tickets.ground.git import paths_on_branches
from finding_tickets.model.vocabulary import Vocabulary
from finding_tickets.register.config import Config, is_repository
from finding_tickets.register.load import Register, load
from finding_tickets.register.new import Draft, draft_of, free_ids, read_drafts
from finding_tickets.report.templates import Attached, scaffold, ticket_files

# IDs that are tried for a ticket: another process may take one at the same time.
ATTEMPTS = 1000
REQUIRED = ("title", "severity")
LINES = re.compile(r":\d+(-\d+)?(,\d+(-\d+)?)*$")


def new(
    root: Root = HERE,
    title: Annotated[str | None, option("TEXT", "What is wrong, in a line.")] = None,
    severity: SeverityWord = None,
    batch: Annotated[
        int | None, typer.Option(min=0, help="The batch, for an ID such as B7-PT-04.")
    ] = None,
    agent: AgentWord = None,
    domain: Annotated[list[str] | None, option("WORD", "Repeatable.")] = None,
    summary: Annotated[str | None, option("TEXT", "The finding in a sentence.")] = None,
    file: Annotated[
        list[str] | None,
        option("PATH[:LINES]", "Where it is: a.py:10-20 (repeatable)."),
    ] = None,
    symbol: Annotated[
        str | None, option("NAME", "The function or class it is in.")
    ] = None,
    category: Annotated[list[str] | None, option("WORD", "Repeatable.")] = None,
    source: Annotated[
        str | None, option("FILE", "Read JSON from a file, or - for stdin.", "--from")
    ] = None,
    with_verifier: Annotated[
        bool, flag("--with-verifier", "Add a verifier and variants.")
    ] = False,
    output_format: OutputFormat = Format.TABLE,
) -> ExitCode:
    """Write a ticket under the next free ID."""
    writer = TicketWriter(root)
    words = writer.register.config.vocabulary
    # A name alone could be that of anything, in any file.
    if symbol and not file:
        raise UsageError("--symbol needs the --file that it is in")
    locations: list[dict[str, object]] = []
    for place in file or ():
        path, _, lines = (
            place.rpartition(":") if LINES.search(place) else (place, "", "")
        )
        spans = [
            (first, last or first)
            for first, last in re.findall(r"(\d+)(?:-(\d+))?", lines)
        ]
        locations.append({"file": path, "lines": spans, "symbol": symbol})
    options = {
        "title": title,
        "severity": severity,
        "batch": batch,
        "agent": agent,
        "domains": domain,
        "summary": summary,
        "locations": locations,
        "categories": words_of("category", category, words.categories),
    }
    content = {
        name: value for name, value in options.items() if value not in (None, [])
    }
    if source is not None and content:
        raise UsageError("--from gives the whole content: leave out the other options")
    created: list[tuple[str, list[str]]] = []
    try:
        if source is None:
            drafts = [_draft(words, content)]
        else:
            data, name = read_input(source)
            drafts = read_drafts(data.decode(), name)
        root = writer.register.root
        created.extend(
            writer.add(draft, scaffold(draft, root) if with_verifier else None)
            for draft in drafts
        )
    except UnicodeDecodeError as error:
        raise BadDataError(f"cannot be read: {error}", file=source) from None
    finally:
        # Of several drafts, the tickets before one that fails stay.
        if created and output_format is Format.JSON:
            write_json(
                "new-tickets", [{"id": name, "files": files} for name, files in created]
            )
        elif created:
            write("\n".join(path for _, files in created for path in files))
        if created:
            say(f"created {', '.join(name for name, _ in created)}")
    return ExitCode.OK


def _draft(words: Vocabulary, content: Mapping[str, object]) -> Draft:
    """Return the draft that the options state."""
    for name in REQUIRED:
        if name not in content:
            raise UsageError(f"a ticket needs --{name}")
    (severity,) = words_of("severity", [str(content["severity"])], words.severities)
    try:
        return draft_of({**content, "severity": severity}, "options")
    except BadDataError as error:
        # The error is on the command line, and in no file.
        raise UsageError(error.message) from None


class TicketWriter:
    """Adds tickets to the register at ``root``; the first one of a repository starts a register here."""

    def __init__(self, root: Path) -> None:
        try:
            self.register = load(root)
        except UsageError:
            if root != HERE:
                raise
            self.register = Register(Path.cwd(), Config())
        # A bare folder of Markdown files holds its tickets itself.
        is_bare = self.register.documents and not is_repository(self.register.root)
        folders = (".",) if is_bare else self.register.config.tickets
        self._folder = PurePosixPath(folders[0])
        # A number is used by a file on any branch, readable or not.
        unread = (problem.file for problem in self.register.problems)
        self._used = [*paths_on_branches(self.register.root, folders), *unread]
        self._series: dict[tuple[int | None, str | None], Iterator[str]] = {}

    def add(
        self, draft: Draft, attached: Attached | None = None, *, dry_run: bool = False
    ) -> tuple[str, list[str]]:
        """Write a ticket under the next free ID. Return the ID and the paths, beginning with the ticket.

        An ID that another process has taken is skipped. A dry run writes nothing.
        """
        series = (draft.batch, draft.agent)
        if series not in self._series:
            self._series[series] = free_ids(
                self.register.documents,
                batch=draft.batch,
                agent=draft.agent,
                paths=self._used,
            )
        for ticket_id in islice(self._series[series], ATTEMPTS):
            path = (self._folder / f"{ticket_id}.md").as_posix()
            texts = ticket_files(
                self.register, draft, ticket_id, path, today(), attached
            )
            try:
                if not dry_run:
                    create(self.register.root, texts)
            except FileExistsError:
                continue
            except OSError as error:
                raise UsageError(
                    f"cannot write: {error.strerror}", file=error.filename
                ) from None
            return ticket_id, list(texts)
        folder = self.register.root / self._folder
        raise UsageError(f"no free ID among the next {ATTEMPTS}", file=str(folder))
