"""What a probe found: as text, as JSON, and as the draft of a ticket about one of its lines."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
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
from finding_tickets.verify.probing import Probed, ProbedCost, ProbedSite

if TYPE_CHECKING:
    from finding_tickets.register.new import Draft, Place
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
REPEATS = ({"run": 1}, {"run": 2}, {"run": 3})
"""The sweep of a function that takes no arguments: so many runs show a law, or that they differ."""


def probe_lines(probed: Probed, style: Styler) -> Iterator[str]:
    """The lines that cost something, heaviest first, and the totals; ``style`` colours a text."""
    runs = f", {len(probed.points)} points" if len(probed.points) > 1 else ""
    title = style(printable(probed.target), "bold")
    yield f"{title}  {probed.meter} {probed.device}, torch {probed.torch}{runs}"
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

    def draft(self, categories: Collection[str], given: dict[str, Any]) -> Draft:
        """The content of the ticket; what is ``given`` comes before what the probe says.

        Raises:
            BadDataError: What is given does not make a ticket, or a template is wrong.
        """
        from finding_tickets.register.new import draft_of
        from finding_tickets.report.templates import render

        site, category = self.site, CATEGORIES.get(self.site.what, USUAL_CATEGORY)
        effect, times = EFFECTS[site.what][0], _times(site.cost)
        context = {
            "probed": self.probed,
            "site": site,
            "said": f"{effect}: {times}",
            "quote": self._quote(),
            "command": self.command,
            "names": self._variables,
            "metrics": self._metrics,
            "most": MOST_ROWS,
        }
        content = {
            "title": f"{self._subject} {effect} in {site.file}:{site.line}",
            "severity": SEVERITY,
            "summary": f"Line {site.line} of `{site.file}` {effect} {times} "
            f"in each run of `{self.probed.target}`.",
            "description": render("probed.md.j2", context, self.templates).strip(),
            "recommended_fix": "To be written: what to do instead, and what that costs. Once it is there, "
            "name it under `variants:` as `fix`, and claim its costs and `same_result_as: found`.",
            "locations": tuple(self._places()),
            "categories": (category,) if category in categories else (),
            "checklist": (f"Line {site.line} {effect} less often, with the same result",),
        }
        return draft_of({**content, **given}, "the draft")

    def attached(self) -> Attached:
        """How the ticket is measured again: by the verifier that was used, or one made of the sweep."""
        from finding_tickets.report.templates import Attached

        probed, files = self.probed, dict[str, str]()
        function = probed.function
        if function and not self.verifier:
            files["{verifier}"] = "probed_verifier.py.j2"
        if function and not probed.positional:
            files["{fixes}/found.py"] = "probed_found.py.j2"
        module, _, name = function.rpartition(":")
        pinned = ""
        if module.endswith(".py"):
            # Only a file of the repository can be had at a revision.
            pinned = f"@{self.revision}" if self.revision else ""
            parts = PurePosixPath(module).with_suffix("").parts
            module = ".".join(parts[1:] if parts[0] == "src" else parts)
        return Attached(
            remediation="probed.yaml.j2",
            files=files,
            context={
                "target": probed.target,
                "kind": probed.kind,
                "function": function,
                "found": f"{function}{pinned}" if probed.positional else None,
                "imported": {"module": module, "name": name.partition(".")[0], "call": name},
                "used_verifier": self.verifier,
                "names": self._variables,
                "points": REPEATS if function and not self._variables else probed.points,
                "claims": {each: _claim(probed.metrics[each]) for each in self._metrics},
                "statement": f"{self._subject} {EFFECTS[self.site.what][0]} {_times(self.site.cost)} "
                f"in line {self.site.line} of {self.site.file}",
            },
        )

    @property
    def _variables(self) -> list[str]:
        first = self.probed.points[0]
        return [] if len(self.probed.points) == 1 and first == REPEATS[0] else list(first)

    @property
    def _metrics(self) -> list[str]:
        return [name for name in EFFECTS[self.site.what][1:] if name in self.probed.metrics]

    @cached_property
    def _code(self) -> tuple[list[str], ast.FunctionDef | ast.AsyncFunctionDef | None]:
        """The lines of the file that the site is in, and the innermost function around it."""
        lines: list[str] = []
        try:
            text = (self.root / self.site.file).read_text(encoding="utf-8")
            lines = text.removesuffix("\n").split("\n") if text else []
            nodes = list(ast.walk(ast.parse(text)))
        # The repository may have no such file, and what is no Python has no functions.
        except (OSError, ValueError, SyntaxError, RecursionError):
            return lines, None
        functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        line = self.site.line
        holding = [node for node in functions if node.lineno <= line <= (node.end_lineno or node.lineno)]
        return lines, max(holding, key=lambda node: node.lineno, default=None)

    @property
    def _symbol(self) -> str | None:
        """The function that the line is in; None for what is in none."""
        if not self.site.function.startswith("<"):
            return self.site.function
        _, function = self._code
        return function.name if function else None

    @property
    def _subject(self) -> str:
        return self._symbol or PurePosixPath(self.site.file).name

    def _places(self) -> Iterator[Place]:
        """The line; where it is in an installed package, the function that was probed."""
        from finding_tickets.register.new import Place

        file, _, symbol = self.probed.function.rpartition(":")
        if (self.root / self.site.file).is_file():
            line = self.site.line
            yield Place(file=self.site.file, lines=((line, line),), symbol=self._symbol)
        elif file.endswith(".py"):
            yield Place(file=file, symbol=symbol)

    def _quote(self) -> str:
        """The function around the line, or of a long one the lines next to it, below their place."""
        lines, function = self._code
        if not lines:
            return ""
        first, last = 1, len(lines)
        if function:
            first, last = function.lineno, function.end_lineno or function.lineno
        # Nobody reads a quote of hundreds of lines.
        if function is None or last - first >= LONGEST_QUOTE:
            first, last = max(first, self.site.line - AROUND), min(last, self.site.line + AROUND)
        return "\n".join([f"# {self.site.file}:{first}-{last}", *lines[first - 1 : last]])


def _times(cost: ProbedCost) -> str:
    if cost.law is None and len(set(cost.values)) > 1:
        return f"{min(cost.values)} to {max(cost.values)} times"
    count = cost.law or str(cost.values[0])
    return "once" if count == "1" else f"{count} times" if count.isdecimal() else f"`{count}` times"


def _claim(cost: ProbedCost) -> str:
    """What was measured as a claim: the law, the range where there is none, or the only value."""
    least, most = min(cost.values), max(cost.values)
    return cost.law or (f"{least}..{most}" if least < most else str(least))
