"""Finds accesses to the same data without an ordering, by vector clocks over streams and the host.

Work on one stream runs in order. Streams are ordered among each other only by events, and by the host: a
launch comes after all that the host had waited for. PyTorch's default stream is CUDA's legacy stream, which
waits for *blocking* streams alone; those of ``torch.cuda.Stream`` are non-blocking (``cudaStreamNonBlocking``
in c10/cuda/CUDAStream.cpp), so no stream of PyTorch is ordered with the default stream by itself.

Streams, data and events are known by plain integers; a stream's integer is unique over all devices. Data is
a storage, on a device or in pinned host memory. Pageable host memory needs no
watching: CUDA has read it, or written it, before such a copy returns to the host.

Known limitations:
    Two streams on disjoint parts of one storage count as a conflict. One host thread is assumed. Work of the
    stream that owns a block is not followed into the block's next life, only that of other streams. Streams
    that come from elsewhere (``torch.cuda.ExternalStream``) are taken as non-blocking.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

HOST = -1
"""The host thread, where a conflict names the streams."""

Clock = dict[int, int]

_UNTOUCHED = (-2, 0, 0)
"""Stands for the accesses to data that no stream has touched yet."""


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


@dataclass(slots=True)
class Accesses:
    """The accesses to one piece of data that later ones must come after; each a stream's tick."""

    write: tuple[int, int] | None = None
    reads: Clock = field(default_factory=dict)
    previous_life: Clock = field(default_factory=dict)


