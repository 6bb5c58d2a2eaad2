"""``tickets import``: a ticket for each finding of another tool that has none yet, from a log in SARIF."""

from __future__ import annotations

import fcntl
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from finding_tickets.cli.new import STDIN, add, read_input, register_to_add_to, taken_names, texts_of
from finding_tickets.cli.options import HERE, OutputFormat, Root
from finding_tickets.cli.output import Format, counted, plain, say, write_json, write_table
from finding_tickets.errors import ExitCode, UsageError
from finding_tickets.importers.drafts import draft, known, source
from finding_tickets.importers.sarif import UNNAMED, Found, SarifLog, absolute_path, found_in, read_log
from finding_tickets.register.identifiers import free_ids
from finding_tickets.register.load import Register
from finding_tickets.register.new import Draft
from finding_tickets.register.root import chosen_root
from finding_tickets.report.templates import Attached

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
    if source_root is not None and absolute_path(source_root) is None:
        raise UsageError(f"--source-root {source_root}: not an absolute path")
    log = read_log(read_input(file), "standard input" if file == STDIN else file)
    try:
        here, is_register = chosen_root(root), True
    except UsageError:
        # The first import of a repository starts its register here.
        if root != HERE:
            raise
        here, is_register = Path.cwd(), False
    roots = [str(here), str(root.absolute()), *([source_root] if source_root else [])]
    findings = list(found_in(log, roots))
    done: list[Imported] = []
    with _locked(here):
        paths = known(here) if is_register else {}
        new = {each.fingerprint for each in findings if not each.left_out} - paths.keys()
        # With nothing to write the register need not be read.
        register = register_to_add_to(root) if new else None
        ids = free_ids(register.documents, batch, agent, taken_names(register)) if register else iter(())
        try:
            for found in findings:
                if register and found.fingerprint in new:
                    content = draft(found, batch, agent, register.config.vocabulary)
                    done.append(_write(register, found, content, ids, dry_run=dry_run))
                else:
                    done.append(Imported(found, path=paths.get(found.fingerprint)))
        finally:
            # Of several tickets, those before one that cannot be written stay.
            _show(done, output_format, dry_run=dry_run)
    for doubt in _doubts(log, done):
        say(doubt)
    return ExitCode.OK


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Wait for other imports into the same folder, whose tickets are known then."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _write(
    register: Register, found: Found, content: Draft, ids: Iterator[str], *, dry_run: bool
) -> Imported:
    """Write a ticket for a finding; a dry run only finds out its ID and its path."""
    context = {"source": source(found), "fingerprint": found.fingerprint}
    attached = Attached(ticket=TEMPLATE, context=context, mark=found.fingerprint)
    if dry_run:
        ticket_id = next(ids)
        files = list(texts_of(register, content, ticket_id, attached))
    else:
        ticket_id, files = add(register, content, ids, attached)
    return Imported(found, ticket_id, files[0], is_new=True)


def _show(done: Sequence[Imported], output_format: Format, *, dry_run: bool) -> None:
    new = [each for each in done if each.is_new]
    if output_format is Format.JSON:
        write_json("import", [_item(each, written=each.is_new and not dry_run) for each in done])
    elif new:
        rows = []
        for each in new:
            place = next(map(str, each.found.spots), "")
            text = " ".join(each.found.text.split())
            title = f"{place}: {text}" if place else text
            rows.append((str(each.path), each.found.severity.value, title))
        write_table(("FILE", "SEVERITY", "TITLE"), rows)
    counts = Counter(each.outcome for each in done)
    reasons = Counter(each.found.left_out for each in done if each.outcome == "left out")
    why = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
    created = f"{'would create' if dry_run else 'created'} {counted(counts['new'], 'ticket')}"
    left_out = f"{counts['left out']} left out{f' ({why})' if why else ''}"
    say(f"{created}; {counts['known']} known, {left_out}")


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
        "file": spot.path if spot else None,
        "uri": (spot.uri or None) if spot else None,
        "line": spot.lines[0] if spot and spot.lines else None,
    }


def _doubts(log: SarifLog, done: Sequence[Imported]) -> Iterator[str]:
    """Why the tool may have found more than was imported, or elsewhere."""
    for number, run in enumerate(log.runs):
        name = f"runs[{number}] ({run.driver.name or UNNAMED})"
        if any(invocation.execution_successful is False for invocation in run.invocations or ()):
            yield f"{name}: the tool did not end well, and may have found more"
        if run.results is None:
            yield f"{name}: the tool lists no results; it may not have looked for any"
        if run.external_property_file_references:
            yield f"{name}: what it keeps in other files is not read"
    spots = [each.found.spots[0] for each in done if each.is_new and each.found.spots]
    strays = [spot.uri for spot in spots if spot.uri and not spot.path]
    if strays:
        yield (
            f"{counted(len(strays), 'new ticket')} without a location: {plain(strays[0])} is not within this "
            "repository (--source-root says where it was when the tool ran)"
        )
