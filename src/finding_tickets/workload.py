"""What a verifier file imports: the points of a sweep and the workload that builds arguments for each.

Depends on torch and the standard library alone, so that a verifier also runs on a bare GPU machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


TIMED_ON = ("cuda", "cpu")


class Point(Mapping[str, int]):
    """The sizes of one run: ``Point(params=4, largest=1024)``, read as ``point.params``.

    The names are the variables in which laws are expressed. Values are integers; a yes or no is 1 or 0.
    """

    __slots__ = ("_variables",)

    def __init__(self, **variables: int) -> None:
        self._variables = {name: int(value) for name, value in variables.items()}

    def __getattr__(self, name: str) -> int:
        try:
            return self._variables[name]
        except KeyError:
            raise AttributeError(f"this point has no variable {name!r}; it has {', '.join(self)}") from None

    def __getitem__(self, name: str) -> int:
        return self._variables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)

    def __hash__(self) -> int:
        return hash(tuple(self._variables.items()))

    def __repr__(self) -> str:
        return f"Point({', '.join(f'{name}={value}' for name, value in self.items())})"


def _as_is(result: Any) -> Any:
    return result


def _one_device(point: Point) -> int:  # noqa: ARG001 - the signature is that of Workload.devices
    return 1


def _all_memory(point: Point) -> int | None:  # noqa: ARG001 - the signature is that of Workload.memory
    return None


@dataclass(frozen=True, kw_only=True)
class Workload:
    """How to make the work for every variant of a ticket; it says nothing of what should come out.

    Attributes:
        ticket: The ticket's ID.
        build: ``build(point, device, generator)`` returns the arguments of one run as a tuple: fresh tensors,
            with new values from ``generator`` each time. ``device`` is ``"cuda"``, or ``"cpu"`` where
            torch.compile looks at the code; further devices are ``f"{device}:1"`` and so on.
        sweep: The points at which every variant runs; counts and sizes should vary independently.
        read: What the caller does with the result of a variant, inside the measured region.
        same: ``same(expected, actual)`` returns None where two results agree, else the difference in words.
            By default tensors are compared exactly, within containers and dataclasses too.
        devices: How many devices a point needs; a meter that has fewer lists the point as not measured.
        memory: How many bytes of memory the device has at a point; None for all of it. With less, a run
            can end in an out-of-memory error, which the metric ``ooms`` counts.
        seed: Seed of the generators that ``build`` receives.
        timed_on: Where claims about ``seconds`` are timed: ``"cuda"``, which takes a real GPU, or ``"cpu"``
            where the work is the host's own, such as loading data; ``build`` then gets that as its device.
    """

    ticket: str
    build: Callable[[Point, str, torch.Generator], tuple[Any, ...]]
    sweep: Sequence[Point]
    read: Callable[[Any], Any] = _as_is
    same: Callable[[Any, Any], str | None] | None = None
    devices: Callable[[Point], int] = _one_device
    memory: Callable[[Point], int | None] = _all_memory
    seed: int = 0
    timed_on: str = "cuda"

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for a place where nothing is timed."""
        if self.timed_on not in TIMED_ON:
            raise ValueError(f"timed_on must be one of {', '.join(TIMED_ON)}, not {self.timed_on!r}")


def stub_imports(*packages: str, missing_only: bool = True) -> None:
    """Let the code under test import packages that are not there, before the verifier imports that code.

    A stand-in accepts everything and does nothing: loggers, trackers, viewers. What is counted must not
    depend on it. ``missing_only=False`` replaces installed packages too, because they are heavy.

    Raises:
        RuntimeError: A package that is to be replaced has been imported before.
    """
    from finding_tickets.measure.stubs import stub

    stub(packages, missing_only=missing_only)


def main(workload: Workload) -> None:
    """Measure every variant in ``fixes/<id>/`` beside the calling verifier and print the laws."""
    from finding_tickets.measure.standalone import run

    run(workload)
