"""Laws of metrics and of the lines that cause them."""

from __future__ import annotations

from tests.verify.conftest import run, site_run

from finding_tickets.claims.fitting import Fit, SiteFit, fit_metrics, fit_sites
from finding_tickets.measure.measurement import Site

SIZES = (1, 2, 3, 5, 8)


def test_every_metric_gets_its_law() -> None:
    """Metrics are fitted one by one over all runs that measured them."""
    fits = fit_metrics([run({"n": n}, syncs=4 * n, launches=7) for n in SIZES])
    assert {"syncs": Fit("4*n", None), "launches": Fit("7", None), "raised": Fit("0", None)} == fits


def test_runs_that_raised_take_no_part() -> None:
    """What was counted up to an exception would bend the law of the whole."""
    runs = [run({"n": n}, syncs=4 * n) for n in SIZES] + [run({"n": 13}, "RuntimeError: no", syncs=1)]
    assert "4*n" == fit_metrics(runs)["syncs"].law


def test_how_a_run_ended_is_fitted_over_all_runs() -> None:
    """Whether a variant raises may itself follow a law: here it does so where the flag is set."""
    runs = [run({"n": n, "odd": n % 2}, "RuntimeError: no" if n % 2 else None) for n in SIZES]
    assert Fit("odd", None) == fit_metrics(runs)["raised"]


def test_how_a_run_ended_is_never_more_than_once() -> None:
    """One and two devices do not prove ``devices - 1``; two flags that were never both set are not added."""
    devices = [run({"n": n, "devices": 1 + n % 2}, "RuntimeError: no" if n % 2 else None) for n in SIZES]
    flags = [run({"n": n, "a": int(n < 3), "b": int(n > 4)}, None if n == 3 else "E: no") for n in SIZES]
    expected = Fit(None, "no law, 0..1")
    assert [expected, expected] == [fit_metrics(runs)["raised"] for runs in (devices, flags)]


def test_a_count_is_no_flag_because_other_runs_raised() -> None:
    """Where runs on two devices raised, none and one of them are left and prove no slope."""
    runs = [
        run({"n": n, "devices": n % 3}, "E: no" if n % 3 == 2 else None, syncs=2 * (n % 3)) for n in range(12)
    ]
    assert Fit(None, "no law, 0..2") == fit_metrics(runs)["syncs"]


def test_a_metric_measured_at_some_points_is_fitted_over_those() -> None:
    """Graph breaks are counted on one device only."""
    runs = [run({"n": n, "devices": 1}, graph_breaks=2) for n in SIZES] + [run({"n": 3, "devices": 2})]
    assert Fit("2", None) == fit_metrics(runs)["graph_breaks"]


def test_rivals_are_shown_and_are_no_law() -> None:
    """Where the sweep cannot tell two laws apart, both are named and neither is stated."""
    runs = [run({"n": n, "total": 64 * n}, d2h_bytes=256 * n) for n in SIZES]
    assert Fit(None, "256*n or 4*total") == fit_metrics(runs)["d2h_bytes"]


def test_a_site_counts_zero_where_it_is_absent() -> None:
    """A line that waits once a tensor beyond the first is not there at all with a single tensor."""
    loop, end = (Site("fixes/x/found.py", line, "check", "stream_syncs", 1) for line in (7, 9))
    runs = [site_run({"n": n}, end, *[Site(*place(loop), n - 1)] * (n > 1)) for n in SIZES]
    expected = (SiteFit(*place(loop), Fit("n - 1", None)), SiteFit(*place(end), Fit("1", None)))
    assert expected == fit_sites(runs)


def place(site: Site) -> tuple[str, int, str, str]:
    """A site without its count."""
    return site.file, site.line, site.function, site.what
