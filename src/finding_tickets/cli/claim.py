"""``tickets claim``: measure whether a claim about a cost is true. Nothing is written."""

from __future__ import annotations

import re
import shlex
import sys
from dataclasses import replace
from typing import Annotated

import typer

from finding_tickets.claims.check import check_counts
from finding_tickets.claims.language import (
    ExpressionError,
    check_variables,
    parse_condition,
    suggest,
)
from finding_tickets.claims.metrics import COUNTS, OF_STATEMENTS
from finding_tickets.cli.options import (
    HERE,
    MEASURING,
    Measuring,
    OutputFormat,
    Root,
    option,
)
from finding_tickets.cli.output import Format, style, used_width, write, write_json
from finding_tickets.errors import ExitCode, UnreachableError, UsageError
from finding_tickets.ground.statements import find_statement
from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.register.config import read_config, repository_of
from finding_tickets.report import probe as report
from finding_tickets.report.text import counted, fields_of
from finding_tickets.verify import probing

FORM = 'write "METRIC of FILE:LINE is VALUE", of FILE:FUNCTION, or without a place of the whole run'
SENTENCE = re.compile(
    r"(?P<metric>\w+)(?: of (?P<place>\S+:\S+))? (?:is|are) (?P<value>.+)"
)
# What people call ``syncs``.
WAITS = "waits"
# What is said of a claim, in which style, and the exit code, by whether it holds.
ANSWERS = {
    True: ("holds", "green", ExitCode.OK),
    False: ("false", "red", ExitCode.GATE_FAILED),
    None: ("not decided", "magenta", ExitCode.INCONCLUSIVE),
}


def claim(
    text: Annotated[
        str, typer.Argument(metavar="CLAIM", help='"syncs of train.py:step is 1".')
    ],
    run: Annotated[
        str | None, option("COMMAND", 'A script, module or test: "train.py --steps 3".')
    ] = None,
    function: Annotated[
        str | None, option("FUNCTION", "Call pkg.train:step or train.py:step.")
    ] = None,
    sweep: Annotated[
        list[str] | None, option("NAME=1,2,5", "Values to call the function with.")
    ] = None,
    root: Root = HERE,
    how: Measuring = MEASURING,
    output_format: OutputFormat = Format.TABLE,
) -> ExitCode:
    """Measure whether a claim about a cost holds; write nothing."""
    metric, about, value = _parse(text)
    file, _, name = about.rpartition(":")
    line = int(name) if name.isdecimal() else 0
    known = OF_STATEMENTS if line else COUNTS
    if metric not in known:
        where = " by line" if line else ""
        raise UsageError(f"{metric} is not counted{where}", hint=suggest(metric, known))
    command = shlex.split(function or run or "")
    if not command or (run and function):
        raise UsageError(
            "what is to run?",
            hint='--run "train.py --steps 3", or --function pkg.train:step',
        )
    root = repository_of(root).resolve()
    place = find_statement(root, file, line, "")
    if line and not place.last_line:
        raise UsageError(f"there is no statement at {about}", hint=FORM)
    request = probing.ProbeRequest(
        target=command[0],
        root=root,
        arguments=tuple(command[1:]),
        sweep=tuple(sweep or ()),
        within=about if about not in ("", function) and not line else None,
        own_lines=bool(line),
        **how.limits(read_config(root)),
    )
    try:
        check_variables(parse_condition(value), probing.values_of(request.sweep))
    except ExpressionError as error:
        raise UsageError(f"{value!r}: {error.message}", hint=error.hint) from None
    with Isolation(probing.PRELOAD) as isolation:
        probed = probing.probe(request, isolation)
    _check_complete(text, metric, probed)
    cost = (
        report.cost_of(root, probed, place, metric) if line else probed.metrics[metric]
    )
    checked = check_counts(
        metric, value, probed.points, cost.values, probed.points, cost.ranges
    )
    if line:
        beside = [
            site for site in probed.sites if place.line <= site.line <= place.last_line
        ]
        probed = replace(
            probed, sites=tuple(site for site in beside if site.file == file)
        )
    if output_format is Format.JSON:
        item = fields_of(checked, "holds", "measured", "counterexamples")
        write_json(
            "claim",
            [{"claim": text, **item, "sites": report.probe_item(probed)["sites"]}],
        )
    else:
        word, look, _ = ANSWERS[checked.holds]
        often = (
            f" in each of {counted(probed.calls[0].counted, 'call')}:"
            if probed.calls
            else ""
        )
        head = f"{style(word, look)}: {text}; measured{often} {checked.measured}"
        if line and not probed.sites:
            head += "; nothing was counted there: see whether it runs"
        write(
            "\n".join(
                [
                    head,
                    *report.cost_lines(probed, metric, style, used_width(sys.stdout)),
                ]
            )
        )
    return ANSWERS[checked.holds][2]


def _parse(text: str) -> tuple[str, str, str]:
    """Return the metric, the place and the value that a sentence states; raise UsageError for any other."""
    said = SENTENCE.fullmatch(" ".join(text.split()))
    if said is None:
        raise UsageError(f"{text!r} is no claim", hint=FORM)
    return (
        "syncs" if said["metric"] == WAITS else said["metric"],
        said["place"] or "",
        said["value"],
    )


def _check_complete(text: str, metric: str, probed: probing.Probed) -> None:
    """Raise UnreachableError if what was counted is not all that there is, or nothing at all."""
    why = [*probed.errors, *probed.not_measured]
    why += [] if metric in probed.metrics else [f"{metric} has no value"]
    costs = {name for name, cost in probed.metrics.items() if any(cost.values)}
    why += [] if costs - {"host_peak_bytes"} else ["nothing ran on the device"]
    # Calls may differ in what nobody claims.
    if metric in probed.metrics and probed.metrics[metric].growth:
        why += [
            f"calls differ: {calls.differ}" for calls in probed.calls if calls.differ
        ]
    why += [f"the cost of {name} is not known" for name in probed.unknown]
    if why:
        raise UnreachableError(f"cannot be measured: {why[0]}", file=text)
