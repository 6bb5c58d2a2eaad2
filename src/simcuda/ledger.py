"""The running counts of a simulation by source line, and the regions that set some of them apart."""

from __future__ import annotations

import sys
import sysconfig
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from math import inf
from pathlib import Path
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from simcuda.measurement import Measurement, Usage

if TYPE_CHECKING:
    from contextlib import _GeneratorContextManager

T = TypeVar("T")
Slack = Mapping[str, tuple[float, float]]

COUNTED = (
    *(
        "stream_syncs",
        "event_syncs",
        "device_syncs",
        "drains",
        "implicit_syncs",
        "hazards",
    ),
    *("aten_launches", "library_launches", "allocations"),
    *(
        f"{kind}{what}"
        for kind in ("h2d", "d2h", "d2d", "p2p")
        for what in ("", "_bytes")
    ),
)
"""Counts that only grow."""

_STANDARD_LIBRARY = tuple(
    str(Path(sysconfig.get_paths()[name]).resolve()) + "/"
    for name in ("stdlib", "platstdlib")
)
_LIBRARIES = tuple(
    str(Path(file).resolve().parent) + "/" for file in (torch.__file__, __file__)
)
# As ``id``, of which Python tells every audit hook, so that it takes many times longer where there is one.
_number = object.__hash__
_user_code: dict[int, bool] = {}
"""Whether code is the user's, by the address of its object: hashing one takes a while."""
_known_code: dict[int, CodeType] = {}
"""Those code objects, kept alive."""

_own: list[Callable[[str], bool]] = []
"""What tells own files in blocks of ``attributing_to``."""
_own_code: dict[int, bool] = {}
"""The same as ``_user_code`` for own files."""

frame_listeners: list[Callable[[FrameType], None]] = []
"""Told the frame of the user's code whenever something is attributed to its line, on simulated devices."""
allocation_listeners: list[Callable[[int, tuple[str, int, str]], None]] = []
"""Told the bytes and the line of every request to a simulated allocator while something is measured."""
operations_noted: list[None] = []
"""One entry for each active block of ``noting_operations``."""

NOWHERE = ("<unknown>", 0, "<unknown>")
"""Stands for the line of what a thread does without any code of the user."""

_WITHIN = 2
"""The least number of frames of this package between the user's code and a count."""

WITHIN_ALLOCATION = 5
"""The least number of frames of this package between the user's code and an allocation."""
WITHIN_PLACE = 4
"""The same where memory is made for a tensor."""
WITHIN_OPERATION = 6
"""The same where an operation makes its result."""


class ChangedCountsError(RuntimeError):
    """The measured code changed its own counts; the message names them."""


