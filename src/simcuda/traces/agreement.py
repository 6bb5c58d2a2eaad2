"""Whether the simulation agrees with a trace: every distinct call replayed, by op and metric.

The order of the filters is fixed, and each is counted: what is the library's choice, what was on the host,
what depends on something that was not recorded. What is left is decided: confirmed, or refuted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from simcuda.ledger import noting_operations
from simcuda.measurement import Gpu
from simcuda.real.trace import is_of_aten
from simcuda.simulation import device
from simcuda.traces.arguments import HOST_COPIES, UNBOUNDED, NotReplayableError, Way, ways_to_call
from simcuda.traces.call import METRICS, Argument, RecordedCall, Trace
from simcuda.traces.replay import ReplayedCost, replay, warm_up

COUNTED_AS = {
    "launches": ("aten_launches", "library_launches"),
    **dict.fromkeys(("copies", "bytes"), ("h2d", "d2h", "d2d", "p2p")),
    "waits": ("stream_syncs", "event_syncs", "device_syncs"),
    **dict.fromkeys(("allocations", "allocated_bytes"), ("allocations",)),
}
"""What the ledger calls them."""

CONFIRMED, REFUTED = "confirmed", "refuted"
LIBRARY, ON_HOST, OPEN, CIRCULAR, CHANGED = "library", "host", "open", "circular", "changed since"
"""Verdicts that decide nothing: a library's choice, tensors of the host, an argument that was not recorded, a
check of what was read out of the recording before, and an older version of PyTorch (``CHANGES``)."""

CHANGES = {
    "aten::binary_cross_entropy_with_logits": (
        "aten::clamp_min_",
        "made of a clamp, exp and log before, of log_sigmoid now (native/Loss.cpp, 1.13 and 2.13)",
    ),
    "aten::nll_loss_backward": (
        "void cunn_ClassNLLCriterion_updateGradInput_kernel",
        "cleared by a memset before (THCUNN/generic/ClassNLLCriterion.cu), by a kernel now (cuda/Loss.cu)",
    ),
}
"""Ops that newer versions do otherwise: an inner op or kernel that shows the older one, and the sources."""

VERDICTS = (CONFIRMED, REFUTED, LIBRARY, ON_HOST, CIRCULAR, OPEN, CHANGED)

LEAST = dict.fromkeys(METRICS, 1.0) | {"launches": 0.9995, "allocations": 0.999, "allocated_bytes": 0.999}
"""Least share of the decided calls, by metric, that must be confirmed."""

ROUNDING, LARGE, SLACK = 512, 1 << 20, 1 << 20
"""CUDACachingAllocator.cpp rounds bytes; a block for more than ``LARGE`` may be larger by ``SLACK``."""


@dataclass(frozen=True)
class Finding:
    """One distinct call and one metric.

    Attributes:
        op: Name without overload.
        arguments: As recorded.
        metric: One of ``METRICS``.
        verdict: One of ``VERDICTS``.
        count: How often the trace has it.
        agrees: Whether the likeliest way agrees, whatever the verdict.
        is_zero: Whether recording and simulation say that nothing happened.
        recorded: What was recorded.
        simulated: What each way to make the call gives, the likeliest first.
        why: What the verdict rests on.
        kernels: Names of the recorded kernels.
        operations: The operations of the simulation, without overload, that made the simulated number: one
            alone, or each that ran where it is 0; none where several made it together.
    """

    op: str
    arguments: tuple[Argument, ...]
    metric: str
    verdict: str
    count: int
    agrees: bool
    is_zero: bool
    recorded: Any
    simulated: tuple[Any, ...]
    why: str
    kernels: tuple[str, ...]
    operations: tuple[str, ...]


@dataclass(frozen=True)
class TraceAgreement:
    """A trace beside its replay.

    Attributes:
        trace: The trace.
        profile: Name of the simulated profile.
        replayed: Distinct calls (op with arguments) that were replayed, and how often each occurs.
        not_replayable: The others by op, arguments and reason, with how often each occurs.
        findings: All comparisons.
    """

    trace: Trace
    profile: str
    replayed: dict[tuple[str, tuple[Argument, ...]], int]
    not_replayable: dict[tuple[str, tuple[Argument, ...] | None, str], int]
    findings: tuple[Finding, ...]


def agreement_with(trace: Trace) -> TraceAgreement:
    """Replay every distinct call of a trace and compare."""
    profile = nearest_profile(trace)
    calls: dict[tuple[str, tuple[Argument, ...] | None], list[RecordedCall]] = defaultdict(list)
    for call in trace.calls:
        calls[call.op, call.arguments].append(call)
    replayed: dict[tuple[str, tuple[Argument, ...]], int] = {}
    not_replayable: dict[tuple[str, tuple[Argument, ...] | None, str], int] = {}
    findings: list[Finding] = []
    with noting_operations(), device(profile=profile) as gpu:
        warm_up()
        for (op, arguments), same in calls.items():
            try:
                if arguments is None:
                    raise NotReplayableError("shapes or types were not recorded")
                findings += _compare(gpu, trace, op, arguments, same)
                replayed[op, arguments] = len(same)
            except NotReplayableError as error:
                not_replayable[op, arguments, str(error)] = len(same)
    return TraceAgreement(trace, profile, replayed, not_replayable, tuple(findings))


def nearest_profile(trace: Trace) -> str:
    """The profile of a trace's GPU, or else the one nearest to it by generation and CUDA version."""
    gpu = trace.devices[0] if trace.devices else ""
    newest = any(name in gpu for name in ("H100", "H200", "H20", "GH200", "B200", "B300", "GB200", "GB300"))
    if not newest:
        return "a100-cuda12"
    return "h200-cuda12" if trace.cuda.startswith(("11", "12")) else "h200-cuda13"


