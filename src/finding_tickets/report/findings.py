"""A finding drafted from a probe: a line, its code, what was measured, and how to measure it again."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from finding_tickets.errors import UsageError
from finding_tickets.measure.probing import Cost, Probed, ProbedSite
from finding_tickets.register.draft import Draft, Place, draft_of
from finding_tickets.report.drafts import Attached

DEEDS = {
    "device_syncs": "waits for the whole device",
    "stream_syncs": "waits for the GPU",
    "event_syncs": "waits for an event of the GPU",
    "implicit_syncs": "may wait for the GPU",
    "hazards": "uses data of another stream without waiting for it",
    "d2h": "copies to the host",
    "h2d": "copies to the device",
    "p2p": "copies from device to device",
    "d2d": "copies within the device",
    "allocations": "allocates device memory",
}
"""What a line does, by the metric that it makes count."""

CLAIMED = {
    "device_syncs": ("syncs",),
    "stream_syncs": ("syncs",),
    "event_syncs": ("syncs",),
    "implicit_syncs": ("implicit_syncs",),
    "hazards": ("hazards",),
    "allocations": ("allocations", "peak_bytes"),
    **{copies: (copies, f"{copies}_bytes") for copies in ("d2h", "h2d", "p2p", "d2d")},
}
"""The metrics of a whole run that tell whether anything was done about such a line."""

CATEGORIES = {"hazards": "Race condition / concurrency", "allocations": "Memory leak / resource issue"}
USUAL_CATEGORY = "Performance bottleneck"
SEVERITY = "P2"
LONGEST_QUOTE = 24
AROUND = 6
MOST_ROWS = 20
REPEATS = ({"run": 1}, {"run": 2}, {"run": 3})
"""The sweep of a function that takes no arguments: so many runs show a law, or that they differ."""


Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Finding:
    """A site of a probe that a ticket is to be written about.

    ``command`` is how it was probed. ``verifier`` is the file that was used, if one was, and ``revision`` the
    one at which the code can be had as it was found; None for the work tree.
    """

    probed: Probed
    site: ProbedSite
    root: Path
    command: str
    verifier: str | None = None
    revision: str | None = None

    def draft(self, categories: Collection[str], given: dict[str, Any]) -> Draft:
        """The content of the ticket; what is ``given`` comes before what the probe says.

        Raises:
            BadDataError: What is given does not make a ticket.
        """
        site, category = self.site, CATEGORIES.get(self.site.what, USUAL_CATEGORY)
        deed = f"{DEEDS[site.what]} {_times(site.cost)}"
        content = {
            "title": f"{self._subject()} {DEEDS[site.what]} in {site.file}:{site.line}",
            "severity": SEVERITY,
            "summary": f"Line {site.line} of `{site.file}` {deed} in each run of `{self.probed.target}`.",
            "description": "\n\n".join(self._description()),
            "recommended_fix": "To be written: what to do instead, and what that costs. Once it is there, "
            "name it under `variants:` as `fix`, and claim its costs and `same_result_as: found`.",
            "locations": tuple(self._places()),
            "categories": (category,) if category in categories else (),
            "checklist": (f"Line {site.line} {DEEDS[site.what]} less often, with the same result",),
        }
        return draft_of({**content, **given}, "the draft")

    def attached(self) -> Attached:
        """How the ticket is measured again: by the verifier that was used, or one made of the sweep."""
        probed, files = self.probed, dict[str, str]()
        function = probed.function
        if function and not self.verifier:
            files["{verifier}"] = "probed_verifier.py.j2"
        if function and not probed.positional:
            files["{fixes}/found.py"] = "probed_found.py.j2"
        pinned = f"@{self.revision}" if self.revision and function.partition(":")[0].endswith(".py") else ""
        points = REPEATS if function and not self._variables() else probed.points
        return Attached(
            remediation="probed.yaml.j2",
            files=files,
            context={
                "target": probed.target,
                "kind": probed.kind,
                "function": function,
                "found": f"{function}{pinned}" if probed.positional else None,
                "imported": _imported(function),
                "used_verifier": self.verifier,
                "names": self._variables(),
                "points": points,
                "claims": {name: _claim(probed.metrics[name]) for name in self._metrics()},
                "statement": f"{self._subject()} {DEEDS[self.site.what]} {_times(self.site.cost)} "
                f"in line {self.site.line} of {self.site.file}",
            },
        )

    def _variables(self) -> list[str]:
        first = self.probed.points[0]
        return [] if len(self.probed.points) == 1 and first == REPEATS[0] else list(first)

    def _metrics(self) -> list[str]:
        return [name for name in CLAIMED[self.site.what] if name in self.probed.metrics]

    def _places(self) -> Iterator[Place]:
        """The line; where it is in an installed package, the function that was probed."""
        file, _, symbol = self.probed.function.rpartition(":")
        if (self.root / self.site.file).is_file():
            line = self.site.line
            yield Place(file=self.site.file, lines=((line, line),), symbol=self._symbol())
        elif file.endswith(".py"):
            yield Place(file=file, symbol=symbol)

    def _description(self) -> Iterator[str]:
        site, probed = self.site, self.probed
        yield f"`{site.text}` {DEEDS[site.what]}: {_times(site.cost)} in a run, as `{site.what}` counts."
        if quote := self._quote():
            fence = "`" * max(3, *(len(run) + 1 for run in [*re.findall("`+", quote), ""]))
            yield f"### Code Evidence\n\n{fence}python\n{quote}\n{fence}"
        where = f"on a {probed.meter} device ({probed.device}), torch {probed.torch}"
        yield f"### Measured\n\n`{self.command}`, {where}:"
        yield "\n".join(self._table())

    def _symbol(self) -> str | None:
        """The function that the line is in; None for what is in none."""
        if not self.site.function.startswith("<"):
            return self.site.function
        around = _innermost(_functions(self._text()), self.site.line)
        return around.name if around else None

    def _subject(self) -> str:
        return self._symbol() or PurePosixPath(self.site.file).name

    def _quote(self) -> str:
        """The function around the line, or of a long one the lines next to it, below their place."""
        text = self._text()
        if not text:
            return ""
        first, last = _around(text, self.site.line)
        quoted = text.removesuffix("\n").split("\n")[first - 1 : last]
        return "\n".join([f"# {self.site.file}:{first}-{last}", *quoted])

    def _text(self) -> str:
        """The file that the line is in; empty where the repository has none of that name."""
        try:
            return (self.root / self.site.file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return ""

    def _table(self) -> Iterator[str]:
        """What the line and the whole run cost at each point, and the laws."""
        names, metrics = self._variables(), self._metrics()
        costs = [self.site.cost, *(self.probed.metrics[name] for name in metrics)]
        yield _row([*names, f"{self.site.what} of the line", *(f"{name} of the run" for name in metrics)])
        yield _row(["---:"] * (len(names) + len(costs)))
        for place, at in enumerate(self.probed.points[:MOST_ROWS]):
            yield _row([*(str(at[name]) for name in names), *(str(cost.values[place]) for cost in costs)])
        if len(self.probed.points) > MOST_ROWS:
            yield _row([f"{len(self.probed.points) - MOST_ROWS} more", *[""] * (len(names) + len(costs) - 1)])
        if names:
            yield _row(["law", *[""] * (len(names) - 1), *(f"`{cost}`" for cost in costs)])


def site_of(probed: Probed, wanted: str) -> ProbedSite:
    """The site that its number in the table or ``file:line`` names; of several on a line the heaviest.

    Raises:
        UsageError: There is no such site, or the target did not run to its end.
    """
    if probed.errors:
        raise UsageError("no draft from a target that did not run to its end", hint=probed.errors[0])
    number = int(wanted) if re.fullmatch("[0-9]{1,9}", wanted) else 0
    places = (site for site in probed.sites if f"{site.file}:{site.line}" == wanted)
    named = next(iter(probed.sites[number - 1 : number] if number else places), None)
    if named is None:
        known = f"1 to {len(probed.sites)}, or file:line" if probed.sites else "the target has none"
        raise UsageError(f"--draft {wanted}: there is no such site", hint=known)
    return named


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _times(cost: Cost) -> str:
    if cost.law is None and len(set(cost.values)) > 1:
        return f"{min(cost.values)} to {max(cost.values)} times"
    count = cost.law or str(cost.values[0])
    return "once" if count == "1" else f"{count} times" if count.isdecimal() else f"`{count}` times"


def _claim(cost: Cost) -> str:
    """What was measured as a claim: the law, the range where there is none, or the only value."""
    least, most = min(cost.values), max(cost.values)
    return cost.law or (f"{least}..{most}" if least < most else str(least))


def _functions(text: str) -> list[Function]:
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError):
        return []
    return [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def _innermost(functions: list[Function], line: int) -> Function | None:
    holding = [node for node in functions if node.lineno <= line <= (node.end_lineno or node.lineno)]
    return max(holding, key=lambda node: node.lineno, default=None)


def _around(text: str, line: int) -> tuple[int, int]:
    """The first and the last line to quote, from 1."""
    function = _innermost(_functions(text), line)
    first, last = 1, len(text.removesuffix("\n").split("\n"))
    if function:
        first, last = function.lineno, function.end_lineno or function.lineno
    if function is None or last - first >= LONGEST_QUOTE:
        first, last = max(first, line - AROUND), min(last, line + AROUND)
    return first, last


def _imported(function: str) -> dict[str, str]:
    """How Python imports a function: its module, the name to import and how it is then called."""
    module, _, name = function.rpartition(":")
    if module.endswith(".py"):
        parts = PurePosixPath(module).with_suffix("").parts
        module = ".".join(parts[1:] if parts[0] == "src" else parts)
    return {"module": module, "name": name.partition(".")[0], "call": name}
