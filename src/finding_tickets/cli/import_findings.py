"""``tickets import``: a ticket for each finding of a report or of another tool that has none yet."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from finding_tickets.cli.options import (
    HERE,
    AgentWord,
    OutputFormat,
    Root,
    flag,
    option,
    read_input,
)
from finding_tickets.cli.output import Format, say, write_json, write_table
from finding_tickets.errors import ExitCode, UsageError
from finding_tickets.ground.files import locked
from finding_tickets.importers.drafts import (
    draft_of_finding,
    imported_findings,
    reported_by,
)
from finding_tickets.importers.sarif import SarifFinding, absolute_path, read_log
from finding_tickets.model.vocabulary import Vocabulary
from finding_tickets.register.config import find_root, read_config
from finding_tickets.report.text import counted, fields_of, single_line

if TYPE_CHECKING:
    from finding_tickets.importers.reports import ReportFinding

TEMPLATE = "imported.md.j2"
NEW, KNOWN, LEFT_OUT = "new", "known", "left out"
MARKDOWN = (".md", ".markdown")
JSON = (".sarif", ".json")
MOST_LOST = 8
BOMS = b"\xef\xbb\xbf\xff\xfe \t\r\n"


@dataclass(frozen=True)
class ImportOutcome:
    """The outcome of a finding's import, and its ticket if it has one."""

    found: SarifFinding | ReportFinding
    outcome: str
    path: str | None = None
    id: str | None = None

    @property
    def severity(self) -> str:
        """The severity for a column."""
        return self.found.severity.value if self.found.severity else "-"

    @property
    def title(self) -> str:
        """The place and the message, in one line."""
        text = " ".join(self.found.text.split())
        return f"{self.found.spots[0]}: {text}" if self.found.spots else text

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
            "severity": found.severity.value if found.severity else None,
            "file": spot.path if spot else None,
            "uri": (spot.uri or None) if spot else None,
            "line": spot.lines[0] if spot and spot.lines else None,
        }


def import_results(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="A Markdown report or SARIF; - is stdin."),
    ],
    root: Root = HERE,
    source_root: Annotated[
        str | None, option("FOLDER", "The repository's folder when the tool ran.")
    ] = None,
    batch: Annotated[
        int | None, typer.Option(min=0, help="The batch, for IDs such as B7-PT-04.")
    ] = None,
    agent: AgentWord = None,
    dry_run: Annotated[
        bool, flag("--dry-run", "Print what would be written; write nothing.")
    ] = False,
    yes: Annotated[bool, flag("--yes", "Write what a report has.")] = False,
    output_format: OutputFormat = Format.TABLE,
) -> ExitCode:
    """Write tickets for findings in a report or SARIF."""
    if source_root is not None and absolute_path(source_root) is None:
        raise UsageError(f"--source-root {source_root}: not an absolute path")
    data, name = read_input(file)
    try:
        here, is_register = find_root(root), True
    except UsageError:
        # The first import of a repository starts its register here.
        if root != HERE:
            raise
        here, is_register = Path.cwd(), False
    importing = _Import(root, here, is_register, batch, agent)
    is_report = not _is_log(data, name)
    findings: Sequence[SarifFinding] | Sequence[ReportFinding]
    if is_report:
        findings = _report_findings(importing, data, name)
    else:
        # Logs name files by where the repository is now, or by where it was when the tool ran.
        roots = [
            str(here),
            str(root.absolute()),
            *([source_root] if source_root else []),
        ]
        findings = read_log(data, name, roots)
    # A log is written at once. What a report finds is looked at first.
    is_written = not dry_run and (yes or not is_report)
    done: list[ImportOutcome] = []
    try:
        done.extend(importing.outcomes(findings, dry_run=not is_written))
    finally:
        # Of several tickets, those before one that cannot be written stay.
        if done or not findings:
            _show(done, output_format, dry_run=not is_written)
    new = [each for each in done if each.outcome == NEW]
    if bare := [str(each.id) for each in new if each.found.severity is None]:
        say(f"without a severity, since the report states none: {', '.join(bare)}")
    lost = [
        f"{each.found.spots[0]} {each.found.text}"
        for each in done
        if is_report and each.found.left_out
    ]
    if lost:
        more = f" and {len(lost) - MOST_LOST} more" if len(lost) > MOST_LOST else ""
        say(
            f"no finding, without a number, a severity or a place: {'; '.join(lost[:MOST_LOST])}{more}"
        )
    if not is_report:
        _say_strays(new)
    elif new and not (is_written or dry_run):
        raise UsageError("nothing was written", hint="--yes writes it")
    return ExitCode.OK


