"""Run a verifier on its own, with torch alone: measure the variants beside it and print their laws.

Nothing is isolated and no claim is checked here: that is what ``tickets verify`` does.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from finding_tickets.claims.fitting import fit_metrics, fit_sites
from finding_tickets.errors import ExitCode, TicketsError
from finding_tickets.measure.report import METERS, CannotMeasureError, Report, Run, at_text
from finding_tickets.register.convention import fixes_folder
from finding_tickets.verify.variants import find_variants
from finding_tickets.workload import Workload


def run(workload: Workload) -> None:
    """Measure the variants of the verifier that this process runs, print their laws and set the exit code."""
    parser = argparse.ArgumentParser(description=f"Measure the variants of {workload.ticket}.")
    parser.add_argument("--meter", choices=METERS, default="auto", help="what counts during a run")
    meter = parser.parse_args().meter
    try:
        report = _measure(workload, Path(sys.argv[0]).resolve(), meter)
    except (TicketsError, CannotMeasureError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code if isinstance(error, TicketsError) else ExitCode.INCONCLUSIVE)
    print("\n".join(render(workload.ticket, report)))


def _measure(workload: Workload, verifier: Path, meter: str) -> Report:
    from finding_tickets.measure.choice import choose
    from finding_tickets.measure.loading import check_sweep, load_function
    from finding_tickets.measure.repeated import check_repeated
    from finding_tickets.measure.run import run as measure

    root = verifier.parent.parent
    check_sweep(workload, verifier.name)
    folder = fixes_folder(workload.ticket)
    variants = find_variants(folder, root)
    if not variants:
        raise CannotMeasureError(f"{folder}: holds no variant of {workload.ticket}")
    functions = {name: load_function(source, root) for name, source in variants.items()}
    chosen = choose(meter)
    report = measure(workload, functions, chosen, root)
    check_repeated(report, workload, functions, chosen, root)
    return report


def render(ticket: str, report: Report) -> Iterator[str]:
    """The report as lines: a table of laws with a column for each variant, then the sites of each."""
    yield f"{ticket} on {report.meter} ({report.device}), torch {report.torch}, {len(report.sweep)} points"
    yield from (f"not measured: {at_text(skipped.at)}: {skipped.why}" for skipped in report.not_measured)
    yield ""
    yield from _table(_laws(report))
    for name, runs in report.runs.items():
        yield from _trouble(name, runs)
        rows = [(f"{s.file}:{s.line}", s.function, s.what, str(s.fit)) for s in fit_sites(runs)]
        yield from ["", f"{name}:", *(f"  {line}" for line in _table(rows))]


def _laws(report: Report) -> list[Sequence[str]]:
    """A row for each metric that any variant counted at any point."""
    fits = {name: fit_metrics(runs) for name, runs in report.runs.items()}
    metrics = dict.fromkeys(metric for of_variant in fits.values() for metric in of_variant)
    rows = [[metric, *(str(fits[name].get(metric, "-")) for name in fits)] for metric in metrics]
    return [["metric", *fits], *(row for row in rows if set(row[1:]) - {"0", "-"})]


def _trouble(name: str, runs: Iterable[Run]) -> Iterator[str]:
    for run in runs:
        if run.error:
            yield f"{name} at {at_text(run.at)}: {run.error}"
        if run.measurement.unknown:
            yield f"{name} at {at_text(run.at)}: unknown operations {', '.join(run.measurement.unknown)}"


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