def _compare(
    gpu: Gpu, trace: Trace, op: str, arguments: tuple[Argument, ...], calls: Sequence[RecordedCall]
) -> Iterator[Finding]:
    # Costs may differ between equal calls: of tensors on the host and on the device, for example.
    variants: dict[Any, list[RecordedCall]] = defaultdict(list)
    for call in calls:
        cost = call.cost
        variants[*cost.values.values(), *cost.kernels, cost.allocations is None].append(call)
    for equal_calls in variants.values():
        first, cost = equal_calls[0], equal_calls[0].cost
        kinds = [copy for copy in cost.copies if copy.kind in ("h2d", "d2h")] if op in HOST_COPIES else []
        direction, pinned = (kinds[0].kind, not kinds[0].pageable) if kinds else ("", False)
        ways = ways_to_call(op, arguments, direction, pinned=pinned, has_scalars=trace.has_scalars)
        outcomes = _replayed(gpu, op, ways)
        metrics = [metric for metric in METRICS if cost.allocations is not None or "alloc" not in metric]
        recorded, simulated = cost.values, [outcome.values for _, outcome in outcomes]
        did_nothing = not (cost.memsets or any(map(_has_any, recorded.values())))
        is_doing = all(any(_has_any(values[metric]) for metric in metrics) for values in simulated)
        why_host = _why_on_host(gpu, op, outcomes[0][0]) if did_nothing and is_doing else ""
        for metric in metrics:
            given, values = recorded[metric], [each[metric] for each in simulated]
            agreeing = [same(metric, given, value) for value in values]
            verdict, why = _decided_without_numbers(metric, first, outcomes, direction, why_host) or (
                _judge(outcomes, values, agreeing)
            )
            yield Finding(
                *(op, arguments, metric, verdict, len(equal_calls), agreeing[0]),
                *(not any(map(_has_any, (given, *values))), given, tuple(dict.fromkeys(values)), why),
                *(tuple(cost.kernels), _operations_behind(metric, [outcome for _, outcome in outcomes])),
            )


Outcomes = Sequence[tuple[Way, ReplayedCost]]


