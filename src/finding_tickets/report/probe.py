"""A probe as plain text and as JSON: the lines that cost something, heaviest first, and the totals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from finding_tickets.measure.probing import Cost, Probed
from finding_tickets.report.verification import INDENT, Styler, aligned

LONGEST_TEXT = 72


def lines(probed: Probed, style: Styler) -> Iterator[str]:
    """The probe for a reader at a terminal; ``style`` colours a text."""
    runs = f", {len(probed.points)} points" if len(probed.points) > 1 else ""
    yield f"{style(probed.target, 'bold')}  {probed.meter} {probed.device}, torch {probed.torch}{runs}"
    if probed.sites:
        header = ("#", "cost", "what", "where", "function", "source")
        rows = [
            (
                str(number),
                str(site.cost),
                site.what,
                f"{site.file}:{site.line}",
                site.function,
                site.text if len(site.text) <= LONGEST_TEXT else f"{site.text[: LONGEST_TEXT - 1]}…",
            )
            for number, site in enumerate(probed.sites, 1)
        ]
        title, *rest = aligned([header, *rows])
        yield INDENT + style(title, "bold")
        yield from (INDENT + row for row in rest)
    else:
        yield f"{INDENT}no line waits, copies or allocates"
    totals = [
        (name, str(cost)) for name, cost in probed.metrics.items() if any(cost.values) and name != "raised"
    ]
    if totals:
        yield INDENT + style("in all", "bold")
        yield from (INDENT * 2 + row for row in aligned(totals))


def doubts(probed: Probed) -> Iterator[str]:
    """What keeps the counts from being the whole truth, for the user to know."""
    yield from (f"not run to its end: {error}" for error in probed.errors)
    yield from (f"not measured: {why}" for why in probed.not_measured)
    if probed.unknown:
        yield f"operations of unknown cost, which are not counted: {', '.join(probed.unknown)}"
    if probed.approximate:
        yield f"launches and memory are modelled only, for {', '.join(probed.approximate)}"
    # What pytest prints of a test is here in other words.
    if probed.printed and probed.kind != "test":
        yield f"the target printed {probed.printed} bytes, which are not shown"
    if not probed.errors and not any(probed.metrics["launches"].values if probed.points else ()):
        yield "the target launched nothing on the device: does it use the device cuda?"


def as_json(probed: Probed) -> dict[str, Any]:
    """The probe as the item of a JSON output."""
    return {
        "target": probed.target,
        "kind": probed.kind,
        "meter": probed.meter,
        "torch": probed.torch,
        "device": probed.device,
        "points": list(probed.points),
        "sites": [
            {
                "number": number,
                "file": site.file,
                "line": site.line,
                "function": site.function,
                "what": site.what,
                "source": site.text,
                **_cost(site.cost),
            }
            for number, site in enumerate(probed.sites, 1)
        ],
        "metrics": {name: _cost(cost) for name, cost in probed.metrics.items()},
        "errors": list(probed.errors),
        "not_measured": list(probed.not_measured),
        "unknown": list(probed.unknown),
        "approximate": list(probed.approximate),
        "printed": probed.printed,
    }


def _cost(cost: Cost) -> dict[str, Any]:
    return {"values": list(cost.values), "law": cost.law, "growth": cost.growth}
