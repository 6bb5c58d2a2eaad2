"""What a probe found: as text, as JSON, and as the draft of a ticket about one of its lines."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from finding_tickets.errors import UsageError
from finding_tickets.report.text import (
    INDENT,
    Styled,
    Styler,
    TableCell,
    TextSection,
    aligned,
    fields_of,
    printable,
    section_lines,
)
from finding_tickets.verify.probing import Probed, ProbedSite

if TYPE_CHECKING:
    from finding_tickets.register.new import Draft
    from finding_tickets.report.templates import Attached

LONGEST_TEXT = 72
"""Characters of a source line that the table shows."""
EFFECTS = {
    "device_syncs": ("waits for the whole device", "syncs"),
    "stream_syncs": ("waits for the GPU", "syncs"),
    "event_syncs": ("waits for an event of the GPU", "syncs"),
    "implicit_syncs": ("may wait for the GPU", "implicit_syncs"),
    "hazards": ("uses data of another stream without waiting for it", "hazards"),
    "d2h": ("copies to the host", "d2h", "d2h_bytes"),
    "h2d": ("copies to the device", "h2d", "h2d_bytes"),
    "p2p": ("copies from device to device", "p2p", "p2p_bytes"),
    "d2d": ("copies within the device", "d2d", "d2d_bytes"),
    "allocations": ("allocates device memory", "allocations", "peak_bytes"),
}
"""What a line does, by the metric that it makes count, and the metrics of the whole run that get better with
it."""
CATEGORIES = {"hazards": "Race condition / concurrency", "allocations": "Memory leak / resource issue"}
USUAL_CATEGORY = "Performance bottleneck"
SEVERITY = "P2"
LONGEST_QUOTE = 24
AROUND = 6
MOST_ROWS = 20
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
REPEATS = ({"run": 1}, {"run": 2}, {"run": 3})
"""The sweep of a function that takes no arguments: so many runs show a law, or that they differ."""


def probe_lines(probed: Probed, style: Styler) -> Iterator[str]:
    """The lines that cost something, heaviest first, and the totals; ``style`` colours a text."""
    runs = f", {len(probed.points)} points" if len(probed.points) > 1 else ""
    title = style(printable(probed.target), "bold")
    yield f"{title}  {probed.meter} {probed.device}, torch {probed.torch}{runs}"
    for calls in probed.calls[:1]:
        apart = f", the first {calls.apart} apart" if calls.apart else ""
        yield f"{INDENT}per call of {calls.counted}{apart}"
    rows: list[Sequence[TableCell]] = []
    for number, site in enumerate(probed.sites, 1):
        # The table has one line for each site.
        text = site.text if len(site.text) <= LONGEST_TEXT else f"{site.text[: LONGEST_TEXT - 1]}…"
        place = f"{site.file}:{site.line}"
        rows.append((str(number), str(site.cost), site.what, place, site.function, text))
    header = [Styled(name, "bold") for name in ("#", "cost", "what", "where", "function", "source")]
    lines = aligned([header, *rows], style) if rows else ["no line waits, copies or allocates"]
    yield from (INDENT + line for line in lines)
    # What is 0 in all runs is left out; exceptions are told as doubts.
    totals = [
        (name, str(cost)) for name, cost in probed.metrics.items() if any(cost.values) and name != "raised"
    ]
    if totals:
        yield from (INDENT + line for line in section_lines(TextSection("in all", totals), style))


def doubts(probed: Probed) -> Iterator[str]:
    """What keeps the counts from being the whole truth, for the user to know."""
    yield from (f"not run to its end: {error}" for error in probed.errors)
    yield from (f"not measured: {why}" for why in probed.not_measured)
    yield from (f"calls differ: {calls.differ}" for calls in probed.calls if calls.differ)
    # An operation without a cost makes every total a lower bound.
    if probed.unknown:
        yield f"operations of unknown cost, which are not counted: {', '.join(probed.unknown)}"
    if probed.approximate:
        yield f"launches and memory are modelled only, for {', '.join(probed.approximate)}"
    # What pytest prints of a test is here in other words.
    if probed.printed and probed.kind != "test":
        yield f"the target printed {probed.printed} bytes, which are not shown"
    if not probed.errors and not any(probed.metrics["launches"].values if probed.points else ()):
        yield "the target launched nothing on the device: does it use the device cuda?"


def probe_item(probed: Probed) -> dict[str, Any]:
    """The probe as the item of a JSON output."""
    costs = ("values", "law", "growth")
    return {
        **fields_of(probed, "target", "kind", "meter", "torch", "device", "points"),
        "sites": [
            {
                "number": number,
                **fields_of(site, "file", "line", "function", "what"),
                "source": site.text,
                **fields_of(site.cost, *costs),
            }
            for number, site in enumerate(probed.sites, 1)
        ],
        "metrics": {name: fields_of(cost, *costs) for name, cost in probed.metrics.items()},
        **fields_of(probed, "errors", "not_measured", "unknown", "approximate", "printed"),
        "calls": [fields_of(calls, "counted", "apart", "differ") for calls in probed.calls],
    }


def site_of(probed: Probed, wanted: str) -> ProbedSite:
    """The site that its number in the table or ``file:line`` names; of several on a line the heaviest.

    Raises:
        UsageError: There is no such site, or the target did not run to its end.
    """
    if probed.errors:
        raise UsageError("cannot draft a ticket: the target did not finish", hint=probed.errors[0])
    # A number is one of the table; a longer one is none.
    number = int(wanted) if re.fullmatch("[0-9]{1,9}", wanted) else 0
    places = (site for site in probed.sites if f"{site.file}:{site.line}" == wanted)
    named = next(iter(probed.sites[number - 1 : number] if number else places), None)
    if named is None:
        known = f"1 to {len(probed.sites)}, or file:line" if probed.sites else "the target has none"
        raise UsageError(f"--draft {wanted}: there is no such site", hint=known)
    return named


@dataclass(frozen=True)
class ProbedFinding:
    """A site of a probe that a ticket is to be written about.

    ``templates`` is the folder of the register's own, ``command`` how it was probed. ``verifier`` is the file
    that was used, if one was, and ``revision`` the one at which the code can be had as it was found; None for
    the work tree.
    """

    probed: Probed
    site: ProbedSite
    root: Path
    templates: Path
    command: str
    verifier: str | None = None
    revision: str | None = None

    def ticket(self, categories: Collection[str], given: dict[str, Any]) -> tuple[Draft, Attached]:
        """The content of the ticket, and how it is measured again.

        Args:
            categories: Those of the register.
            given: What the ticket is to say whatever the probe says.

        Raises:
            BadDataError: What is given does not make a ticket, or a template is wrong.
        """
        from finding_tickets.register.new import Place, draft_of
        from finding_tickets.report.templates import Attached, render

        probed, site = self.probed, self.site
        effect, *related = EFFECTS[site.what]
        metrics = [name for name in related if name in probed.metrics]
        first = probed.points[0]
        variables = [] if len(probed.points) == 1 and first == REPEATS[0] else list(first)
        quote, around = code_around(self.root, site)
        # Python calls the code of a comprehension after its form.
        symbol = around if site.function.startswith("<") else site.function
        subject = symbol or PurePosixPath(site.file).name
        count = site.cost.law or str(site.cost.values[0])
        times = "once" if count == "1" else f"{count if count.isdecimal() else f'`{count}`'} times"
        if site.cost.law is None and len(set(site.cost.values)) > 1:
            times = f"{min(site.cost.values)} to {max(site.cost.values)} times"
        module, _, function = probed.function.rpartition(":")
        places: tuple[Place, ...] = ()
        if (self.root / site.file).is_file():
            places = (Place(file=site.file, lines=((site.line, site.line),), symbol=symbol),)
        elif module.endswith(".py"):
            # The line is in an installed package; the ticket is about the function that was probed.
            places = (Place(file=module, symbol=function),)
        context = {
            "probed": probed,
            "site": site,
            "said": f"{effect}: {times}",
            "quote": quote,
            "command": self.command,
            "names": variables,
            "metrics": metrics,
            "most": MOST_ROWS,
        }
        category = CATEGORIES.get(site.what, USUAL_CATEGORY)
        content = {
            "title": f"{subject} {effect} in {site.file}:{site.line}",
            "severity": SEVERITY,
            "summary": f"Line {site.line} of `{site.file}` {effect} {times} in a run of `{probed.target}`.",
            "description": render("probed.md.j2", context, self.templates).strip(),
            "recommended_fix": "To be written: what to do instead, and what that costs. Once it is there, "
            "name it under `variants:` as `fix`, and claim its costs and `same_result_as: found`.",
            "locations": places,
            "categories": (category,) if category in categories else (),
            "checklist": (f"Line {site.line} {effect} less often, with the same result",),
        }
        files = {}
        if probed.function and not self.verifier:
            files["{verifier}"] = "probed_verifier.py.j2"
        if probed.function and not probed.positional:
            files["{fixes}/found.py"] = "probed_found.py.j2"
        pinned = ""
        if module.endswith(".py"):
            # Only a file of the repository can be had at a revision.
            pinned = f"@{self.revision}" if self.revision else ""
            parts = PurePosixPath(module).with_suffix("").parts
            module = ".".join(parts[1:] if parts[0] == "src" else parts)
        claims = {}
        for name in metrics:
            # A metric without a law is claimed to stay in the range that was measured.
            least, most = min(probed.metrics[name].values), max(probed.metrics[name].values)
            claims[name] = probed.metrics[name].law or (f"{least}..{most}" if least < most else str(least))
        attached = Attached(
            remediation="probed.yaml.j2",
            files=files,
            context={
                "target": probed.target,
                "kind": probed.kind,
                "function": probed.function,
                "found": f"{probed.function}{pinned}" if probed.positional else None,
                "imported": {"module": module, "name": function.partition(".")[0], "call": function},
                "used_verifier": self.verifier,
                "names": variables,
                "points": REPEATS if probed.function and not variables else probed.points,
                "claims": claims,
                "statement": f"{subject} {effect} {times} in line {site.line} of {site.file}",
            },
        )
        return draft_of({**content, **given}, "the draft"), attached


def code_around(root: Path, site: ProbedSite) -> tuple[str, str | None]:
    """The function around a line, or of a long one the lines next to it, below their place; and its name."""
    lines: list[str] = []
    functions: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
    # The repository may have no such file, and what is no Python has no functions.
    with suppress(OSError, ValueError, SyntaxError, RecursionError):
        text = (root / site.file).read_text(encoding="utf-8")
        lines = text.removesuffix("\n").split("\n") if text else []
        nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, FUNCTIONS))
        functions = [node for node in nodes if node.lineno <= site.line <= (node.end_lineno or node.lineno)]
    if not lines:
        return "", None
    innermost = max(functions, key=lambda node: node.lineno, default=None)
    first, last = 1, len(lines)
    if innermost:
        first, last = innermost.lineno, innermost.end_lineno or innermost.lineno
    # Nobody reads a quote of hundreds of lines.
    if innermost is None or last - first >= LONGEST_QUOTE:
        first, last = max(first, site.line - AROUND), min(last, site.line + AROUND)
    quote = "\n".join([f"# {site.file}:{first}-{last}", *lines[first - 1 : last]])
    return quote, innermost.name if innermost else None
