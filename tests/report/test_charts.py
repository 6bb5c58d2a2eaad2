"""Charts: where their marks stand, and the pictures that are made of them."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from finding_tickets.model.verification import ClaimResult, Sample, VariantResult, Verification
from finding_tickets.model.vocabulary import Verdict
from finding_tickets.report.charts import MARGIN, PLOT, TOP, WIDTH, Chart, ChartSeries, charts, compact
from finding_tickets.report.templates import render

SWEEP = ({"n": 4, "m": 1}, {"n": 1, "m": 1}, {"n": 2, "m": 1})


def variant(law: str | None, *costs: int | None, error: str | None = None, **metrics: int) -> VariantResult:
    """A variant that cost so many syncs at each point, None where it was not measured."""
    samples = tuple(
        Sample(at=at, metrics={"syncs": cost} | metrics, error=error)
        for at, cost in zip(SWEEP, costs, strict=True)
        if cost is not None
    )
    return VariantResult(laws={"syncs": law} if law else {}, samples=samples, sites=())


def verification(variants: dict[str, VariantResult], *claimed: str) -> Verification:
    """What was measured for those variants, with a claim about each of those metrics."""
    claims = tuple(
        ClaimResult(
            id=f"found.{each}",
            variant="found",
            metric=each,
            claimed="1",
            measured="1",
            holds=True,
            expect="holds",
        )
        for each in claimed
    )
    return Verification(
        ticket="A-1",
        verdict=Verdict.VERIFIED,
        reason="",
        meter="simulated",
        torch="2.13.0",
        device="h200",
        sweep=SWEEP,
        variants=variants,
        claims=claims,
    )


def syncs(**variants: VariantResult) -> Chart:
    """The chart of syncs of those variants."""
    ((chart,), _) = charts(verification(variants))
    return chart


def picture(chart: Chart) -> str:
    """The chart as SVG."""
    return render("report_chart.html.j2", {"chart": chart}, Path("none"))


def said(series: ChartSeries) -> tuple[str, ...]:
    """What is known of a variant in words, column by column."""
    return tuple(point.said for point in series.points)


def marks(chart: Chart) -> list[list[tuple[float, float]]]:
    """Where the marks of each series stand in the picture."""
    groups = ET.fromstring(picture(chart)).findall("g")  # noqa: S314 - made here
    return [
        [(float(use.get("x", "")), float(use.get("y", ""))) for use in each.iter("use")] for each in groups
    ]


def lines(chart: Chart) -> list[list[tuple[float, float]]]:
    """The points that the lines of the picture run through."""
    found = re.findall('<polyline points="(.*?)"', picture(chart))
    return [
        [(float(x), float(y)) for x, _, y in (point.partition(",") for point in each.split())]
        for each in found
    ]


def labels(chart: Chart, words: str = "<text x") -> list[str]:
    """The values beside the plot, or those below it."""
    return re.findall(f"{words}[^>]*>(.*?)</text>", picture(chart))


def test_every_sample_is_a_mark() -> None:
    """A point that was not measured has none."""
    chart = syncs(found=variant("4*n", 16, 4, 8), fix=variant(None, 1, None, 1))
    assert [3, 2] == [len(each) for each in marks(chart)]
    assert ["4*n", "no law"] == [series.law for series in chart.series]


def test_points_stand_from_the_cheapest_to_the_dearest() -> None:
    """By what the first variant costs; the points say what they are and what was measured there."""
    chart = syncs(found=variant("4*n", 16, 4, 8), fix=variant("1", 1, 1, None))
    assert ("n 1", "n 2", "n 4") == chart.columns
    assert [("4", "8", "16"), ("1", "not measured", "1")] == [said(series) for series in chart.series]
    places = [x for x, _ in marks(chart)[0]]
    assert sorted(places) == places
    assert MARGIN < places[0]
    assert places[-1] < WIDTH


def test_values_stand_on_a_linear_scale() -> None:
    """0 is at the bottom; 16 of 20, the end of the scale, is at four fifths of the height."""
    chart = syncs(found=variant("4*n", 16, 0, 8))
    assert [TOP + PLOT, TOP + PLOT * 0.6, TOP + PLOT * 0.2] == [y for _, y in marks(chart)[0]]
    assert ["0", "5", "10", "15", "20"] == labels(chart)[:5]
    assert not chart.logarithmic


def test_a_wide_spread_takes_a_logarithmic_scale() -> None:
    """Ticks are 0 and powers of ten; 1 is left out, for which there is no room above the 0."""
    chart = syncs(found=variant(None, 0, 9, 10_000))
    assert chart.logarithmic
    assert ["0", "10", "100", "1k", "10k"] == labels(chart)[:5]
    # log(1 + 9) is a quarter of log(1 + 10 000), but for a hundred-thousandth.
    assert [TOP + PLOT, TOP + PLOT * 0.75, TOP] == [y for _, y in marks(chart)[0]]


def test_a_law_runs_through_the_points_that_it_explains() -> None:
    """The line of an exact law and its marks are at the same places; without a law there is no line."""
    chart = syncs(found=variant("4*n*m", 16, 4, 8), fix=variant(None, 1, 2, 1))
    assert marks(chart)[:1] == lines(chart)


def test_a_law_runs_where_nothing_was_measured_too() -> None:
    """Of a point that a variant was not run at, the law says what it would cost."""
    chart = syncs(found=variant("4*n", 16, 4, None))
    assert (2, 3) == (len(marks(chart)[0]), len(lines(chart)[0]))


def test_a_law_has_no_line_where_it_has_no_value() -> None:
    """A division by zero leaves its point out."""
    (line,) = lines(syncs(found=variant("8/(n - 1)", 1, 1, 1)))
    assert 2 == len(line)


def test_a_law_that_cannot_be_read_is_not_drawn() -> None:
    """Evidence may have been written by anybody."""
    chart = syncs(found=variant("<script>", 1, 2, 3))
    assert ([], "<script>") == (lines(chart), chart.series[0].law)


def test_the_variables_of_the_laws_stand_below() -> None:
    """Those that laws name, else those that vary, each with its value at every point."""
    for law in ("4*n", None):
        chart = syncs(found=variant(law, 16, 4, 8))
        assert "n" == labels(chart)[-1]
        assert ["1", "2", "4"] == labels(chart, '<text class="value"')


def test_equal_points_are_points_of_their_own() -> None:
    """A sweep that has a point twice has two samples of it."""
    sweep = ({"n": 1}, {"n": 1})
    samples = tuple(Sample(at=at, metrics={"syncs": cost}) for at, cost in zip(sweep, (1, 2), strict=True))
    result = VariantResult(laws={}, samples=samples, sites=())
    measured = verification({"found": result}).model_copy(update={"sweep": sweep})
    ((chart,), _) = charts(measured)
    assert ("1", "2") == said(chart.series[0])
    assert 2 == len(marks(chart)[0])


def test_runs_that_raised_are_marked() -> None:
    """What they counted is what there was until then."""
    chart = syncs(found=variant(None, 1, 1, 1, error="ValueError"))
    assert 3 == picture(chart).count('class="raised"')
    assert "1 until it raised" == said(chart.series[0])[0]


def test_variants_look_the_same_in_every_chart() -> None:
    """The usual names have styles of their own; others have styles that none of these has."""
    chart = syncs(fix=variant(None, 1, 1, 1), mine=variant(None, 1, 1, 1), found=variant(None, 1, 1, 1))
    styles = {series.variant: series.style for series in chart.series}
    assert {"found": 0, "fix": 3, "mine": 4} == styles


def test_variants_at_one_point_stand_apart() -> None:
    """Two that cost the same can both be seen."""
    (one, *_), (other, *_) = marks(syncs(found=variant("1", 1, 1, 1), fix=variant("1", 1, 1, 1)))
    assert one[1] == other[1]
    assert one[0] < other[0]


def test_claimed_metrics_come_first_and_zeros_have_no_chart() -> None:
    """A metric that is 0 in every run is named, and not drawn."""
    found = variant("1", 1, 1, 1, launches=2, h2d=0)
    drawn, zero = charts(verification({"found": found}, "launches"))
    assert ["launches", "syncs"] == [chart.metric for chart in drawn]
    assert [True, False] == [chart.claimed for chart in drawn]
    assert ("h2d",) == zero


def test_nothing_measured_is_nothing_drawn() -> None:
    """Neither a verification without a sweep nor one without a run has a chart."""
    assert ((), ()) == charts(verification({}))
    assert ((), ()) == charts(verification({"found": variant(None, None, None, None)}))


def test_the_description_says_what_is_to_be_seen() -> None:
    """Law and range of each variant, for those who do not see the picture."""
    chart = syncs(found=variant("4*n", 16, 4, 8))
    assert "found: 4*n, measured 4 to 16 at 3 points." == chart.description


COMPACT = {
    0: "0",
    999: "999",
    1000: "1k",
    1536: "1.5k",
    9949: "9.9k",
    9951: "10k",
    -2000: "-2k",
    999_499: "999k",
    999_500: "1M",
    1 << 20: "1M",
    8_388_608: "8.4M",
    10**15: "1P",
}


@pytest.mark.parametrize(("value", "text"), COMPACT.items())
def test_compact(value: int, text: str) -> None:
    """Two digits where there is a unit, three at most."""
    assert text == compact(value)


HOSTILE = "</svg><script>\"'&"


def chart(name: str = "found", metric: str = "syncs", law: str = "4*n", variable: str = "n") -> Chart:
    """A chart of three points, the last of which raised."""
    sweep = tuple({variable: size} for size in (1, 2, 4))
    samples = tuple(
        Sample(at=at, metrics={metric: 4 * size}, error="ValueError" if size > 2 else None)
        for at, size in zip(sweep, (1, 2, 4), strict=True)
    )
    verification = Verification(
        ticket="A-1",
        verdict=Verdict.VERIFIED,
        reason="",
        meter="simulated",
        torch="2.13.0",
        device="h200",
        sweep=sweep,
        variants={name: VariantResult(laws={metric: law}, samples=samples, sites=())},
        claims=(),
    )
    ((made,), _) = charts(verification)
    return made


def test_a_picture_has_a_name_a_description_and_every_mark() -> None:
    """It is XML; its title and description come first, as those who listen to them expect."""
    drawn = ET.fromstring(picture(chart()))  # noqa: S314 - made here
    assert ["title", "desc"] == [each.tag for each in drawn[:2]]
    assert "found: 4*n, measured 4 to 16 at 3 points." == drawn[1].text
    assert 3 == len(drawn.findall(".//use"))
    assert 1 == len(drawn.findall(".//use[@class='raised']"))
    assert 1 == len(drawn.findall(".//polyline"))


def test_a_point_says_what_was_measured_there() -> None:
    """One text for each point of the sweep, whatever is drawn at it."""
    texts = re.findall(r'<rect class="column"[^>]*><title>(.*?)</title>', picture(chart()), re.DOTALL)
    assert ["n 1\nfound: 4", "n 2\nfound: 8", "n 4\nfound: 16 until it raised"] == texts


def test_no_text_is_markup() -> None:
    """Names of variants, metrics and variables, and laws, come from files that anybody may have written."""
    drawn = ET.fromstring(picture(chart(HOSTILE, HOSTILE, HOSTILE, HOSTILE)))  # noqa: S314 - made here
    assert set() == {each.tag for each in drawn.iter()} - {
        *("svg", "title", "desc", "path", "text", "g", "use", "polyline", "rect")
    }
    assert f"{HOSTILE}: {HOSTILE}, measured 4 to 16 at 3 points." == drawn[1].text


def test_a_long_name_is_cut() -> None:
    """There is little room beside the plot; the table of numbers has the whole name."""
    assert ">a_variable_o…</text>" in picture(chart(law="1", variable="a_variable_of_the_sweep"))
