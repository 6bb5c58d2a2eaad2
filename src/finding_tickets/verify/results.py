"""What came back from a measurement, as the records that are shown and kept."""

from __future__ import annotations

from finding_tickets.claims.fitting import Fit, SiteFit
from finding_tickets.measure.report import Report, Run
from finding_tickets.measure.tasks import Measured
from finding_tickets.model.verification import NotMeasured, Sample, SiteLaw, VariantResult


def variant_results(measured: Measured) -> dict[str, VariantResult]:
    """Samples, laws and sites of every variant, in the order in which they were measured."""
    return {
        name: _variant(runs, measured.metrics[name], measured.sites[name])
        for name, runs in measured.report.runs.items()
    }


def not_measured(report: Report) -> tuple[NotMeasured, ...]:
    """The points that the meter could not run."""
    return tuple(NotMeasured(at=skipped.at, why=skipped.why) for skipped in report.not_measured)


def _variant(runs: tuple[Run, ...], metrics: dict[str, Fit], sites: tuple[SiteFit, ...]) -> VariantResult:
    return VariantResult(
        laws={name: fit.law for name, fit in metrics.items() if fit.law},
        growth={name: fit.growth for name, fit in metrics.items() if fit.growth},
        samples=tuple(Sample(at=run.at, metrics=run.measurement.metrics, error=run.error) for run in runs),
        sites=tuple(
            SiteLaw(
                file=site.file,
                line=site.line,
                function=site.function,
                what=site.what,
                law=site.fit.law,
                growth=site.fit.growth,
            )
            for site in sites
        ),
        unknown=tuple(sorted({name for run in runs for name in run.measurement.unknown})),
        approximate=tuple(sorted({name for run in runs for name in run.measurement.approximate})),
    )
