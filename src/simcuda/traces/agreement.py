"""Compare the simulation with a trace: every distinct call replayed, by op and metric.

The order of the filters is fixed, and each is counted: what is the library's choice, what was on the host,
what an older PyTorch did otherwise, what was not recorded. What is left is decided: confirmed, or refuted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from simcuda.ledger import noting_operations
from simcuda.measurement import Gpu
from simcuda.real.trace import is_of_aten
from simcuda.simulation import device
from simcuda.traces.arguments import (
    HOST_COPIES,
    NUMBERS,
    TYPES_IN_LISTS,
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
LIBRARY, ON_HOST, OPEN, CIRCULAR, CHANGED = "library", "host", "open", "circular", "changed since"
"""Verdicts that decide nothing: a library's choice, tensors of the host, an argument that was not recorded, a
check of what was read out of the recording before, and an older version of PyTorch (``CHANGES``)."""


def _ran(name: str) -> Callable[[RecordedCall], bool]:
    """Recognise calls in which an inner op or a kernel of that name ran."""
    return lambda call: any(each.startswith(name) for each in (*call.inner, *call.cost.kernels))


def _adds_row_in_product(call: RecordedCall) -> bool:
    """Recognise a product of one row with a bias in which no copy of the bias was made."""
    names = ("input", "weight", "bias") if call.op == "aten::linear" else ("bias", "input", "weight")
    given = dict(zip(names, call.arguments or (), strict=False))
    rows, bias = given.get("input"), given.get("bias")
    if not isinstance(rows, RecordedTensor) or not isinstance(bias, RecordedTensor):
        return False
    is_one_row = rows.shape[-1:] != (1,) and prod(rows.shape[:-1]) == 1
    return is_one_row and len(bias.shape) == 1 and not call.cost.copies


BIAS_OF_ONE_ROW = (
    "cuBLASLt added the bias to one row too before, now it is copied into the result first "
    "(native/cuda/Blas.cpp, isInputCompliesAddmmCudaLt)"
)
CHANGES: dict[str, tuple[Callable[[RecordedCall], bool], str]] = {
    "aten::binary_cross_entropy_with_logits": (
        _ran("aten::clamp_min_"),
        "made of a clamp, exp and log before, of log_sigmoid now (native/Loss.cpp, 1.13 and 2.13)",
    ),
    "aten::nll_loss_backward": (
        _ran("void cunn_ClassNLLCriterion_updateGradInput_kernel"),
        "cleared by a memset before (THCUNN/generic/ClassNLLCriterion.cu), by a kernel now (cuda/Loss.cu)",
    ),
    **dict.fromkeys(("aten::linear", "aten::addmm"), (_adds_row_in_product, BIAS_OF_ONE_ROW)),
}
"""Ops that newer versions do otherwise: how the recording shows the older one, and the sources."""

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
        agrees: Whether the numbers are equal, whatever the verdict.
        is_zero: Whether recording and simulation say that nothing happened.
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
    agrees: bool
    is_zero: bool
    recorded: Any
    simulated: Any
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
        made = call_to_make(op, arguments, direction, pinned=pinned, has_scalars=trace.has_scalars)
        outcome = replay(gpu, op, made)
        recorded, simulated = cost.values, outcome.values
        metrics = [metric for metric in METRICS if cost.allocations is not None or "alloc" not in metric]
        did_nothing = not (cost.memsets or any(map(_has_any, recorded.values())))
        is_doing = any(_has_any(simulated[metric]) for metric in metrics)
        was_on_host = did_nothing and is_doing and _costs_nothing_on_host(gpu, op, made)
        for metric in metrics:
            agrees = same(metric, recorded[metric], simulated[metric])
            undecided = _undecided(metric, first, made, outcome, direction, was_on_host=was_on_host)
            if undecided is None and not agrees and NUMBERS in made.missing:
                undecided = OPEN, f"not recorded: {NUMBERS}"
            verdict, why = undecided or (CONFIRMED if agrees else REFUTED, "")
            yield Finding(
                op=op,
                arguments=arguments,
                metric=metric,
                verdict=verdict,
                count=len(equal_calls),
                agrees=agrees,
                is_zero=not _has_any(recorded[metric]) and not _has_any(simulated[metric]),
                recorded=recorded[metric],
                simulated=simulated[metric],
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
    *,
    was_on_host: bool,
) -> tuple[str, str] | None:
    """Return the first filter that applies, as verdict and reason; the numbers play no part."""
    foreign = [name for name in call.cost.kernels if not is_of_aten(name)]
    if metric in ("launches", "allocations", "allocated_bytes"):
        if outcome.marks:
            return LIBRARY, f"marked: {', '.join(outcome.marks)}"
        if foreign:
            return LIBRARY, f"not marked: {foreign[0][:80]}"
    if was_on_host:
        return ON_HOST, "the runtime was not called, and for tensors of the host it need not be"
    if call.op in CHANGES:
        shows_older, change = CHANGES[call.op]
        if shows_older(call):
            return CHANGED, change
    # The side of a tensor was read out of its copy.
    if direction and metric == "copies":
        return CIRCULAR, "the direction of the copy is taken from the recording"
    # A number changes the type of a result at most.
    missing = [what for what in made.missing if what != NUMBERS]
    if TYPES_IN_LISTS in missing and metric not in ("bytes", "allocated_bytes"):
        missing.remove(TYPES_IN_LISTS)
    if missing:
        return OPEN, f"not recorded: {', '.join(missing)}"
    return None


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


def _costs_nothing_on_host(gpu: Gpu, op: str, made: CallToMake) -> bool:
    try:
        values = replay(gpu, op, made, on_host=True).values
    except NotReplayableError:
        return False
    return not any(map(_has_any, values.values()))


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
