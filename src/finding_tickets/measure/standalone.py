"""Run a verifier on its own, with torch alone: measure the variants beside it and print their laws.

Nothing is isolated and no claim is checked here: that is what ``tickets verify`` does.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from finding_tickets.claims.check import at_text
from finding_tickets.claims.metrics import METRICS
from finding_tickets.errors import ExitCode, TicketsError
from finding_tickets.ground.files import fixes_folder
from finding_tickets.measure.loading import check_sweep, load_function
from finding_tickets.measure.meter import choose
from finding_tickets.measure.run import JobReport, check_repeated, run
from finding_tickets.measure.tasks import METERS, CannotMeasureError, find_variants
from finding_tickets.measure.workloads import Workload


def measure_beside(workload: Workload) -> None:
    """Measure the variants beside the verifier that is run, and print their laws."""
    parser = argparse.ArgumentParser(description=f"Measure the variants of {workload.ticket}.")
    parser.add_argument("--meter", choices=METERS, default="auto", help="what counts during a run")
    meter = parser.parse_args().meter
    try:
        verifier = Path(sys.argv[0]).resolve()
        root = verifier.parent.parent
        check_sweep(workload, verifier.name)
        folder = fixes_folder(workload.ticket)
        variants = find_variants(folder, root)
        if not variants:
            raise CannotMeasureError(f"{folder}: holds no variant of {workload.ticket}")
        functions = {name: load_function(path, root) for name, path in variants.items()}
        chosen = choose(meter)
        report = run(workload, functions, chosen, root)
        check_repeated(report, workload, functions, chosen, root)
    except (TicketsError, CannotMeasureError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code if isinstance(error, TicketsError) else ExitCode.INCONCLUSIVE)
    print("\n".join(render(workload.ticket, report)))


def render(ticket: str, report: JobReport) -> Iterator[str]:
    """The report as lines: a table of laws with a column for each variant, then the sites of each."""
    measured = report.to_json()
    variants = measured["variants"]
    heading = f"{ticket} on {report.meter} ({report.device}), torch {measured['torch']}"
    yield f"{heading}, {len(report.sweep)} points"
    yield from (f"not measured: {at_text(each['at'])}: {each['why']}" for each in report.not_measured)
    yield ""
    # A law or what stands in for it, in the order of the metrics.
    fits = [{**of_variant["growth"], **of_variant["laws"]} for of_variant in variants.values()]
    rows = [[metric, *(of_variant.get(metric, "-") for of_variant in fits)] for metric in METRICS]
    yield from _table([["metric", *variants], *(row for row in rows if set(row[1:]) - {"0", "-"})])
    for name, runs in report.runs.items():
        for one in runs:
            if one.error:
                yield f"{name} at {at_text(one.at)}: {one.error}"
            if one.unknown:
                yield f"{name} at {at_text(one.at)}: unknown operations {', '.join(one.unknown)}"
        sites = [
            (f"{s['file']}:{s['line']}", s["function"], s["what"], s["law"] or s["growth"])
            for s in variants[name]["sites"]
        ]
        yield from ["", f"{name}:", *(f"  {line}" for line in _table(sites))]


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