def _is_log(data: bytes, name: str) -> bool:
    """Return True if a file is a log in SARIF by its content; a report may begin with a link."""
    begun = data.lstrip(BOMS)
    is_report = name.endswith(MARKDOWN) and not begun.startswith(b"{")
    return not is_report and (
        begun.startswith((b"{", b"[")) or not begun or name.endswith(JSON)
    )


def _report_findings(importing: _Import, data: bytes, name: str) -> list[ReportFinding]:
    """Return the findings of a report, which is known by its path in the repository."""
    from finding_tickets.importers.reports import findings_in

    here = importing.here
    vocabulary = read_config(here).vocabulary if importing.is_register else Vocabulary()
    path = Path(name).resolve()
    if path.is_file():
        name = (
            path.relative_to(here).as_posix()
            if path.is_relative_to(here.resolve())
            else path.name
        )
    return findings_in(data, name, vocabulary)


@dataclass(frozen=True)
class _Import:
    """Tickets for the findings that have none yet, in the register at ``here``, if there is one yet."""

    root: Path
    here: Path
    is_register: bool
    batch: int | None
    agent: str | None

    def outcomes(
        self,
        findings: Sequence[SarifFinding] | Sequence[ReportFinding],
        *,
        dry_run: bool,
    ) -> Iterator[ImportOutcome]:
        """Write the tickets, or find out which there would be; what became of each finding, one by one."""
        # Another import into the same folder waits, and then finds the tickets written here.
        with locked(self.here, str(self.here), patience=math.inf):
            paths = imported_findings(self.here) if self.is_register else {}
            writer = None
            for found in findings:
                mark = found.fingerprint
                if mark in paths:
                    yield ImportOutcome(found, KNOWN, paths[mark])
                    continue
                if found.left_out:
                    yield ImportOutcome(found, LEFT_OUT)
                    continue
                if writer is None:
                    # With nothing to write, neither the register is read nor what fills templates in.
                    from finding_tickets.cli.new import TicketWriter
                    from finding_tickets.report.templates import Attached

                    writer = TicketWriter(self.root)
                vocabulary = writer.register.config.vocabulary
                if isinstance(found, SarifFinding):
                    content = draft_of_finding(found, self.batch, self.agent)
                    source = reported_by(found.tool, found.rule)
                else:
                    from finding_tickets.importers.reports import draft_of_report

                    content = draft_of_report(found, self.batch, self.agent, vocabulary)
                    source = reported_by(f"{found.tool}:", found.rule)
                context = {"source": source, "fingerprint": mark}
                attached = Attached(ticket=TEMPLATE, context=context, mark=mark)
                ticket_id, (path, *_) = writer.add(content, attached, dry_run=dry_run)
                yield ImportOutcome(found, NEW, path, ticket_id)


def _show(
    done: Sequence[ImportOutcome], output_format: Format, *, dry_run: bool
) -> None:
    """Print what became of the findings: all of them as JSON, else those that had no ticket."""
    if output_format is Format.JSON:
        write_json("import", (each.item(dry_run) for each in done))
    elif new := [each for each in done if each.outcome == NEW]:
        rows = ((str(each.path), each.severity, each.title) for each in new)
        write_table(("FILE", "SEVERITY", "TITLE"), rows)
    counts = Counter(each.outcome for each in done)
    created = (
        f"{'would create' if dry_run else 'created'} {counted(counts[NEW], 'ticket')}"
    )
    say(f"{created}; {counts[KNOWN]} known, {counts[LEFT_OUT]} left out")


def _say_strays(new: Sequence[ImportOutcome]) -> None:
    """Name a new finding that is not within the repository: the tool may have run elsewhere."""
    spots = [each.found.spots[0] for each in new if each.found.spots]
    strays = [spot.uri for spot in spots if spot.uri and not spot.path]
    if strays:
        say(
            f"{counted(len(strays), 'new ticket')} without a location: {single_line(strays[0])} is "
            "not within this repository (--source-root says where it was when the tool ran)"
        )
