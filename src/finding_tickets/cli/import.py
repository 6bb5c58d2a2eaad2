"""``tickets import``: a ticket for each finding of another tool that has none yet, from a log in SARIF."""  # noqa: N999 - commands live in the module of their name

from __future__ import annotations

import fcntl
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated

import typer

from finding_tickets.cli.adding import add_as, register_to_add_to, taken_in, texts_of
from finding_tickets.cli.options import HERE, OutputFormat, Root
from finding_tickets.cli.output import Format, counted, plain, say, write_json, write_table
from finding_tickets.errors import BadDataError, ExitCode, UsageError
from finding_tickets.importers.drafts import draft, source
from finding_tickets.importers.known import known
from finding_tickets.importers.log import Log, read_log
from finding_tickets.importers.places import absolute_path
from finding_tickets.importers.results import UNNAMED, Found, found_in
from finding_tickets.register.load import Register
from finding_tickets.register.numbering import free_ids
from finding_tickets.register.root import chosen_root
from finding_tickets.report.drafts import Attached

STDIN = "-"
TEMPLATE = "imported.md.j2"


@dataclass(frozen=True)
class Imported:
    """A finding and its ticket, where it has one; ``is_new`` marks those that had none before."""

    found: Found
    id: str | None = None
    path: str | None = None
    is_new: bool = False

    @property
    def outcome(self) -> str:
        """What became of the finding, in a word."""
        return "new" if self.is_new else "known" if self.path else "left out"


def import_results(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A log in SARIF 2.1.0; - is stdin.")],
    root: Root = HERE,
    source_root: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Where the repository was when the tool ran."),
    ] = None,
    batch: Annotated[int | None, typer.Option(min=0, help="The batch, for IDs such as B7-PT-04.")] = None,
    agent: Annotated[str | None, typer.Option(metavar="WORD", help="Who found it, for the IDs.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be written; write nothing.")
    ] = False,
    output_format: OutputFormat = Format.TABLE,
) -> ExitCode:
    """Write a ticket for each finding of another tool, in SARIF, that has none yet."""
    elsewhere = _given(source_root)
    log = read_log(_data(file), "standard input" if file == STDIN else file)
    here, is_register = _place(root)
    everything = list(found_in(log, [str(here), str(root.absolute()), *elsewhere]))
    desk = _Desk(root, batch, agent, dry_run=dry_run)
    done: list[Imported] = []
    with _alone(here):
        tickets = known(here) if is_register else {}
        try:
            for found in everything:
                path = tickets.get(found.fingerprint)
                is_new = not path and not found.left_out
                done.append(desk.write(found) if is_new else Imported(found, path=path))
        finally:
            # Of several tickets, those before one that cannot be written are there to stay.
            _show(done, output_format, dry_run=dry_run)
    for doubt in (*_doubts(log), *_strays(done)):
        say(doubt)
    return ExitCode.OK


def _given(source_root: str | None) -> Sequence[str]:
    if source_root is None:
        return ()
    if absolute_path(source_root) is None:
        raise UsageError(f"--source-root {source_root}: not an absolute path")
    return (source_root,)


def _place(root: Path) -> tuple[Path, bool]:
    """Where the register is or is to be, and whether it is there."""
    try:
        return chosen_root(root), True
    except UsageError:
        if root != HERE:
            raise
        return Path.cwd(), False


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait for other imports into the same folder: what they write is known then."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


class _Desk:
    """Where findings become tickets, one after the other; the register is read for the first one."""

    def __init__(self, root: Path, batch: int | None, agent: str | None, *, dry_run: bool) -> None:
        self._root, self._batch, self._agent, self._dry_run = root, batch, agent, dry_run

    def write(self, found: Found) -> Imported:
        """Write a ticket for a finding; in a dry run, only find out what it would be called."""
        content = draft(found, self._batch, self._agent, self._register.config.vocabulary)
        context = {"source": source(found), "fingerprint": found.fingerprint}
        attached = Attached(ticket=TEMPLATE, context=context, mark=found.fingerprint)
        if self._dry_run:
            ticket_id = next(self._ids)
            files = list(texts_of(self._register, content, ticket_id, attached))
        else:
            ticket_id, files = add_as(self._register, content, self._ids, attached)
        return Imported(found, ticket_id, files[0], is_new=True)

    @cached_property
    def _register(self) -> Register:
        return register_to_add_to(self._root)

    @cached_property
    def _ids(self) -> Iterator[str]:
        return free_ids(self._register.documents, self._batch, self._agent, taken_in(self._register))


def _data(file: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == STDIN else Path(file).read_bytes()
    except OSError as error:
        raise BadDataError(f"cannot be read: {error.strerror or error}", file=file) from None


def _show(done: Sequence[Imported], output_format: Format, *, dry_run: bool) -> None:
    new = [each for each in done if each.is_new]
    if output_format is Format.JSON:
        write_json("import", [_item(each, written=each.is_new and not dry_run) for each in done])
    elif new:
        rows = [(str(each.path), each.found.severity.value, _title(each.found)) for each in new]
        write_table(("FILE", "SEVERITY", "TITLE"), rows)
    counts = Counter(each.outcome for each in done)
    reasons = Counter(each.found.left_out for each in done if each.outcome == "left out")
    why = (
        f" ({', '.join(f'{count} {reason}' for reason, count in sorted(reasons.items()))})" if reasons else ""
    )
    created = f"{'would create' if dry_run else 'created'} {counted(counts['new'], 'ticket')}"
    say(f"{created}; {counts['known']} known, {counts['left out']} left out{why}")


def _title(found: Found) -> str:
    place = next(map(str, found.spots), "")
    text = " ".join(found.text.split())
    return f"{place}: {text}" if place else text


def _item(done: Imported, *, written: bool) -> dict[str, object]:
    found = done.found
    spot = next(iter(found.spots), None)
    return {
        "fingerprint": found.fingerprint,
        "outcome": done.outcome,
        "why": found.left_out or None,
        "written": written,
        "id": done.id,
        "path": done.path,
        "tool": found.tool,
        "rule": found.rule or None,
        "severity": found.severity.value,
        "text": found.text,
        "file": spot.file.path if spot and spot.file else None,
        "uri": spot.file.uri if spot and spot.file else None,
        "line": spot.lines.first if spot and spot.lines else None,
    }


def _doubts(log: Log) -> Iterator[str]:
    """What the log says of itself that makes it less than the whole truth."""
    for number, run in enumerate(log.runs):
        name = f"runs[{number}] ({run.driver.name or UNNAMED})"
        if any(invocation.execution_successful is False for invocation in run.invocations or ()):
            yield f"{name}: the tool did not end well, and may have found more"
        if run.results is None:
            yield f"{name}: the tool lists no results; it may not have looked for any"
        if run.external_property_file_references:
            yield f"{name}: what it keeps in other files is not read"


def _strays(done: Sequence[Imported]) -> Iterator[str]:
    """New tickets that name no place because the log names none of this repository's."""
    files = [found.spots[0].file for found in (each.found for each in done if each.is_new) if found.spots]
    strays = [file.uri for file in files if file and not file.path]
    if strays:
        yield (
            f"{counted(len(strays), 'new ticket')} without a location: {plain(strays[0])} is not within this "
            "repository (--source-root says where it was when the tool ran)"
        )
