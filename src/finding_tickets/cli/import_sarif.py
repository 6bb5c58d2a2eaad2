"""``tickets import``: a ticket for each finding of another tool that has none yet, from a log in SARIF."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from finding_tickets.cli.options import HERE, AgentWord, OutputFormat, Root, flag, option, read_input
from finding_tickets.cli.output import Format, say, write_json, write_table
from finding_tickets.errors import ExitCode, UsageError
from finding_tickets.ground.files import locked
from finding_tickets.importers.drafts import draft_of_finding, imported_findings, reported_by
from finding_tickets.importers.sarif import UNNAMED, SarifFinding, SarifLog, absolute_path, found_in, read_log
from finding_tickets.register.config import chosen_root
from finding_tickets.report.text import counted, fields_of, single_line

TEMPLATE = "imported.md.j2"
NEW, KNOWN, LEFT_OUT = "new", "known", "left out"


@dataclass(frozen=True)
class ImportOutcome:
    """What became of a finding, in a word, and its ticket where it has one."""

    found: SarifFinding
    outcome: str
    path: str | None = None
    id: str | None = None

    @property
    def title(self) -> str:
        """Where it was found, and what the tool says of it, in a line."""
        text, spots = " ".join(self.found.text.split()), self.found.spots
        return f"{spots[0]}: {text}" if spots else text

    def item(self, dry_run: bool) -> dict[str, object]:
        """The finding as JSON has it."""
        found = self.found
        spot = next(iter(found.spots), None)
        return {
            **fields_of(self, "outcome", "id", "path"),
            **fields_of(found, "fingerprint", "tool", "text"),
            "why": found.left_out or None,
            "written": self.outcome == NEW and not dry_run,
            "rule": found.rule or None,
            "severity": found.severity.value,
            "file": spot.path if spot else None,
            "uri": (spot.uri or None) if spot else None,
            "line": spot.lines[0] if spot and spot.lines else None,
        }


def import_results(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A log in SARIF 2.1.0; - is stdin.")],
    root: Root = HERE,
    source_root: Annotated[str | None, option("FOLDER", "The repository's folder when the tool ran.")] = None,
    batch: Annotated[int | None, typer.Option(min=0, help="The batch, for IDs such as B7-PT-04.")] = None,
    agent: AgentWord = None,
    dry_run: Annotated[bool, flag("--dry-run", "Print what would be written; write nothing.")] = False,
    output_format: OutputFormat = Format.TABLE,
) -> ExitCode:
    """Write tickets for findings in SARIF."""
    if source_root is not None and absolute_path(source_root) is None:
        raise UsageError(f"--source-root {source_root}: not an absolute path")
    log = read_log(*read_input(file))
    try:
        here, is_register = chosen_root(root), True
    except UsageError:
        # The first import of a repository starts its register here.
        if root != HERE:
            raise
        here, is_register = Path.cwd(), False
    # Logs name files by where the repository is now, or by where it was when the tool ran.
    roots = [str(here), str(root.absolute()), *([source_root] if source_root else [])]
    findings = list(found_in(log, roots))
    done: list[ImportOutcome] = []
    # Whoever imports into the same folder meanwhile waits, and then knows the tickets written here.
    with locked(here, str(here), patience=math.inf):
        paths = imported_findings(here) if is_register else {}
        writer = None
        try:
            for found in findings:
                mark = found.fingerprint
                if found.left_out or mark in paths:
                    outcome = KNOWN if mark in paths else LEFT_OUT
                    done.append(ImportOutcome(found, outcome, paths.get(mark)))
                    continue
                if writer is None:
                    # With nothing to write, neither the register is read nor what fills templates in.
                    from finding_tickets.cli.new import TicketWriter
                    from finding_tickets.report.templates import Attached

                    writer = TicketWriter(root)
                content = draft_of_finding(found, batch, agent, writer.register.config.vocabulary)
                context = {"source": reported_by(found), "fingerprint": mark}
                attached = Attached(ticket=TEMPLATE, context=context, mark=mark)
                ticket_id, (path, *_) = writer.add(content, attached, dry_run=dry_run)
                done.append(ImportOutcome(found, NEW, path, ticket_id))
        finally:
            # Of several tickets, those before one that cannot be written stay.
            if done or not findings:
                _show(done, output_format, dry_run=dry_run)
    for doubt in _doubts(log, done):
        say(doubt)
    return ExitCode.OK


def _show(done: Sequence[ImportOutcome], output_format: Format, *, dry_run: bool) -> None:
    """Print what became of the findings: all of them as JSON, else those that had no ticket."""
    if output_format is Format.JSON:
        write_json("import", (each.item(dry_run) for each in done))
    elif new := [each for each in done if each.outcome == NEW]:
        rows = ((str(each.path), each.found.severity.value, each.title) for each in new)
        write_table(("FILE", "SEVERITY", "TITLE"), rows)
    counts = Counter(each.outcome for each in done)
    reasons = Counter(each.found.left_out for each in done if each.outcome == LEFT_OUT)
    why = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
    created = f"{'would create' if dry_run else 'created'} {counted(counts[NEW], 'ticket')}"
    say(f"{created}; {counts[KNOWN]} known, {counts[LEFT_OUT]} left out{f' ({why})' if why else ''}")


def _doubts(log: SarifLog, done: Sequence[ImportOutcome]) -> Iterator[str]:
    """Why the tool may have found more than was imported, or elsewhere."""
    for number, run in enumerate(log.runs):
        name = f"runs[{number}] ({run.driver.name or UNNAMED})"
        if any(invocation.execution_successful is False for invocation in run.invocations or ()):
            yield f"{name}: the tool failed, and may have found more"
        if run.results is None:
            yield f"{name}: the tool lists no results; it may not have looked for any"
        if run.external_property_file_references:
            yield f"{name}: its external property files are not read"
    spots = [each.found.spots[0] for each in done if each.outcome == NEW and each.found.spots]
    strays = [spot.uri for spot in spots if spot.uri and not spot.path]
    if strays:
        yield (
            f"{counted(len(strays), 'new ticket')} without a location: {single_line(strays[0])} is "
            "not within this repository (--source-root says where it was when the tool ran)"
        )
