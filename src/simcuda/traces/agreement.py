"""Compare the simulation with a trace: every distinct call replayed, by op and metric.

The order of the filters is fixed, and each is counted: what is the library's choice, what was on the host,
what an older PyTorch did otherwise, what was not recorded. What is left is decided: confirmed, or refuted.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from simcuda.ledger import noting_operations
from simcuda.measurement import Gpu
from simcuda.real.trace import is_of_aten
from simcuda.simulation import device
from simcuda.traces.arguments import (
    HOST_COPIES,
    CallToMake,
    NotReplayableError,
    call_to_make,
)
from simcuda.traces.call import METRICS, Argument, RecordedCall, RecordedTensor, Trace
from simcuda.traces.replay import ReplayedCost, replay, warm_up

COUNTED_AS = {
    "launches": ("aten_launches", "library_launches"),
    **dict.fromkeys(("copies", "bytes"), ("h2d", "d2h", "d2d", "p2p")),
    "waits": ("stream_syncs", "event_syncs", "device_syncs"),
    **dict.fromkeys(("allocations", "allocated_bytes"), ("allocations",)),
}
"""What the ledger calls them."""

CONFIRMED, REFUTED = "confirmed", "refuted"
LIBRARY = "library"
ON_HOST = "host"
CHANGED = "changed since"
CIRCULAR = "circular"
OPEN = "open"
"""Verdicts that decide nothing: a library's choice, a call that did nothing, an older version of PyTorch, a
check of what was read out of the recording before, and what was not recorded."""
VERDICTS = (CONFIRMED, REFUTED, LIBRARY, ON_HOST, CHANGED, CIRCULAR, OPEN)

DID_NOTHING = "nothing of CUDA was called: its tensors may have been the host's"
BIAS_OF_ONE_ROW = (
    "cuBLASLt added the bias to one row too before, now it is copied into the result first "
    "(native/cuda/Blas.cpp, isInputCompliesAddmmCudaLt)"
)
TYPES_IN_LISTS = "not recorded: types in lists"
NUMBERS = "not recorded: whether a tensor was a number"

ROUNDING = 512
LARGE = 1 << 20
SLACK = 1 << 20
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
        recorded: What was recorded.
        simulated: What the simulation gives.
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
    recorded: Any
    simulated: Any
    why: str
    kernels: tuple[str, ...]
    operations: tuple[str, ...]

    @property
    def is_zero(self) -> bool:
        """Return whether recording and simulation say that nothing happened."""
        return not has_any(self.recorded) and not has_any(self.simulated)


@dataclass(frozen=True)
class TraceAgreement:
    """A trace and its replay.

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
    calls: dict[tuple[str, tuple[Argument, ...] | None], list[RecordedCall]] = (
        defaultdict(list)
    )
    for call in trace.calls:
        calls[call.op, call.arguments].append(call)
    replayed: dict[tuple[str, tuple[Argument, ...]], int] = {}
    not_replayable: dict[tuple[str, tuple[Argument, ...] | None, str], int] = {}
    findings: list[Finding] = []
    with noting_operations(), device(profile=profile) as gpu:
        warm_up()
        for (op, arguments), equal_calls in calls.items():
            try:
                findings += _compare(gpu, equal_calls)
                replayed[op, arguments or ()] = len(equal_calls)
            except NotReplayableError as error:
                not_replayable[op, arguments, str(error)] = len(equal_calls)
    return TraceAgreement(trace, profile, replayed, not_replayable, tuple(findings))


def nearest_profile(trace: Trace) -> str:
    """The profile of a trace's GPU, or else the one nearest to it by generation and CUDA version."""
    gpu = trace.devices[0] if trace.devices else ""
    if not re.search(r"(H100|H200|H20|GH200|B200|B300)\b", gpu):
        return "a100-cuda12"
    return "h200-cuda12" if trace.cuda.startswith(("11", "12")) else "h200-cuda13"


