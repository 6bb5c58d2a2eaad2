"""The running counts of a simulation, and the source lines they are attributed to."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType

import torch

COPIES = ("h2d", "d2h", "d2d", "p2p")


@dataclass(frozen=True, order=True)
class Site:
    """A source line of user code and how often it caused one thing.

    ``what`` is ``stream_syncs``, ``event_syncs``, ``device_syncs``, ``implicit_syncs``, ``h2d``, ``d2h``,
    ``d2d``, ``p2p``, ``allocations`` or ``hazards``.
    """

    file: str
    line: int
    function: str
    what: str
    count: int


@dataclass(frozen=True)
class Usage:
    """Bytes in use at one moment: requested and in blocks on all devices together, and on the host."""

    requested: int
    allocated: int
    host: int


@dataclass
class Measurement:
    """What the code in one measured block cost; final once the block has ended.

    Sizes are in bytes; peaks are above what was in use when the block began.

    Attributes:
        unknown: Operations that could make the host wait and have no rule: they are not counted.
        approximate: Operations whose kernels or workspaces a library chooses, so that they are modelled.
    """

    stream_syncs: int = 0
    event_syncs: int = 0
    device_syncs: int = 0
    implicit_syncs: int = 0
    h2d: int = 0
    h2d_bytes: int = 0
    d2h: int = 0
    d2h_bytes: int = 0
    d2d: int = 0
    d2d_bytes: int = 0
    p2p: int = 0
    p2p_bytes: int = 0
    launches: int = 0
    allocations: int = 0
    largest_allocation: int = 0
    peak_bytes: int = 0
    peak_allocated_bytes: int = 0
    host_peak_bytes: int = 0
    hazards: int = 0
    ooms: int = 0
    _usage: Callable[[], Usage] = field(default=lambda: Usage(0, 0, 0), repr=False)
    _unknown: set[str] = field(default_factory=set, repr=False)
    _approximate: set[str] = field(default_factory=set, repr=False)
    _sites: dict[tuple[str, int, str, str], int] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self._entry = self._usage()

    @property
    def syncs(self) -> int:
        """Explicit waits of the host, of all kinds."""
        return self.stream_syncs + self.event_syncs + self.device_syncs

    @property
    def retained_bytes(self) -> int:
        """Requested bytes in use now, above those in use when the block began."""
        return self._usage().requested - self._entry.requested

    @property
    def sites(self) -> tuple[Site, ...]:
        """The source lines behind the counts, in the order of files and lines."""
        return tuple(sorted(Site(*place, count) for place, count in self._sites.items()))

    @property
    def unknown(self) -> tuple[str, ...]:
        """Operations that could make the host wait and have no rule."""
        return tuple(sorted(self._unknown))

    @property
    def approximate(self) -> tuple[str, ...]:
        """Operations that are only modelled."""
        return tuple(sorted(self._approximate))

    def _see(self, usage: Usage) -> None:
        entry = self._entry
        self.peak_bytes = max(self.peak_bytes, usage.requested - entry.requested)
        self.peak_allocated_bytes = max(self.peak_allocated_bytes, usage.allocated - entry.allocated)
        self.host_peak_bytes = max(self.host_peak_bytes, usage.host - entry.host)


class Ledger:
    """Adds what happens to every measurement under way.

    Args:
        usage: Tells the bytes in use now.
    """

    def __init__(self, usage: Callable[[], Usage]) -> None:
        self._usage = usage
        self._open: list[Measurement] = []

    def open(self) -> Measurement:
        """Start a measurement; several may be under way."""
        measurement = Measurement(_usage=self._usage)
        self._open.append(measurement)
        return measurement

    def close(self, measurement: Measurement) -> None:
        """End a measurement."""
        self._open = [other for other in self._open if other is not measurement]

    def count(self, what: str, amount: int = 1) -> None:
        """Count something that a source line is to answer for."""
        if not self._open or not amount:
            return
        place = (*user_line(), what)
        for m in self._open:
            setattr(m, what, getattr(m, what) + amount)
            m._sites[place] = m._sites.get(place, 0) + amount

    def copy(self, kind: str, nbytes: int) -> None:
        """Count one copy of ``nbytes``."""
        self.count(kind)
        for m in self._open:
            name = kind + "_bytes"
            setattr(m, name, getattr(m, name) + nbytes)

    def launch(self, kernels: int) -> None:
        """Count kernel launches."""
        for m in self._open:
            m.launches += kernels

    def allocation(self, nbytes: int) -> None:
        """Count a request to a device's allocator, which it has just served."""
        self.count("allocations")
        for m in self._open:
            m.largest_allocation = max(m.largest_allocation, nbytes)
        self.usage_rose()

    def usage_rose(self) -> None:
        """Note new peaks."""
        if self._open:
            usage = self._usage()
            for m in self._open:
                m._see(usage)

    def out_of_memory(self) -> None:
        """Count a request that could not be served."""
        for m in self._open:
            m.ooms += 1

    def unknown(self, operation: str) -> None:
        """Name an operation without a rule."""
        for m in self._open:
            m._unknown.add(operation)

    def approximate(self, operation: str) -> None:
        """Name an operation that is only modelled."""
        for m in self._open:
            m._approximate.add(operation)


_STANDARD_LIBRARY = tuple(
    str(Path(sysconfig.get_paths()[name]).resolve()) + "/" for name in ("stdlib", "platstdlib")
)
_LIBRARIES = tuple(str(Path(file).resolve().parent) + "/" for file in (torch.__file__, __file__))
_user_code: dict[CodeType, str | None] = {}


def user_line() -> tuple[str, int, str]:
    """File, line and function of the innermost frame outside torch, this package and the standard library.

    In a backward pass that is the line which called ``backward``.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        file = _user_code.get(code, "")
        if file == "":
            file = _remember(code)
        if file is not None:
            return file, frame.f_lineno, code.co_name
        frame = frame.f_back
    return "<unknown>", 0, "<unknown>"


def _remember(code: CodeType) -> str | None:
    _user_code[code] = file = code.co_filename if _is_user_code(code.co_filename) else None
    return file


def _is_user_code(file: str) -> bool:
    if file.startswith("<frozen"):
        return False
    resolved = str(Path(file).resolve())
    if resolved.startswith(_LIBRARIES):
        return False
    installed = "/site-packages/" in resolved or "/dist-packages/" in resolved
    return installed or not resolved.startswith(_STANDARD_LIBRARY)
