"""``tickets history``: what was measured of a ticket at every commit that changed its evidence."""

from __future__ import annotations

from finding_tickets.cli.editing import Id
from finding_tickets.cli.options import HERE, OutputFormat, Root
from finding_tickets.cli.output import Format, say, write_json, write_table
from finding_tickets.errors import ExitCode
from finding_tickets.register.load import load


def history(ticket: Id, root: Root = HERE, output_format: OutputFormat = Format.TABLE) -> ExitCode:
    """Show verdict and law at every commit that changed the evidence."""
    from finding_tickets.report.past import HEADER, past_item, past_row
    from finding_tickets.verify.past import past

    register = load(root)
    document = register.find(ticket)
    known = past(document.id.value, register.root, register.config.evidence)
    if output_format is Format.JSON:
        write_json("history", [past_item(step) for step in known.steps])
    elif known.steps:
        write_table(HEADER, map(past_row, known.steps))
    else:
        say(f"{document.id.value} has no evidence in any commit of the current branch")
    for gap in known.gaps:
        say(gap)
    return ExitCode.OK