def _compare(gpu: Gpu, calls: Sequence[RecordedCall]) -> Iterator[Finding]:
    """Replay equal calls once for each cost that they had, and compare."""
    # Costs may differ: of tensors on the host and on the device, for example.
    variants: dict[Any, list[RecordedCall]] = defaultdict(list)
    for call in calls:
        cost = call.cost
        variants[*cost.values.values(), *cost.kernels, cost.allocations is None].append(
            call
        )
    for equal_calls in variants.values():
        call, cost = equal_calls[0], equal_calls[0].cost
        direction, pinned = "", False
        for copy in cost.copies:
            if call.op in HOST_COPIES and copy.kind in ("h2d", "d2h"):
                direction = copy.kind
                pinned = not copy.pageable
        made = call_to_make(call.op, call.arguments, direction, pinned=pinned)
        outcome = replay(gpu, call.op, made)
        for metric in METRICS:
            if cost.allocations is None and "alloc" in metric:
                continue
            recorded = cost.values[metric]
            simulated = outcome.values[metric]
            agrees = same(metric, recorded, simulated)
            verdict = CONFIRMED if agrees else REFUTED
            why = ""
            if undecided := _undecided(metric, call, made, outcome, direction):
                verdict, why = undecided
            elif not agrees and made.may_have_numbers:
                # A number changes the type of a result at most.
                verdict, why = OPEN, NUMBERS
            yield Finding(
                op=call.op,
                arguments=call.arguments or (),
                metric=metric,
                verdict=verdict,
                count=len(equal_calls),
                recorded=recorded,
                simulated=simulated,
                why=why,
                kernels=tuple(cost.kernels),
                operations=_operations_behind(metric, outcome),
            )


def _undecided(
    metric: str,
    call: RecordedCall,
    made: CallToMake,
    outcome: ReplayedCost,
    direction: str,
) -> tuple[str, str] | None:
    """Return the first filter that applies, as verdict and reason; whether numbers agree plays no part."""
    cost = call.cost
    foreign = [name for name in cost.kernels if not is_of_aten(name)]
    if metric in ("launches", "allocations", "allocated_bytes"):
        if outcome.marks:
            return LIBRARY, f"marked: {', '.join(outcome.marks)}"
        if foreign:
            return LIBRARY, f"not marked: {foreign[0][:80]}"
    did_nothing = not (cost.memsets or any(map(has_any, cost.values.values())))
    if did_nothing and any(map(has_any, outcome.values.values())):
        return ON_HOST, DID_NOTHING
    if _adds_row_in_product(call):
        return CHANGED, BIAS_OF_ONE_ROW
    # The side of a tensor was read out of its copy.
    if direction and metric == "copies":
        return CIRCULAR, "the direction of the copy is taken from the recording"
    if made.has_lists and metric in ("bytes", "allocated_bytes"):
        return OPEN, TYPES_IN_LISTS
    return None


def _adds_row_in_product(call: RecordedCall) -> bool:
    """Recognise a product of one row with a bias in which no copy of the bias was made."""
    if call.op not in ("aten::linear", "aten::addmm") or call.cost.copies:
        return False
    names = (
        ("input", "weight", "bias")
        if call.op == "aten::linear"
        else ("bias", "input", "weight")
    )
    given = dict(zip(names, call.arguments or (), strict=False))
    rows, bias = given.get("input"), given.get("bias")
    if not isinstance(rows, RecordedTensor) or not isinstance(bias, RecordedTensor):
        return False
    return (
        rows.shape[-1:] != (1,) and prod(rows.shape[:-1]) == 1 and len(bias.shape) == 1
    )


def _operations_behind(metric: str, outcome: ReplayedCost) -> tuple[str, ...]:
    """Return the operations as in ``Finding.operations``."""
    ran, made = set[str](), set[str]()
    for operation, counts in outcome.operations.items():
        name = operation.rpartition(".")[0]
        ran.add(name)
        if any(what in counts for what in COUNTED_AS[metric]):
            made.add(name)
    if len(made) > 1:
        return ()
    return tuple(sorted(made or ran))


def same(metric: str, recorded: Any, simulated: Any) -> bool:
    """Return whether two values of a metric are equal; bytes of blocks but for the allocator's rounding."""
    if metric != "allocated_bytes":
        return bool(recorded == simulated)
    pairs = zip(
        (-(-requested // ROUNDING) * ROUNDING for requested in simulated),
        recorded,
        strict=False,
    )
    return len(recorded) == len(simulated) and all(
        least <= block <= least + (SLACK if least > LARGE else 0)
        for least, block in pairs
    )


def has_any(value: Any) -> bool:
    """Return whether a value of a metric says that something happened."""
    return any(value) if isinstance(value, tuple) else bool(value)
