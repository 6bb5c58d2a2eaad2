"""Charts as SVG."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from finding_tickets.model.verdict import Verdict
from finding_tickets.model.verification import Sample, VariantResult, Verification
from finding_tickets.report.charts import Chart, charts, drawn

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
    (made,) = charts(verification).drawn
    return made


def test_a_picture_has_a_name_a_description_and_every_mark() -> None:
    """It is XML; its title and description come first, as those who listen to them expect."""
    picture = ET.fromstring(drawn(chart()))  # noqa: S314 - made here
    assert ["title", "desc"] == [each.tag for each in picture[:2]]
    assert "found: 4*n, measured 4 to 16 at 3 points." == picture[1].text
    assert 3 == len(picture.findall(".//use"))
    assert 1 == len(picture.findall(".//use[@class='raised']"))
    assert 1 == len(picture.findall(".//polyline"))


def test_a_point_says_what_was_measured_there() -> None:
    """One text for each point of the sweep, whatever is drawn at it."""
    texts = re.findall(r'<rect class="column"[^>]*><title>(.*?)</title>', drawn(chart()), re.DOTALL)
    assert ["n 1\nfound: 4", "n 2\nfound: 8", "n 4\nfound: 16 until it raised"] == texts


def test_no_text_is_markup() -> None:
    """Names of variants, metrics and variables, and laws, come from files that anybody may have written."""
    picture = ET.fromstring(drawn(chart(HOSTILE, HOSTILE, HOSTILE, HOSTILE)))  # noqa: S314 - made here
    assert set() == {each.tag for each in picture.iter()} - {
        *("svg", "title", "desc", "path", "text", "g", "use", "polyline", "rect")
    }
    assert f"{HOSTILE}: {HOSTILE}, measured 4 to 16 at 3 points." == picture[1].text


def test_a_long_name_is_cut() -> None:
    """There is little room beside the plot; the table of numbers has the whole name."""
    assert ">a_variable_o…</text>" in drawn(chart(law="1", variable="a_variable_of_the_sweep"))