class Ledger:
    """Adds every event to all measurements under way.

    It keeps a second account, to detect measured code that changed a count.
    """

    # No method can be replaced for one ledger alone.
    __slots__ = ("_open", "_opened_at", "_totals", "_usage", "_within_operation")

    def __init__(self, usage: Callable[[], Usage]) -> None:
        self._usage = usage
        self._open: list[Measurement] = []
        self._totals = dict.fromkeys(COUNTED, 0)
        self._opened_at: dict[int, dict[str, int]] = {}
        self._within_operation = Counter[str]()

    @property
    def is_counting(self) -> bool:
        """Return True if a measurement is under way."""
        return bool(self._open)

    def open(self) -> Measurement:
        """Start a measurement; several may be active."""
        measurement = Measurement(_usage=self._usage, _entry=self._usage())
        self._open.append(measurement)
        self._opened_at[id(measurement)] = self._totals.copy()
        return measurement

    def close(self, measurement: Measurement) -> None:
        """End a measurement.

        Raises:
            ChangedCountsError: Its counts are not what was counted.
        """
        # By identity: two measurements with equal counts are equal to each other.
        self._open = [other for other in self._open if other is not measurement]
        before = self._opened_at.pop(id(measurement))
        counted = {what: self._totals[what] - before[what] for what in self._totals}
        # Only the block itself could have written to its measurement.
        if wrong := [
            what
            for what, number in counted.items()
            if getattr(measurement, what) != number
        ]:
            raise ChangedCountsError(
                f"changes what was counted: {', '.join(sorted(wrong))}"
            )

    def totals(self) -> dict[str, int]:
        """The counts so far, by each of ``COUNTED``, while anything was measured."""
        return self._totals.copy()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Count nothing in this block."""
        paused, self._open = self._open, []
        try:
            yield
        finally:
            self._open = paused

    def count(self, what: str, amount: int = 1, nbytes: int = 0) -> None:
        """Count something of ``COUNTED``, and the bytes of a copy, at the source line that caused it.

        Of 0, no line is noted.
        """
        if self._open and amount:
            counts = (
                {what: amount, f"{what}_bytes": nbytes} if nbytes else {what: amount}
            )
            self._count_at(user_line(), counts)

    def _count_at(self, line: tuple[str, int, str], counts: Mapping[str, int]) -> None:
        """Count what a line caused; a region sets it apart."""
        # What comes first is the site's; the bytes of a copy have none of their own.
        what = next(iter(counts))
        site, reason = (*line, what), current_reason()
        for metric, amount in counts.items():
            self._totals[metric] += amount
        for m in self._open:
            m._sites[site] = m._sites.get(site, 0) + counts[what]
            for metric, amount in counts.items():
                setattr(m, metric, getattr(m, metric) + amount)
                if reason:
                    place = (reason, *line, metric)
                    m._allowed[place] = m._allowed.get(place, 0) + amount

    def add_site(self, line: tuple[str, int, str], what: str) -> None:
        """Name a source line in addition to the lines that cause what is counted."""
        for m in self._open:
            site = *line, what
            m._sites[site] = m._sites.get(site, 0) + 1

    def launch(self, kernels: int, library: int = 0) -> None:
        """Count launches of ATen's own kernels, and of a library's."""
        # This runs for every operation.
        if not self._open:
            return
        self._totals["aten_launches"] += kernels
        for m in self._open:
            m.aten_launches += kernels
        if library:
            self._totals["library_launches"] += library
            for m in self._open:
                m.library_launches += library

    def allocation(self, nbytes: int, within: int = WITHIN_ALLOCATION) -> None:
        """Count a request to a device's allocator, which it has just served; ``user_line`` has ``within``."""
        if not self._open:
            return
        line = user_line(within)
        # As ``_count_at`` does, which takes longer.
        place = (*line, "allocations")
        self._totals["allocations"] += 1
        allowed = (reason, *place) if (reason := current_reason()) else None
        for note in allocation_listeners:
            note(nbytes, line)
        # The peaks of a block are found here, where usage may have risen.
        requested, allocated, host = self._usage()
        for m in self._open:
            m.allocations += 1
            m._sites[place] = m._sites.get(place, 0) + 1
            if allowed:
                m._allowed[allowed] = m._allowed.get(allowed, 0) + 1
            if nbytes > m.largest_allocation:
                m.largest_allocation = nbytes
            entry = m._entry
            if (
                requested > m.peak_bytes + entry[0]
                or allocated > m.peak_allocated_bytes + entry[1]
            ):
                m._see(requested, allocated, host)

    def usage_rose(self) -> None:
        """Note new peaks."""
        if self._open:
            usage = self._usage()
            for m in self._open:
                m._see(*usage)

    def out_of_memory(self) -> None:
        """Count a request that could not be served."""
        for m in self._open:
            m.ooms += 1

    @contextmanager
    def attributed_to(self, operation: str) -> Iterator[None]:
        """Attribute what is counted in the block to an operation, but for what those within it count."""
        before, around = self._totals.copy(), self._within_operation
        self._within_operation = within = Counter[str]()
        try:
            yield
        finally:
            spent = Counter(
                {what: self._totals[what] - before[what] for what in before}
            )
            for m in self._open:
                m._operations.setdefault(operation, Counter()).update(spent - within)
            around.update(spent)
            self._within_operation = around

    def doubt(self, operation: str, slack: Slack | None = None) -> None:
        """List an operation as approximate, or else as unknown: then it is not known whether it waits.

        The slack is how far below and above what is counted for it each modelled metric can be.
        """
        for m in self._open:
            (m._unknown if slack is None else m._approximate).add(operation)
            for metric, (below, above) in (slack or {}).items():
                less, more = m._slack.get(metric, (0, 0))
                m._slack[metric] = less + below, more + above

    def doubt_since(
        self, operation: str, before: dict[str, int], metrics: Iterable[str]
    ) -> None:
        """List an operation as approximate that may count all, none or more of what was counted since.

        ``before`` are the totals then, and become those of now. Metrics that have no total have no bounds.
        """
        now = self.totals()
        spent = Counter(now)
        spent.subtract(before)
        spent["launches"] = spent["aten_launches"] + spent["library_launches"]
        before.update(now)
        self.doubt(operation, {what: (spent.get(what, inf), inf) for what in metrics})


