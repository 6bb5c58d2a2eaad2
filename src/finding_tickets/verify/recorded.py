"""The caller's half of ``tickets trace``: have a worker read traces, and type its answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from finding_tickets.errors import BadDataError
from finding_tickets.measure.processes.isolation import PRELOADED, Isolation, Task
from finding_tickets.verify.judge import answer_of
from finding_tickets.verify.probing import Probed

TRACE_FUNCTION = "finding_tickets.measure.recorded:trace_payload"
PRELOAD = (*PRELOADED, "finding_tickets.measure.recorded")


@dataclass(frozen=True, kw_only=True)
class TracedRun:
    """What a trace tells of the run that it records.

    Attributes:
        probed: The lines and totals, as a probe of the run would tell.
        sha256: Of the file.
        has_stacks: Whether Python's stacks were recorded, so that there are lines.
        has_lines: Whether these are the lines that ran, not those where their functions begin.
        has_memory: Whether allocations were recorded.
        calls: How many ops were outermost in ATen.
        distinct: How many of them differ in op or arguments.
        sums: What was added up to see that no event is lost.
        left_out: What was not attributed, and why.
        agreement: How far the simulation agrees, as ``simcuda.agree --trace`` prints it; empty if not asked.
        compared: The same as the item of its JSON.
    """

    probed: Probed
    sha256: str
    has_stacks: bool
    has_lines: bool
    has_memory: bool
    calls: int
    distinct: int
    sums: tuple[str, ...]
    left_out: tuple[str, ...]
    agreement: tuple[str, ...] = ()
    compared: dict[str, Any] | None = None


_TRACED = TypeAdapter(TracedRun)


def read_traces(
    files: Sequence[Path],
    root: Path,
    isolation: Isolation,
    *,
    only_lines: bool,
    timeout: float,
    memory: int,
) -> Iterator[TracedRun | BadDataError]:
    """What each trace tells, or why it cannot be used.

    Args:
        files: The traces.
        root: Where the source of their lines may be.
        isolation: Where they are read.
        only_lines: Whether to compare nothing with the simulation, which takes longer than to read.
        timeout: Seconds for each.
        memory: Bytes for each.
    """
    tasks = {}
    for file in files:
        order = {
            "file": str(file.resolve()),
            "target": str(file),
            "root": str(root),
            "only_lines": only_lines,
        }
        tasks[str(file)] = Task(
            target=TRACE_FUNCTION, payload=order, root=root, timeout=timeout, memory=memory
        )
    # Tasks are removed as they end.
    names = list(tasks)
    outcomes = dict(isolation.run(tasks))
    for name in names:
        value = outcomes[name].value
        wrong = value.get("wrong") if isinstance(value, dict) else None
        answer = answer_of(outcomes[name], _TRACED)
        why = wrong or (answer if isinstance(answer, str) else "")
        yield BadDataError(str(why), file=name) if isinstance(answer, str) else answer
