"""Finds accesses to the same data without an ordering, by vector clocks over streams and the host.

Work on one stream runs in order. Streams are ordered among each other only by events, and by the host: a
launch comes after all that the host had waited for. PyTorch's default stream is CUDA's legacy stream, which
waits for *blocking* streams alone; those of ``torch.cuda.Stream`` are non-blocking (``cudaStreamNonBlocking``
in c10/cuda/CUDAStream.cpp), so no stream of PyTorch is ordered with the default stream by itself.

Streams, data and events are known by plain integers; a stream's integer is unique over all devices. Data is
a storage, on a device or in pinned host memory. An access to a view is one to its bytes alone: streams may
work on different parts of it. Pageable host memory needs no watching: CUDA has read it, or written
it, before such a copy returns to the host.

Known limitations:
    One host thread is assumed. Work of the stream that owns a block is not followed into the block's next
    life, only that of other streams. Streams that come from elsewhere (``torch.cuda.ExternalStream``) are
    taken as non-blocking.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

HOST = -1
"""The host thread, where a conflict names the streams."""

Clock = dict[int, int]

_UNTOUCHED = [-2, 0, 0]
"""Stands for the accesses to data that no stream has touched yet."""


class Part(NamedTuple):
    """Bytes of one piece of data: of each ``period`` from ``start`` to ``end`` the first ``width``."""

    data: int
    start: int
    end: int
    period: int
    width: int

    def overlaps(self, other: Part) -> bool:
        """Return whether both may have a byte in common."""
        if self.period == other.period:
            ahead = (other.start - self.start) % self.period
            if self.width <= ahead <= self.period - other.width:
                return False
        return self.start < other.end and other.start < self.end


Data = int | Part
"""All of a piece of data, or a part."""


def part_of(
    data: int, start: int, itemsize: int, steps: Iterable[tuple[int, int]]
) -> Part:
    """Return the bytes of elements in dimensions of at least two, with these strides, in bytes, and sizes."""
    width = itemsize
    end = start + itemsize
    period = 0
    for stride, size in sorted(steps):
        end += stride * (size - 1)
        if not period and stride <= width:
            # There is no gap so far.
            width = end - start
            continue
        period = period or stride
        if stride % period:
            # There is no grid.
            width = period
    return Part(data, start, end, period or width, width)


def whole(data: int) -> Part:
    """Return all bytes of a piece of data."""
    return part_of(data, 0, 1 << 62, ())


KINDS = {
    False: [("read after write", 0)],
    True: [("reuse", 2), ("write after write", 0), ("write after read", 1)],
}
"""What a read, or a write, may be to the earlier accesses at these places of ``Accesses``."""
MANY_PARTS = 64
"""With every so many parts of a piece of data, those are forgotten that the host has waited for."""


class StreamMark(NamedTuple):
    """A place in a stream's queue, as an event records it: the work queued before it, here and elsewhere."""

    stream: int
    tick: int
    clock: Clock


@dataclass(frozen=True)
class Conflict:
    """One access to data that is not ordered after an earlier one.

    Attributes:
        data: What both touch.
        stream: Where the later access runs; ``HOST`` for the host.
        earlier: The stream of the earlier access.
        kind: ``read after write``, ``write after read``, ``write after write``, or ``reuse``: the memory was
            freed and handed out again while another stream still used it, without ``record_stream``.
        tick: The tick of the earlier access.
    """

    data: int
    stream: int
    earlier: int
    kind: str
    tick: int = field(default=0, compare=False)


class Accesses(NamedTuple):
    """The accesses to some bytes that later ones must come after; each a stream's tick."""

    writes: Clock
    reads: Clock
    previous_life: Clock