def user_line(within: int = _WITHIN) -> tuple[str, int, str]:
    """File, line and function of the innermost frame outside torch, this package and the standard library.

    ``within`` frames, this one among them, are known to be the package's own. In a backward pass it is the
    line which called ``backward``.
    """
    # Those known to be ours are skipped.
    innermost = sys._getframe(within)
    frame = _innermost(innermost, _own_code, _is_own) if _own else None
    if frame is None:
        # Or no own code led there.
        frame = _innermost(innermost, _user_code, is_user_code)
    if frame is None:
        return NOWHERE
    for note in frame_listeners:
        note(frame)
    return frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name


def _innermost(
    frame: Any, files: dict[int, bool], is_wanted: Callable[[str], bool]
) -> FrameType | None:
    """Return the innermost frame of wanted code, from this one outwards; None where there is none."""
    # Walking frames takes most of the time of counting: the loop is as short as can be.
    while frame is not None:
        try:
            while not files[_number(frame.f_code)]:
                frame = frame.f_back
        except KeyError:
            code = frame.f_code
            _known_code[_number(code)] = code
            files[_number(code)] = is_wanted(code.co_filename)
        except AttributeError:
            return None
        else:
            return frame  # type: ignore[no-any-return]
    return None


@contextmanager
def attributing_to(is_own: Callable[[str], bool]) -> Iterator[None]:
    """Attribute what installed packages do in this block to the line of an own file that led there.

    Where none did, it stays theirs. Only simulated devices do so.
    """
    with listening(_own, is_own):
        _own_code.clear()
        try:
            yield
        finally:
            _own_code.clear()


def _is_own(file: str) -> bool:
    return is_user_code(file) and _own[-1](file)


def noting_operations(asked: bool = True) -> AbstractContextManager[None]:
    """Let simulated devices that are opened in the block tell ``operations_of``; others do no work for it."""
    return listening(operations_noted, None) if asked else nullcontext()


def operations_of(measurement: Measurement) -> Mapping[str, Mapping[str, int]]:
    """Return how much of each of ``COUNTED`` every operation made, by name; empty unless noted.

    What is missing in the sum was made by no operation, such as the wait of ``torch.cuda.synchronize``.
    """
    return measurement._operations


def is_user_code(file: str) -> bool:
    """Return True if a file is none of torch, of this package or of the standard library."""
    if file.startswith("<frozen"):
        return False
    resolved = str(Path(file).resolve())
    if resolved.startswith(_LIBRARIES):
        return False
    # Packages below the standard library, as those of a virtual environment, are user code.
    installed = "/site-packages/" in resolved or "/dist-packages/" in resolved
    return installed or not resolved.startswith(_STANDARD_LIBRARY)


# Each thread and each task has its own.
_reason: ContextVar[str] = ContextVar("simcuda_allowed", default="")
_region_listeners: list[Callable[[str], None]] = []

current_reason = _reason.get
"""Why this thread may wait now: the reason of the innermost region; empty outside of all."""


def allowed(reason: str) -> _GeneratorContextManager[None]:
    """Set apart what this thread makes the host wait for, copy and allocate in the block; also a decorator.

    Limits do not count it: those of ``assert_at_most``, of ``gpu_budget`` and of ``tickets budget``. They
    name the reason instead. Of nested regions the innermost counts. Peaks and launches are not set apart.

    Raises:
        TypeError: The reason is no text.
        ValueError: It is empty.
    """
    if not isinstance(reason, str):
        raise TypeError(
            f'say why: simcuda.allowed("logged every 100 steps"), not {reason!r}'
        )
    if not reason.strip():
        raise ValueError("allowed() needs a reason")
    return _region(" ".join(reason.split()))


@contextmanager
def _region(reason: str) -> Iterator[None]:
    token = _reason.set(reason)
    _tell(reason)
    try:
        yield
    finally:
        _reason.reset(token)
        _tell(_reason.get())


def _tell(reason: str) -> None:
    for listener in _region_listeners:
        listener(reason)


@contextmanager
def following_regions(listener: Callable[[str], None]) -> Iterator[None]:
    """Tell ``listener`` the reason when a thread enters or leaves a region, and the reason around it."""
    if reason := current_reason():
        listener(reason)
    with listening(_region_listeners, listener):
        yield


@contextmanager
def listening(listeners: list[T], listener: T) -> Iterator[None]:
    """Keep a listener, the innermost last, in a list during the block."""
    listeners.append(listener)
    try:
        yield
    finally:
        listeners.remove(listener)
