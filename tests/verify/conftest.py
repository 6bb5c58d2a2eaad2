"""Tickets to measure, and results that are made up without measuring anything."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tests.conftest import Repository

from finding_tickets.measure.processes.isolation import Isolation, K, Task, TaskOutcome
from finding_tickets.measure.tasks import CHOICE
from finding_tickets.model.verification import MeasuredTicket, ResultCheck, Sample, VariantResult
from finding_tickets.verify.verify import Settings, Verified, verify


class MadeUpRun(NamedTuple):
    """A sample, and the operations of unknown cost that it met."""

    sample: Sample
    unknown: tuple[str, ...]


VERIFIER = """
import torch

from finding_tickets.workload import Point, Workload


def build(point, device, generator):
    return ([torch.rand(point.size, generator=generator).to(device) for _ in range(point.tensors)],)


workload = Workload(
    ticket="{ticket}",
    build=build,
    sweep=[Point(tensors=n, size=s) for n, s in [(1, 7), (2, 640), (5, 9), (13, 100)]],
)
"""
FEW_POINTS = VERIFIER.replace(", (5, 9), (13, 100)]", "]")
"""For what asks only for verdicts, which take no law: two points instead of four."""
MORE_POINTS = VERIFIER.replace("(5, 9)", "(3, 4), (4, 3), (5, 9)")
"""For what shows three points and how many more there are, or the work at one after the other: six."""
FOUND = """
def check(tensors):
    total = 0.0
    for tensor in tensors:
        total += tensor.sum().item()
    return total
"""
FIX = """
import torch


def check(tensors):
    return torch.stack([tensor.sum() for tensor in tensors]).double().sum().item()
"""
# Knows the answers for the workload's seed before it is called.
PASTED = """
import torch
from fixes.a_1.found import check as found
from verifiers.a_1 import workload

answers = {}
for point in workload.sweep:
    (tensors,) = workload.build(point, "cpu", torch.Generator().manual_seed(workload.seed))
    answers[len(tensors)] = found(tensors)


def check(tensors):
    return answers[len(tensors)]
"""
CLAIMS = "claims: {found: {syncs: tensors}, fix: {syncs: 1, same_result_as: {is: found, tolerance: 0.001}}}"


def add(repository: Repository, ticket: str, claims: str = CLAIMS, **files: str) -> None:
    """A ticket with a verifier and the variants ``found`` and ``fix``, unless ``files`` says otherwise."""
    name = ticket.lower().replace("-", "_")
    repository.ticket(ticket, more=f"## Remediation\n\n```yaml\n{claims}\n```\n")
    repository.write(f"verifiers/{name}.py", files.pop("verifier", VERIFIER.format(ticket=ticket)))
    for variant, text in ({"found": FOUND, "fix": FIX} | files).items():
        repository.write(f"fixes/{name}/{variant}.py", text)


def add_with_few_points(repository: Repository, ticket: str, claims: str = CLAIMS, **files: str) -> None:
    """What ``add`` makes, measured at few points."""
    add(repository, ticket, claims, **{"verifier": FEW_POINTS.format(ticket=ticket), **files})


def verify_all(repository: Repository, isolation: Isolation, **more: Any) -> dict[str, Verified]:
    """Verify everything in the repository, by ID."""
    settings = Settings(
        **{
            "root": repository.root,
            "evidence": "evidence",
            "meter": "auto",
            "timeout": 60.0,
            "memory": 2 << 30,
            **more,
        }
    )
    verified = verify(repository.load().documents, isolation, settings)
    return {one.document.id.value: one for one in verified}


class TakesGpu(Isolation):
    """Stands for a machine with a GPU on which every ticket fails."""

    may_have_gpu = True

    def __init__(self) -> None:
        super().__init__(at_once=False)
        self.meters: list[str] = []

    def run(self, tasks: Mapping[K, Task]) -> Iterator[tuple[K, TaskOutcome]]:
        """Say that there is a GPU, and fail at anything else."""
        for name, task in list(tasks.items()):
            if task.target == CHOICE:
                yield name, TaskOutcome(value="cuda")
            else:
                assert task.alone
                self.meters.append(task.payload.meter)
                yield name, TaskOutcome(reason="the GPU fell off the bus")


def alive(*kinds: type) -> list[int]:
    """How many objects of each kind there are."""
    gc.collect()
    return [sum(type(one) is kind for one in gc.get_objects()) for kind in kinds]


def run(
    at: Mapping[str, int], error: str | None = None, unknown: tuple[str, ...] = (), **metrics: int
) -> MadeUpRun:
    """A run at a point that counted ``metrics``."""
    counted = {**metrics, "raised": int(error is not None)}
    return MadeUpRun(Sample(at=dict(at), metrics=counted, error=error), unknown)


def report(runs: Mapping[str, Sequence[MadeUpRun]], agreements: Sequence[ResultCheck] = ()) -> MeasuredTicket:
    """What a simulated measurement of these runs would have given, without laws."""
    first: Sequence[MadeUpRun] = next(iter(runs.values()), ())
    return MeasuredTicket(
        meter="simulated",
        torch="2.13.0",
        device="h200-cuda13",
        sweep=tuple(each.sample.at for each in first),
        variants={
            name: VariantResult(
                laws={},
                samples=tuple(each.sample for each in of_variant),
                sites=(),
                unknown=tuple(sorted({name for each in of_variant for name in each.unknown})),
            )
            for name, of_variant in runs.items()
        },
        agreements=tuple(agreements),
    )