@dataclass(eq=False)
class Ordering:
    """The knowledge of every stream and the host about each other's progress, and the open accesses.

    Attributes:
        has_left_behind: Whether memory was ever freed while another stream still used it.
        queued: How much was queued so far.
    """

    has_left_behind: bool = False
    queued: int = 0
    _clocks: dict[int, Clock] = field(default_factory=dict)
    _host: Clock = field(default_factory=dict)
    host_version: int = 0
    _joined_host: dict[int, int] = field(default_factory=dict)
    # Most data is only ever touched by one stream, and its order is enough: for that, the stream and the
    # ticks of its last write and read are all there is to know.
    _sole: dict[Data, list[int]] = field(default_factory=dict)
    # Of other data, and of what is touched in parts, the accesses to each part.
    _shared: dict[int, dict[Part, Accesses]] = field(default_factory=dict)
    # Uses of freed memory that its owner has not waited for, by stream and range of addresses.
    _left_behind: dict[int, dict[tuple[int, int], Clock]] = field(default_factory=dict)

    def launch(
        self, stream: int, reads: Iterable[Data] = (), writes: Collection[Data] = ()
    ) -> list[Conflict]:
        """Queue a kernel or a copy; at most one conflict for each piece of data, or part of one, it touches.

        What it both reads and writes may be in both.
        """
        # Each launch is a tick of its stream's own clock. This runs for every operation.
        clock = self._clocks.get(stream)
        if clock is None or self._joined_host.get(stream, 0) != self.host_version:
            clock = self._clock(stream)
        clock[stream] = tick = clock.get(stream, 0) + 1
        self.queued += 1
        sole, shared = self._sole, self._shared
        unordered: list[Conflict] = []
        for data in reads:
            known = sole.get(data)
            # The usual case: no other stream has touched it, so there is nothing to compare.
            if known is not None and known[0] == stream:
                known[2] = tick
            elif known is None and type(data) is int and data not in shared:
                sole[data] = [stream, 0, tick]
            elif data not in writes:
                unordered += self._share(data, stream, clock, writes=False)
        for data in writes:
            known = sole.get(data)
            if (known is not None and known[0] == stream) or (
                known is None and type(data) is int and data not in shared
            ):
                sole[data] = [stream, tick, 0]
            else:
                unordered += self._share(data, stream, clock, writes=True)
        return unordered

    def copy_across(
        self, source: int, destination: int, read: Data, written: Data
    ) -> list[Conflict]:
        """Queue a copy between devices: it runs on ``source``, and both streams wait for each other."""
        self.wait(source, self.record(destination))
        conflicts = self.launch(source, (read,), (written,))
        self.wait(destination, self.record(source))
        return conflicts

    def host_touches(self, data: Data, *, writes: bool) -> list[Conflict]:
        """The conflict of the host reading, or writing, what an asynchronous copy still uses."""
        return _conflict(*self._parts_of(data), HOST, self._host, writes=writes)

    def record(self, stream: int) -> StreamMark:
        """Mark the work queued on ``stream`` so far."""
        clock = self._clock(stream)
        return StreamMark(stream, clock.get(stream, 0), dict(clock))

    def wait(self, stream: int, mark: StreamMark) -> None:
        """Let what is queued on ``stream`` from now on come after ``mark``."""
        _join(self._clock(stream), mark.clock)

    def host_waits(self, *marks: StreamMark) -> set[int]:
        """The host waits for events; which of the streams that it waited for hold newer work.

        It waits for the events' own streams, and for those whose work they come after, unless it knew already
        that this had finished.
        """
        waited = {mark.stream for mark in marks}
        host = self._host
        for mark in marks:
            waited.update(_unordered(mark.clock, host))
            # Every stream joins the host's clock when it is next used.
            _join(host, mark.clock)
        self.host_version += 1
        return {
            stream
            for stream in waited
            if self._clock(stream).get(stream, 0) > host.get(stream, 0)
        }

    def host_waits_for_streams(self, streams: Iterable[int]) -> set[int]:
        """The host waits for all work on these streams; returns what ``host_waits`` does."""
        return self.host_waits(*map(self.record, streams))

    def is_complete(self, mark: StreamMark) -> bool:
        """Return True if the host knows that the work before ``mark`` has finished."""
        return not _unordered(mark.clock, self._host)

    def allocate(self, data: int, owner: int, start: int, end: int) -> None:
        """Give the memory from ``start`` to ``end``, in blocks of stream ``owner``, to ``data``.

        Uses of that memory by its last owner's other streams go on: a write that has not waited for them is a
        ``reuse`` conflict.
        """
        ranges = self._left_behind.get(owner)
        if not ranges:
            return
        for (first, last), uses in list(ranges.items()):
            pending = _unordered(uses, self._clock(owner))
            # The owner has waited for these uses meanwhile.
            if not pending:
                del ranges[first, last]
            elif first < end and start < last:
                part, parts = self._parts_of(data)
                _join(
                    parts.setdefault(part, Accesses({}, {}, {})).previous_life, pending
                )

    def drop(self, data: int, owner: int) -> bool:
        """Forget ``data`` if ``owner`` alone has touched it; whether that is so."""
        known = self._sole.get(data)
        if known is None or known[0] != owner:
            return False
        del self._sole[data]
        return True

    def free(
        self,
        data: int,
        owner: int,
        start: int,
        end: int,
        recorded: Collection[int] = (),
    ) -> None:
        """Forget ``data``; uses of its memory that ``owner`` has not waited for are left behind.

        ``recorded`` are the streams of ``record_stream``: the allocator itself waits for those.
        """
        if self.drop(data, owner):
            return
        uses: Clock = {}
        for accesses in self._parts_of(data)[1].values():
            _join(uses, accesses.reads)
            _join(uses, accesses.writes)
        del self._shared[data]
        pending = _unordered(uses, self._clock(owner))
        pending = {
            stream: tick for stream, tick in pending.items() if stream not in recorded
        }
        if pending:
            self.has_left_behind = True
            _join(
                self._left_behind.setdefault(owner, {}).setdefault((start, end), {}),
                pending,
            )

    def forget(self, data: int) -> None:
        """Drop host memory, which CUDA keeps until the copies that use it are done."""
        self._sole.pop(data, None)
        self._shared.pop(data, None)

    def _clock(self, stream: int) -> Clock:
        clock = self._clocks.get(stream)
        if clock is None:
            clock = self._clocks[stream] = {}
        if self._joined_host.get(stream, 0) != self.host_version:
            _join(clock, self._host)
            self._joined_host[stream] = self.host_version
        return clock

    def _parts_of(self, data: Data) -> tuple[Part, dict[Part, Accesses]]:
        """The part, and the accesses to each, from here on as of data that several streams touch."""
        part = whole(data) if isinstance(data, int) else data
        if part.data not in self._shared:
            stream, written, read = self._sole.pop(part.data, _UNTOUCHED)
            # A tick of 0 stands for no access.
            self._shared[part.data] = {
                whole(part.data): Accesses({stream: written}, {stream: read}, {})
            }
        return part, self._shared[part.data]

    def _share(
        self, data: Data, stream: int, clock: Clock, *, writes: bool
    ) -> list[Conflict]:
        """Keep an access to data that several streams touch; the conflict with an earlier one."""
        part, parts = self._parts_of(data)
        tick = clock[stream]
        conflicts = _conflict(part, parts, stream, clock, writes=writes)
        if not writes:
            parts.setdefault(part, Accesses({}, {}, {})).reads[stream] = tick
        elif isinstance(data, int):
            # After this write, earlier accesses matter no more.
            del self._shared[data]
            self._sole[data] = [stream, tick, 0]
        else:
            # A conflict is told once. What the host has waited for conflicts with nothing.
            if conflicts:
                parts = {
                    other: uses
                    for other, uses in parts.items()
                    if not part.overlaps(other)
                }
            if len(parts) % MANY_PARTS == 0:
                host = self._host
                parts = {
                    o: uses
                    for o, uses in parts.items()
                    if any(_unordered(each, host) for each in uses)
                }
            self._shared[part.data] = parts | {part: Accesses({stream: tick}, {}, {})}
        return conflicts


def _join(clock: Clock, other: Clock) -> None:
    for stream, tick in other.items():
        if clock.get(stream, 0) < tick:
            clock[stream] = tick


def _unordered(uses: Clock, clock: Clock) -> Clock:
    return {
        stream: tick for stream, tick in uses.items() if clock.get(stream, 0) < tick
    }


def _conflict(
    part: Part, parts: dict[Part, Accesses], stream: int, clock: Clock, *, writes: bool
) -> list[Conflict]:
    """The first of the earlier accesses that one on ``stream`` has to come after and does not."""
    for kind, place in KINDS[writes]:
        for other, accesses in parts.items():
            unordered = (
                _unordered(accesses[place], clock) if part.overlaps(other) else {}
            )
            for earlier, tick in unordered.items():
                return [Conflict(part.data, stream, earlier, kind, tick)]
    return []