def _decided_without_numbers(
    metric: str, call: RecordedCall, outcomes: Outcomes, direction: str, why_host: str
) -> tuple[str, str] | None:
    """The first filter that applies, as verdict and reason; whether the numbers agree plays no part."""
    marks = sorted({mark for _, outcome in outcomes for mark in outcome.marks})
    foreign = [name for name in call.cost.kernels if not is_of_aten(name)]
    if metric in ("launches", "allocations", "allocated_bytes") and (marks or foreign):
        return LIBRARY, f"marked: {', '.join(marks)}" if marks else f"not marked: {foreign[0][:80]}"
    if why_host:
        return ON_HOST, why_host
    sign, change = CHANGES.get(call.op, ("", ""))
    if sign and any(name.startswith(sign) for name in (*call.inner, *call.cost.kernels)):
        return CHANGED, change
    # The side of a tensor was read out of its copy, and whether it blocks is seldom recorded.
    if direction and metric == "copies":
        return CIRCULAR, "the direction of the copy is taken from the recording"
    is_open = any(name == "non_blocking" for way, _ in outcomes for name, _ in way.chosen)
    if direction and metric == "waits" and is_open:
        return CIRCULAR, "non_blocking was not recorded"
    return None


def _judge(outcomes: Outcomes, values: Sequence[Any], agreeing: Sequence[bool]) -> tuple[str, str]:
    """The verdict and reason where the numbers decide."""
    if all(agreeing):
        return CONFIRMED, ""
    # What was not recorded and changes the metric; all that was not recorded if nothing does so alone.
    by_name: dict[str, dict[str, set[Any]]] = defaultdict(lambda: defaultdict(set))
    for (way, _), value in zip(outcomes, values, strict=True):
        for name, label in way.chosen:
            by_name[name][label].add(value)
    telling = [name for name, by in by_name.items() if len(set(map(frozenset, by.values()))) > 1]
    deciding = telling or list(by_name) if len(set(values)) > 1 else []
    if any(agreeing):
        return OPEN, f"depends on {', '.join(deciding)}"
    # Of these only examples were tried: another value might agree.
    indices = {"indices"} & {name for way, _ in outcomes for name, _ in way.chosen}
    if examples := [name for name in deciding if name in UNBOUNDED] or sorted(indices):
        return OPEN, f"no {' or '.join(examples)} that was tried agrees"
    return REFUTED, ""


def _operations_behind(metric: str, outcomes: Sequence[ReplayedCost]) -> tuple[str, ...]:
    """As ``Finding.operations``, of those that are the same in every way to make the call."""
    in_each = []
    for outcome in outcomes:
        ran, made = set[str](), set[str]()
        for operation, counts in outcome.operations.items():
            name = operation.rpartition(".")[0]
            ran.add(name)
            made |= {name} if any(what in counts for what in COUNTED_AS[metric]) else set()
        in_each.append(made if len(made) == 1 else ran if not made else set[str]())
    return tuple(sorted(set.intersection(*in_each)))


def _replayed(gpu: Gpu, op: str, ways: Iterable[Way]) -> list[tuple[Way, ReplayedCost]]:
    outcomes, first = [], None
    for way in ways:
        try:
            outcomes.append((way, replay(gpu, op, way)))
        except NotReplayableError as error:
            first = first or error
    if not outcomes:
        raise first or NotReplayableError("nothing is known of its arguments")
    return outcomes


def _why_on_host(gpu: Gpu, op: str, way: Way) -> str:
    try:
        values = replay(gpu, op, way, on_host=True).values
    except NotReplayableError:
        return ""
    if any(map(_has_any, values.values())):
        return ""
    return "the runtime was not called, and for tensors of the host it need not be"


def same(metric: str, recorded: Any, simulated: Any) -> bool:
    """Whether two values of a metric are equal; bytes of blocks but for the allocator's rounding."""
    if metric != "allocated_bytes":
        return bool(recorded == simulated)
    pairs = zip((-(-requested // ROUNDING) * ROUNDING for requested in simulated), recorded, strict=False)
    return len(recorded) == len(simulated) and all(
        least <= block <= least + (SLACK if least > LARGE else 0) for least, block in pairs
    )


def _has_any(value: Any) -> bool:
    return any(value) if isinstance(value, tuple) else bool(value)
