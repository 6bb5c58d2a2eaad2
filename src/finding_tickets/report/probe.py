"""Results of probes and traces: as text, as JSON, and as the draft of a ticket about a line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from textwrap import shorten, wrap
from typing import TYPE_CHECKING, Any

from finding_tickets.claims.check import ONCE
from finding_tickets.claims.laws import fit, span
from finding_tickets.claims.metrics import DEFINITIONS
from finding_tickets.errors import UsageError
from finding_tickets.ground.statements import (
    Statement,
    equal_statements,
    find_statement,
)
from finding_tickets.report.text import (
    INDENT,
    LEAST_CUT,
    Styled,
    Styler,
    TableCell,
    TextSection,
    counted,
    fields_of,
    printable,
    section_lines,
    single_line,
    table_lines,
)
from finding_tickets.report.verification import SYNCS, operation_section
from finding_tickets.verify.probing import (
    Probed,
    ProbedCost,
    ProbedSite,
    ProbeRequest,
    TracedRun,
)

if TYPE_CHECKING:
    from finding_tickets.documents.reading import Document
    from finding_tickets.model.ticket import Location
    from finding_tickets.register.load import Register
    from finding_tickets.register.new import Draft
    from finding_tickets.report.templates import Attached

# Lines of code that are shown unless all are.
MOST_LINES = 12
# Columns of a row that its place and what it costs leave free: for its number, for gaps and for code.
BESIDE = 5 * len(INDENT) + LEAST_CUT
# What a statement does, in short; other metrics are copies. To drain is to wait.
WORDS = {
    "device_syncs": "waits for the device",
    "stream_syncs": "waits",
    "event_syncs": "waits for an event",
    "implicit_syncs": "may wait",
    "hazards": "races",
    "raced": "races a later line",
    "allocations": "allocates",
}
COPIES = ("d2h", "h2d", "p2p", "d2d")
# The metrics of the whole run that are shown unless all are, where they are exact.
TOTALS = (
    "syncs",
    "implicit_syncs",
    "hazards",
    "d2h",
    "h2d",
    "p2p",
    "launches",
    "peak_bytes",
)
# What a line does, by the metric that it makes count, and the metrics of the whole run that get better
# with it.
EFFECTS = {
    "device_syncs": ("waits for the whole device", "syncs"),
    "stream_syncs": ("waits for the GPU", "syncs"),
    "event_syncs": ("waits for an event of the GPU", "syncs"),
    "implicit_syncs": ("may wait for the GPU", "implicit_syncs"),
    "hazards": ("uses data of another stream without waiting for it", "hazards"),
    "raced": ("is used without waiting for it", "hazards"),
    "d2h": ("copies to the host", "d2h", "d2h_bytes"),
    "h2d": ("copies to the device", "h2d", "h2d_bytes"),
    "p2p": ("copies from device to device", "p2p", "p2p_bytes"),
    "d2d": ("copies within the device", "d2d", "d2d_bytes"),
    "allocations": ("allocates device memory", "allocations", "peak_bytes"),
}
CATEGORIES = {
    "hazards": "Race condition / concurrency",
    "allocations": "Memory leak / resource issue",
}
USUAL_CATEGORY = "Performance bottleneck"
ELSEWHERE_TOO, SAME_RESULT = "Nothing else waits that did not", "The result is the same"
SEVERITY = "P2"
# Where a statement is, as a ticket says it: what tells more comes first.
AT_LINE, IN_FUNCTION, IN_FILE, ELSEWHERE = range(4)
DEFINITION = re.compile(r"(?:(?:async )?def|class) (\w+)")
# Columns of a statement in a title.
LONGEST_TITLE = 60
DRAFTED = "drafted.md.j2"
# Packages that cannot be installed, or not be used, without CUDA.
NEED_CUDA = (
    "apex",
    "bitsandbytes",
    "causal_conv1d",
    "cupy",
    "flash_attn",
    "mamba_ssm",
    "transformer_engine",
    "triton",
)


@dataclass(frozen=True)
class ProbedRow:
    """All that a statement costs, heaviest first."""

    number: int
    sites: tuple[ProbedSite, ...]
    is_set_up: bool

    @property
    def is_light(self) -> bool:
        """True if the statement only allocates, which the driver may have to serve."""
        return {site.what for site in self.sites} in (
            {"allocations"},
            {"implicit_syncs", "allocations"},
        )

    def effects(self, points: Sequence[Mapping[str, int]], *, allocations: bool) -> str:
        """Describe what the statement does and how often: ``waits 5x, copies d2h``."""
        said, before = [], ""
        kinds = {
            site.what: [each for each in self.sites if each.what == site.what]
            for site in self.sites
        }
        for what, sites in kinds.items():
            if what == "drains" or (
                what == "allocations" and not (allocations or self.is_light)
            ):
                continue
            # A statement that waits may as well wait for the driver.
            if what == "implicit_syncs" and SYNCS & kinds.keys() and not allocations:
                continue
            total = (
                sites[0].cost
                if len(sites) == 1
                else _total(points, [site.cost for site in sites])
            )
            cost = str(total)
            times = f"({cost})" if total.growth else f"{cost} times"
            times = f"{cost}x" if re.fullmatch(r"\d+(\.\.\d+)?", cost) else times
            waited = sum(site.waited for site in sites)
            times += f" for {waited / 1000:.3g} ms" if waited else ""
            word = WORDS.get(what) or f"copies {what}"
            said.append(word if times == before else f"{word} {times}")
            before = times
            if what in SYNCS and len(sites) == 1 and sites[0].per_step > 1:
                said[-1] += f" ({sites[0].per_step} per step)"
        return ", ".join(said)


def rows_of(probed: Probed) -> list[ProbedRow]:
    """The statements that cost something, heaviest first.

    What a program does once comes after what it does in loops, and what only allocates comes last.
    """
    sites: dict[tuple[str, int], list[ProbedSite]] = {}
    for site in probed.sites:
        sites.setdefault((site.file, site.begin or site.line), []).append(site)
    is_program = probed.kind in {"script", "module"} and any(
        site.repeated for site in probed.sites
    )
    rows = [
        ProbedRow(
            0,
            tuple(each),
            is_program and not (probed.calls or any(site.repeated for site in each)),
        )
        for each in sites.values()
    ]
    rows.sort(key=lambda row: (row.is_light, row.is_set_up))
    return [replace(row, number=number) for number, row in enumerate(rows, 1)]


def probe_lines(
    probed: Probed, style: Styler, width: int, *, verbose: bool = False
) -> Iterator[str]:
    """The lines that cost something and the totals; ``style`` colours a text.

    Unless ``verbose``, these are the heaviest lines, and code is cut to ``width`` columns.
    """
    runs = f", {len(probed.points)} points" if len(probed.points) > 1 else ""
    title = style(printable(probed.target), "bold")
    torch = f", torch {probed.torch}" if probed.torch else ""
    yield f"{title}  {probed.meter} {probed.device}{torch}{runs}"
    for calls in probed.calls[:1]:
        first = (
            f" after the first {calls.apart}".removesuffix(" 1") if calls.apart else ""
        )
        yield f"{INDENT}per call, in {counted(calls.counted, 'call')}{first}"
    for error in probed.errors:
        yield style(
            f"{INDENT}not run to its end: {printable(error)}{_hint_on(error)}", "red"
        )
    rows = rows_of(probed)
    heavy = [row for row in rows if not row.is_light]
    shown = rows if verbose else (heavy or rows)[:MOST_LINES]
    if not heavy:
        said = f"no line waits or copies{' until then' if probed.errors else ''}"
        if is_off_device(probed):
            said = "nothing ran on the device: does the target use cuda?"
        yield INDENT + said
    heads = [row.sites[0] for row in shown]
    places = [each.place for site in heads for each in (site, *site.called_from)]
    room = width - BESIDE - max(map(len, places), default=0)
    is_apart = any(row.is_set_up for row in rows)
    for title, is_set_up in (("in loops", False), ("once, outside loops", True)):
        part = [row for row in shown if row.is_set_up is is_set_up]
        if part and is_apart:
            yield style(f"{INDENT}{title}", "bold")
        cells = [
            line
            for row in part
            for line in _row_cells(row, probed, 0 if verbose else width, room)
        ]
        yield from table_lines(cells, style, 0 if verbose else width)
    left = [row for row in rows if row not in shown]
    if left:
        light = sum(row.is_light for row in left)
        words = [counted(len(left) - light, "more line")] if len(left) > light else []
        words += (
            [f"{counted(light, 'line')} that only allocate{'s' if light == 1 else ''}"]
            if light
            else []
        )
        yield style(f"{INDENT}and {' and '.join(words)}: -v", "dim")
    # What is 0 in all runs is left out, and what is modelled; exceptions are told as doubts.
    totals = {
        name: str(cost)
        for name, cost in probed.metrics.items()
        if any(cost.values)
        and name != "raised"
        and (verbose or name == "syncs" or not any(cost.ranges))
    }
    if verbose and totals:
        sections = [TextSection("in all", list(totals.items()))]
        sections += (
            [operation_section("operations", probed.operations)]
            if probed.operations
            else []
        )
        yield from (
            INDENT + line
            for section in sections
            for line in section_lines(section, style)
        )
    elif text := ", ".join(
        f"{name} {totals[name]}" for name in TOTALS if name in totals
    ):
        yield from wrap(
            f"in all: {text}",
            width,
            initial_indent=INDENT,
            subsequent_indent=INDENT * 2,
        )


def cost_lines(probed: Probed, metric: str, style: Styler, width: int) -> Iterator[str]:
    """Yield the statements that cost something by a metric, the heaviest first."""
    kinds = SYNCS if metric == "syncs" else {metric.removesuffix("_bytes")}
    cells: list[tuple[TableCell, ...]] = []
    for row in rows_of(probed)[:MOST_LINES]:
        if not kinds.isdisjoint(site.what for site in row.sites):
            room = width - BESIDE - len(row.sites[0].place)
            cells += [line[1:] for line in _row_cells(row, probed, width, room)]
    yield from table_lines(cells, style, width)


def _row_cells(
    row: ProbedRow, probed: Probed, width: int, room: int
) -> Iterator[tuple[TableCell, ...]]:
    """A line of code, what it costs and its statement, and who calls it; all that there is for no width.

    What it costs takes at most so many columns as there is ``room``.
    """
    site, effects = row.sites[0], row.effects(probed.points, allocations=not width)
    look = "dim" if row.is_light else "yellow" if site.what in COPIES else "red"
    first, *more = wrap(effects, max(room, LEAST_CUT)) if width else [effects]
    yield (
        str(row.number),
        Styled(site.place, "cyan"),
        Styled(first, look),
        single_line(site.statement),
    )
    yield from (("", "", Styled(text, look), "") for text in more)
    if site.hidden and site.what == "drains" and not row.is_set_up:
        yield "", "", Styled("waits in", "dim"), Styled(site.hidden, "dim")
    for caller in site.called_from[: 1 if width else None]:
        others = len(site.called_from) - 1 if width else 0
        here = "called from here" + (
            f" and {counted(others, 'other line')}" if others else ""
        )
        statement = Styled(single_line(caller.statement), "dim")
        yield "", Styled(caller.place, "dim"), Styled(here, "dim"), statement


def _hint_on(error: str) -> str:
    """Say what to do about an error that a real GPU would not have; empty if there is nothing to say."""
    if "invalid device ordinal" in error:
        return "; --devices gives the target more devices"
    if "arguments are required" in error:
        return "; the target's own arguments follow --"
    missing = re.search(r"No module named '(\w+)", error)
    if missing and missing[1] in NEED_CUDA:
        return f"; {missing[1]} is built for real GPUs: import it only where it is there (except ImportError)"
    return ""


def doubts(probed: Probed, *, verbose: bool = False) -> Iterator[str]:
    """Yield the reasons why the counts may be incomplete."""
    yield from (f"not measured: {why}" for why in probed.not_measured)
    yield from (
        f"calls differ: {calls.differ}" for calls in probed.calls if calls.differ
    )
    # An operation without a cost makes every total a lower bound.
    if probed.unknown:
        yield f"operations of unknown cost, which are not counted: {', '.join(probed.unknown)}"
    # Operations are names; what else is modelled says so in words.
    if said := [each for each in probed.approximate if verbose or " " in each]:
        yield f"modelled: {'; '.join(said)}"
    # What pytest prints of a test is here in other words.
    if probed.printed and probed.kind != "test" and verbose:
        yield f"the target printed {probed.printed} bytes, which are not shown"
    is_test = probed.kind == "script" and PurePosixPath(probed.target).name.startswith(
        "test_"
    )
    if is_test and is_off_device(probed):
        yield f"a script runs none of its tests: name one, such as {probed.target}::test_it"


def is_off_device(probed: Probed) -> bool:
    """Return True if the target ran to its end, and launched nothing on the device."""
    has_run = bool(probed.points) and not probed.errors
    return has_run and not any(probed.metrics["launches"].values)


def probe_item(probed: Probed) -> dict[str, Any]:
    """The probe as the item of a JSON output."""
    costs = ("values", "law", "growth")
    return {
        **fields_of(probed, "target", "kind", "meter", "torch", "device", "points"),
        "sites": [
            {
                "number": row.number,
                **fields_of(site, "file", "line", "function", "what"),
                "source": site.text,
                "statement": site.statement,
                "called_from": [vars(caller) for caller in site.called_from],
                "set_up": row.is_set_up,
                **({"per_step": site.per_step} if site.per_step else {}),
                **fields_of(site.cost, *costs),
                **(
                    {"waited": site.waited, "bytes": site.nbytes}
                    if probed.kind == "trace"
                    else {}
                ),
            }
            for row in rows_of(probed)
            for site in row.sites
        ],
        "metrics": {name: vars(cost) for name, cost in probed.metrics.items()},
        **fields_of(
            probed, "errors", "not_measured", "unknown", "approximate", "printed"
        ),
        "calls": [vars(calls) for calls in probed.calls],
    }


def check_finished(probed: Probed) -> None:
    """Raise UsageError if a probe has no costs that a ticket could claim."""
    if probed.errors:
        raise UsageError(
            "cannot draft a ticket: the target did not finish", hint=probed.errors[0]
        )
    if differ := [calls.differ for calls in probed.calls if calls.differ]:
        raise UsageError(
            "cannot draft a ticket: calls differ; count the whole run", hint=differ[0]
        )


def row_of(probed: Probed, wanted: str) -> ProbedRow:
    """Return the line of code that its number or ``file:line`` names.

    Raises:
        UsageError: The line is unknown, or the target did not run to its end.
    """
    check_finished(probed)
    # A longer number is none.
    number = int(wanted) if re.fullmatch("[0-9]{1,9}", wanted) else 0
    rows = rows_of(probed)
    places = (row for row in rows for site in row.sites if site.place == wanted)
    named = rows[number - 1] if 0 < number <= len(rows) else next(places, None)
    if named is None:
        known = f"1 to {len(rows)}, or file:line" if rows else "the target has none"
        raise UsageError(f"--draft {wanted}: there is no such line", hint=known)
    return named


def site_of(probed: Probed, wanted: str) -> ProbedSite:
    """The heaviest site of that line; of one that drains how it waits: real GPUs can be claimed to wait."""
    return next(site for site in row_of(probed, wanted).sites if site.what != "drains")


def row_at(root: Path, probed: Probed, ticket: Document) -> ProbedRow:
    """Return the row that a ticket is about: of what costs something, the nearest to the place that it names.

    Raises:
        UsageError: There is none, there are several, or the target did not run to its end.
    """
    check_finished(probed)
    rows, found = rows_of(probed), dict[tuple[bool, int], list[ProbedRow]]()
    for row in rows:
        # Nothing may be known to lead to an installed package.
        with suppress(UsageError):
            place = place_of(root, row.sites[0])
            far = min(
                (_distance(root, place, each, ticket) for each in ticket.locations),
                default=ELSEWHERE,
            )
            # A line that only allocates is not what the ticket speaks of.
            if far < ELSEWHERE and not (far == AT_LINE and row.is_light):
                found.setdefault((row.is_light, far), []).append(row)
    nearest = found[min(found)] if found else []
    if len(nearest) == 1:
        return nearest[0]
    what = "several statements wait or copy" if nearest else "nothing waits or copies"
    said = f"{what} in this run where {ticket.id.value} says"
    places = ", ".join(row.sites[0].place for row in (nearest or rows)[:MOST_LINES])
    raise UsageError(said, hint=f"--draft FILE:LINE says which: {places}")


def _distance(
    root: Path, statement: Statement, named: Location, ticket: Document
) -> int:
    """Return how far a statement is from where a ticket says that it is.

    A ticket may name lines, the line of a definition, a function, also in its head or its summary, or a file.
    """
    texts = [
        named.raw,
        ticket.title.value,
        *(row.raw for row in ticket.metadata.values()),
    ]
    if ticket.kind == "finding" and ticket.summary:
        texts.append(ticket.summary.raw)
    words = re.findall(r"[\w./-]*\w", " ".join(texts))
    is_named = {".", "/"} & {*(named.file or "")}
    paths = [f"/{word}" for word in (words if is_named else [statement.file])]
    file = f"/{statement.file}"
    if not any(file.endswith(path) or path.endswith(file) for path in paths):
        return ELSEWHERE
    functions = {*named.symbols}
    for lines in named.lines:
        if max(lines.first, statement.line) <= min(lines.last, statement.last_line):
            return AT_LINE
        if head := DEFINITION.match(
            find_statement(root, statement.file, lines.last, "").code
        ):
            functions.add(head[1])
    is_file = not (functions or named.lines)
    functions.update(words if is_file else ())
    if any(name and f".{name}." in f".{statement.function}." for name in functions):
        return IN_FUNCTION
    return IN_FILE if is_file else ELSEWHERE


def times_text(cost: ProbedCost) -> str:
    """Return a frequency in words: ``once``, ``5 times``, ``1 to 3 times`` or, of a law, ```2*n` times``."""
    least, most = min(cost.values), max(cost.values)
    if least < most:
        return f"`{cost.law}` times" if cost.law else f"{least} to {most} times"
    return "once" if least == 1 else f"{least} times"


def _draft(
    what: str, content: Mapping[str, Any], register: Register, given: Mapping[str, Any]
) -> Draft:
    """The ticket about something that a line does; what is ``given`` counts before the ``content``."""
    from finding_tickets.register.new import draft_of

    category = CATEGORIES.get(what, USUAL_CATEGORY)
    usual = {
        "severity": SEVERITY,
        "categories": (category,)
        if category in register.config.vocabulary.categories
        else (),
    }
    return draft_of({**usual, **content, **given}, "the draft")


def place_of(root: Path, site: ProbedSite) -> Statement:
    """Return the statement that a ticket about a site is about: of a package's line the one that leads there.

    Raises:
        UsageError: It is in no file of the repository.
    """
    here = site.called_from[0] if site.called_from else site
    place = find_statement(root, here.file, here.line, here.function)
    if not place.last_line:
        message = f"{here.file}:{here.line} is no statement of the repository, which a ticket could be about"
        raise UsageError(
            message, hint="name the line that leads there, or give a --verifier"
        )
    return place


def is_reached(root: Path, probed: Probed, place: Statement) -> bool:
    """Return True if a statement leads to lines of installed packages that cost something."""
    callers = [caller for site in probed.sites for caller in site.called_from]
    return any(
        find_statement(root, each.file, each.line, each.function) == place
        for each in callers
    )


def cost_of(root: Path, probed: Probed, place: Statement, metric: str) -> ProbedCost:
    """Return what a statement costs by a metric in each run, with all of its lines."""
    costs = []
    for site in probed.sites:
        is_counted = site.what in SYNCS if metric == "syncs" else site.what == metric
        if (
            is_counted
            and find_statement(root, site.file, site.line, site.function) == place
        ):
            costs.append(site.cost)
    return _total(probed.points, costs)


def _total(
    points: Sequence[Mapping[str, int]], costs: Sequence[ProbedCost]
) -> ProbedCost:
    """Return what is cost in all."""
    values = [sum(cost.values[run] for cost in costs) for run in range(len(points))]
    law = fit(points, values, points).law if len(values) > 1 else None
    return ProbedCost(tuple(values), law, None if law else span(values))


def occurrence_of(root: Path, place: Statement) -> int | None:
    """Return which of the equal statements of its function one is, from 1; None for the only one."""
    twins = equal_statements(root, place.file, place.function, place.code)
    return twins.index(place) + 1 if len(twins) > 1 else None


def draft_of_site(
    wanted: ProbeRequest,
    probed: Probed,
    site: ProbedSite,
    register: Register,
    given: Mapping[str, Any],
    revision: str | None,
    by_own_lines: Probed | None = None,
) -> tuple[Draft, Attached]:
    """The ticket about a site of a probe, and how it is measured again.

    ``given`` is what the ticket is to say whatever the probe says. The code can be had as it was found at the
    ``revision``; None for the work tree. The second probe has what packages cost at lines of the repository.

    Raises:
        UsageError: The site is of no statement of the repository.
    """
    from finding_tickets.register.new import Place
    from finding_tickets.report.templates import code, render

    root, within = register.root, wanted.within_path
    effect, *related = EFFECTS[site.what]
    # Of a line in an installed package, the ticket is about the line that leads there.
    here = site.called_from[0] if site.called_from else site
    # A line number would soon be another statement's.
    statement = code(
        shorten(here.statement or here.file, LONGEST_TITLE, placeholder=" …")
    )
    symbol = find_statement(root, here.file, here.line, here.function).function or None
    when = f"in each call of `{within}`" if within else f"in a run of `{probed.target}`"
    module, _, probed_function = probed.function.rpartition(":")
    places: tuple[Place, ...] = ()
    if (root / here.file).is_file():
        places = (
            Place(file=here.file, lines=((here.line, here.line),), symbol=symbol),
        )
    elif module.endswith(".py"):
        # Nothing tells who called the package; the ticket is about the function that was probed.
        places = (Place(file=module, symbol=probed_function),)
    place, cost, costs = None, site.cost, probed.metrics
    if not wanted.verifier:
        place, related = place_of(root, site), related[:1]
        cost = cost_of(root, by_own_lines or probed, place, related[0])
        costs = {related[0]: cost}
    times = times_text(cost)
    attached = _measured_again(
        wanted,
        probed,
        revision,
        # A metric without a law is claimed to stay in the range that was measured.
        claims={
            name: costs[name].law or span(costs[name].values)
            for name in related
            if name in costs
        },
        fixed=0,
        place=place,
        occurrence=occurrence_of(root, place) if place else None,
        site=site,
        here=here,
        package="" if here == site else _package_of(site.file),
        said=f"{effect}: {times}",
        cost=cost,
    )
    content = {
        "title": f"{statement} {effect} in {symbol or PurePosixPath(here.file).name}",
        "summary": f"Line {here.line} of `{here.file}` {effect} {times} {when}.",
        "description": render(
            "probed.md.j2", attached.context, root / register.config.templates
        ).strip(),
        "locations": places,
        "checklist": (
            f"{statement} no longer {effect}",
            *([ELSEWHERE_TOO] if place else []),
            SAME_RESULT,
        ),
    }
    return _draft(site.what, content, register, given), attached


def _measured_again(
    wanted: ProbeRequest, probed: Probed, revision: str | None, **more: object
) -> Attached:
    """Return how a probe is measured again, as its ticket says it."""
    from finding_tickets.report.templates import Attached

    names = [] if probed.points[0] == ONCE else list(probed.points[0])
    context = {
        "wanted": wanted,
        "probed": probed,
        "revision": revision,
        "names": names,
        **more,
    }
    return Attached(ticket=DRAFTED, remediation="probed.yaml.j2", context=context)


def draft_of_metric(
    wanted: ProbeRequest,
    probed: Probed,
    metric: str,
    register: Register,
    given: Mapping[str, Any],
    revision: str | None,
) -> tuple[Draft, Attached]:
    """Return the ticket about what a run costs in all by a metric, and how it is measured again."""
    from finding_tickets.register.new import Place

    cost = probed.metrics[metric]
    value = cost.law or span(cost.values)
    file = wanted.run_text(probed.function).partition(":")[0].partition(" ")[0]
    content = {
        "title": f"{probed.target} costs {metric} {value}",
        "summary": f"`{wanted.command()}` costs `{metric}` {cost}: {DEFINITIONS[metric]}.",
        "description": f"Measured on a {probed.meter} device ({probed.device}), torch {probed.torch}.",
        "locations": (Place(file=file),) if (register.root / file).is_file() else (),
        "checklist": (f"It costs less `{metric}`", SAME_RESULT),
    }
    # What no law tells is to fall below the most that was measured.
    fixed = f'"< {cost.law or max(cost.values)}"'
    attached = _measured_again(
        wanted, probed, revision, claims={metric: value}, fixed=fixed, place=None
    )
    return _draft(metric, content, register, given), attached


def _package_of(file: str) -> str:
    """The installed package of a file below site-packages, with its version; empty where there is none."""
    # Reads all that is installed, which only a draft needs.
    from importlib.metadata import packages_distributions, version

    names = packages_distributions().get(file.partition("/")[0].removesuffix(".py"), ())
    return f"{names[0]} {version(names[0])}" if names else ""


def trace_lines(
    traced: TracedRun, style: Styler, width: int, *, verbose: bool
) -> Iterator[str]:
    """The lines that wait, copy or allocate on the recorded GPU, and the agreement of the simulation."""
    if traced.has_stacks:
        yield from probe_lines(traced.probed, style, width, verbose=verbose)
        if not traced.has_lines:
            yield f"{INDENT}a line is where its function begins: the trace names no others"
    else:
        title, *_, total = probe_lines(traced.probed, style, width)
        yield from (title, f"{INDENT}no lines: recorded without with_stack=True", total)
    if verbose:
        yield f"{INDENT}{traced.calls} calls of ATen, {traced.distinct} distinct"
        yield from (f"{INDENT}{text}" for text in (*traced.sums, *traced.left_out))
    # Its sums are above; of all else than the shares and what is refuted, the reasons are for -v.
    for number, block in enumerate(
        "\n".join(traced.agreement).split("\n\n") if traced.agreement else ()
    ):
        if verbose or number < 2 or block.startswith("refuted"):
            yield from (
                "",
                *block.strip("\n").splitlines()[: None if verbose or number else 2],
            )


def trace_item(traced: TracedRun) -> dict[str, Any]:
    """The trace as an item of a JSON output."""
    names = (
        "sha256",
        "has_stacks",
        "has_lines",
        "has_memory",
        "calls",
        "distinct",
        "sums",
        "left_out",
    )
    item = probe_item(traced.probed)
    return {
        **fields_of(traced.probed, "target", "device"),
        **fields_of(traced, *names),
        "sites": item["sites"],
        "metrics": item["metrics"],
        "agreement": traced.compared,
    }