@dataclass(eq=False)
class Ordering:
    """What every stream and the host know of each other's progress, and the accesses still to be ordered.

    Attributes:
        has_left_behind: Whether memory was ever freed while another stream still used it.
    """

    has_left_behind: bool = False
    _clocks: dict[int, Clock] = field(default_factory=dict)
    _host: Clock = field(default_factory=dict)
    _host_version: int = 0
    _joined_host: dict[int, int] = field(default_factory=dict)
    # Most data is only ever touched by one stream, and its order is enough: for that, the stream and the
    # ticks of its last write and read are all there is to know.
    _sole: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    _shared: dict[int, Accesses] = field(default_factory=dict)
    # Uses of freed memory that its owner has not waited for, by stream and range of addresses.
    _left_behind: dict[int, dict[tuple[int, int], Clock]] = field(default_factory=dict)

    def launch(self, stream: int, reads: Iterable[int] = (), writes: Collection[int] = ()) -> list[Conflict]:
        """Queue a kernel or a copy; at most one conflict for each piece of data it touches.

        What it both reads and writes may be in both.
        """
        # Each launch is a tick of its stream's own clock.
        clock = self._clock(stream)
        clock[stream] = tick = clock.get(stream, 0) + 1
        sole = self._sole
        unordered: list[Conflict] = []
        for data in reads:
            known = sole.get(data, _UNTOUCHED)
            # The usual case: no other stream has touched it, so there is nothing to compare.
            if known[0] == stream or (known is _UNTOUCHED and data not in self._shared):
                sole[data] = (stream, known[1], tick)
            elif data not in writes:
                accesses = self._accesses_to(data)
                unordered += _conflict(data, accesses, stream, clock, writes=False)
                accesses.reads[stream] = tick
        for data in writes:
            known = sole.get(data, _UNTOUCHED)
            if known[0] != stream and (known is not _UNTOUCHED or data in self._shared):
                unordered += _conflict(data, self._accesses_to(data), stream, clock, writes=True)
                # After this write, earlier accesses matter no more.
                del self._shared[data]
            sole[data] = (stream, tick, 0)
        return unordered

    def copy_across(self, source: int, destination: int, read: int, written: int) -> list[Conflict]:
        """Queue a copy between devices: it runs on ``source``, and both streams wait for each other."""
        self.wait(source, self.record(destination))
        conflicts = self.launch(source, (read,), (written,))
        self.wait(destination, self.record(source))
        return conflicts

    def host_touches(self, data: int, *, writes: bool) -> list[Conflict]:
        """The conflict of the host reading, or writing, what an asynchronous copy still uses."""
        if data not in self._sole and data not in self._shared:
            return []
        return _conflict(data, self._accesses_to(data), HOST, self._host, writes=writes)

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
        waited, host = {mark.stream for mark in marks}, self._host
        for mark in marks:
            waited.update(_unordered(mark.clock, host))
            # Every stream joins the host's clock when it is next used.
            _join(host, mark.clock)
        self._host_version += 1
        return {stream for stream in waited if self._clock(stream).get(stream, 0) > host.get(stream, 0)}

    def host_waits_for_streams(self, streams: Iterable[int]) -> set[int]:
        """The host waits for all work on these streams; returns what ``host_waits`` does."""
        return self.host_waits(*map(self.record, streams))

    def is_complete(self, mark: StreamMark) -> bool:
        """Whether the host knows that the work before ``mark`` has finished."""
        return not _unordered(mark.clock, self._host)

    def queued(self) -> int:
        """Return how much was queued on all streams so far."""
        total = 0
        for stream, clock in self._clocks.items():
            total += clock.get(stream, 0)
        return total

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
                _join(self._accesses_to(data).previous_life, pending)

    def drop(self, data: int, owner: int) -> bool:
        """Forget ``data`` if ``owner`` alone has touched it; whether that is so."""
        known = self._sole.get(data)
        if known is None or known[0] != owner:
            return False
        del self._sole[data]
        return True

    def free(self, data: int, owner: int, start: int, end: int, recorded: Collection[int] = ()) -> None:
        """Forget ``data``; uses of its memory that ``owner`` has not waited for are left behind.

        ``recorded`` are the streams of ``record_stream``: the allocator itself waits for those.
        """
        if self.drop(data, owner):
            return
        accesses = self._accesses_to(data)
        del self._shared[data]
        uses = dict(accesses.reads)
        if accesses.write is not None:
            _join(uses, dict([accesses.write]))
        pending = _unordered(uses, self._clock(owner))
        pending = {stream: tick for stream, tick in pending.items() if stream not in recorded}
        if pending:
            self.has_left_behind = True
            _join(self._left_behind.setdefault(owner, {}).setdefault((start, end), {}), pending)

    def forget(self, data: int) -> None:
        """Drop host memory, which CUDA keeps until the copies that use it are done."""
        self._sole.pop(data, None)
        self._shared.pop(data, None)

    def _clock(self, stream: int) -> Clock:
        clock = self._clocks.get(stream)
        if clock is None:
            clock = self._clocks[stream] = {}
        if self._joined_host.get(stream, 0) != self._host_version:
            _join(clock, self._host)
            self._joined_host[stream] = self._host_version
        return clock

    def _accesses_to(self, data: int) -> Accesses:
        """What is known of ``data``, from here on as of data that several streams touch."""
        # From here on several streams may touch it, so that their accesses are kept apart.
        accesses = self._shared.get(data)
        if accesses is None:
            stream, written, read = self._sole.pop(data, _UNTOUCHED)
            accesses = self._shared[data] = Accesses(
                (stream, written) if written else None, {stream: read} if read else {}
            )
        return accesses


def _join(clock: Clock, other: Clock) -> None:
    for stream, tick in other.items():
        if clock.get(stream, 0) < tick:
            clock[stream] = tick


def _unordered(uses: Clock, clock: Clock) -> Clock:
    return {stream: tick for stream, tick in uses.items() if clock.get(stream, 0) < tick}


def _conflict(data: int, accesses: Accesses, stream: int, clock: Clock, *, writes: bool) -> list[Conflict]:
    """The first of the earlier accesses that one on ``stream`` has to come after and does not."""
    last_write = dict([accesses.write]) if accesses.write is not None else {}
    earlier_uses = [("read after write", last_write)]
    if writes:
        earlier_uses = [
            ("reuse", accesses.previous_life),
            ("write after write", last_write),
            ("write after read", accesses.reads),
        ]
    for kind, uses in earlier_uses:
        for earlier, tick in _unordered(uses, clock).items():
            return [Conflict(data, stream, earlier, kind, tick)]
    return []
