"""The simulated machine: its devices' memory, the streams that are current, and what runs on them."""

from __future__ import annotations

import threading
import warnings
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection
from functools import partial
from operator import itemgetter

import torch

from simcuda.device.allocator import Allocator, MemoryBlock, OutOfMemory
from simcuda.device.dispatch_key import wake
from simcuda.device.generators import Generators
from simcuda.device.ordering import Conflict, Data, Ordering, StreamMark, part_of
from simcuda.device.storages import HOST, Storages, Tag
from simcuda.ledger import NOWHERE, WITHIN_ALLOCATION, WITHIN_PLACE, Ledger, user_line
from simcuda.measurement import Usage
from simcuda.profile import Profile, workspace_bytes

STREAMS_IN_POOL = 32
SWITCHES_KEPT = 10_000
LINES_KEPT = 100_000
WAITS_ARE_ERRORS = 2
"""The mode of ``torch.cuda.set_sync_debug_mode`` that raises; 1 warns."""


ADDS_TO_A_LEAF = 2**64 - 1
"""The number of every node that adds a gradient to a leaf, whenever it was made."""


class CurrentStreams(threading.local):
    """A thread's current device and streams, as CUDA has them for each thread.

    Attributes:
        device: Index of the current device.
        streams: The current stream of every device.
        maker: The device on which code of C++ makes tensors; ``HOST`` where it is not known.
    """

    def __init__(self, count: int) -> None:
        self.device = 0
        self.maker: int = HOST
        self.streams = list(range(count))
        # Autograd numbers its nodes as they are made: what was current then is found by that number.
        self._switches: list[list[tuple[int, int]]] = [
            [(-1, device)] for device in range(count)
        ]
        self._followed = (-1, -1, -1)

    def set_stream(self, device: int, stream: int) -> None:
        """Make a stream current on its device."""
        self.streams[device] = stream
        # Of two switches without a node between them, the later one counts.
        switches = self._switches[device]
        made = torch._C._autograd._get_sequence_nr()
        if switches[-1][0] == made:
            switches.pop()
        switches.append((made, stream))
        # A long run switches without end. Nodes so old are hardly alive; they count as the default stream's.
        if len(switches) > SWITCHES_KEPT:
            del switches[1 : SWITCHES_KEPT // 2]

    def stream_of_forward(self, device: int, backward_pass: int) -> int | None:
        """The stream that the running node was made on; None if this was asked already, or it has none."""
        node = torch._C._current_autograd_node()
        number = ADDS_TO_A_LEAF if node is None else node._sequence_nr()
        followed = (device, backward_pass, number)
        if number == ADDS_TO_A_LEAF or followed == self._followed:
            return None
        self._followed = followed
        switches = self._switches[device]
        return switches[bisect_right(switches, number, key=itemgetter(0)) - 1][1]


class Machine:
    """All state of one simulation; the rest of the package changes it through these methods.

    All devices are alike. Streams are integers: a device's default stream has the device's index, those made
    later follow.
    """

    def __init__(self, count: int, profile: Profile, capacity: int) -> None:
        self.profile = profile
        self.devices = tuple(torch.device("cuda", index) for index in range(count))
        self.ordering = Ordering()
        self.ledger = Ledger(self.usage)
        # Calls of CUDA that allocate or free memory: the driver may let the host wait in each.
        self._may_block = partial(self.ledger.count, "implicit_syncs")
        self.allocators = tuple(
            Allocator(capacity, self.ordering, self.wait_for_event, self._may_block)
            for _ in range(count)
        )
        self._stats = tuple(allocator.stats for allocator in self.allocators)
        self.current = CurrentStreams(count)
        self.generators = Generators(self.devices)
        self.stream_devices = list(range(count))
        self.has_side_streams = False
        # Nested ones too.
        self.has_sparse = False
        # What C++ has just made of Python's data on the host, by serial numbers, until somebody has it.
        self.unclaimed: set[int] = set()
        self.sync_debug_mode = 0
        # What has gradients of unknown cost, with the metrics: any backward pass may be theirs.
        self.unsure_gradients: dict[str, Collection[str]] = {}
        # Whether the program was told what a time between events is.
        self.has_told_times = False
        self._streams_taken = [0] * count
        self.host_bytes = 0
        # Where work was launched, by its stream and tick.
        self._lines: dict[tuple[int, int], tuple[str, int, str]] = {}
        # How much was queued when the host asked about pending work, by stream, tick and line.
        self._polled: dict[tuple[int, int, tuple[str, int, str]], int] = {}
        # Pinned blocks that are free, by size.
        self._pinned: Counter[int] = Counter()
        self._cublas: dict[tuple[int, int], tuple[int, MemoryBlock | None]] = {}
        self.storages = Storages(self._released)

    def usage(self) -> Usage:
        """Bytes in use now."""
        # This runs for every allocation, and usually there is one device.
        if len(self._stats) == 1:
            both = self._stats[0].both
            return both.requested.current, both.allocated.current, self.host_bytes
        requested = allocated = 0
        for stats in self._stats:
            requested += stats.both.requested.current
            allocated += stats.both.allocated.current
        return requested, allocated, self.host_bytes

    def index(self, device: torch.device) -> int:
        """The index of a CUDA device, or ``HOST`` for any other kind.

        Raises:
            torch.AcceleratorError: The machine has no such device.
        """
        if device.type != "cuda":
            return HOST
        wake()
        index = self.current.device if device.index is None else device.index
        if index >= len(self.devices):
            raise torch.AcceleratorError("CUDA error: invalid device ordinal")
        return index

    def streams_of(self, device: int) -> list[int]:
        """Every stream of a device."""
        return [
            stream
            for stream, owner in enumerate(self.stream_devices)
            if owner == device
        ]

    def follow_forward(self, device: int, backward_pass: int) -> None:
        """In a backward pass, switch to the stream of the forward part of the node that runs.

        Autograd runs each node on the stream that was current when it was made. It orders a node after the
        ones before it; here that is all of them.
        """
        stream = self.current.stream_of_forward(device, backward_pass)
        if stream is not None and stream != self.current.streams[device]:
            self.ordering.wait(
                stream, self.ordering.record(self.current.streams[device])
            )
            self.current.streams[device] = stream

    def leave_backward(self, streams: list[int]) -> None:
        """Restore the streams that were current before a backward pass, and order them after it."""
        for before, last in zip(streams, self.current.streams, strict=True):
            if before != last:
                self.ordering.wait(before, self.ordering.record(last))
        self.current.streams = streams

    def new_stream(self, device: int) -> int:
        """A stream on a device: like PyTorch, one of a pool that is handed out again and again."""
        pool = self.streams_of(device)[1:]
        taken = self._streams_taken[device]
        self._streams_taken[device] += 1
        if taken >= STREAMS_IN_POOL:
            return pool[taken % STREAMS_IN_POOL]
        self.stream_devices.append(device)
        self.has_side_streams = True
        return len(self.stream_devices) - 1

    def malloc(
        self, device: int, nbytes: int, within: int = WITHIN_ALLOCATION
    ) -> MemoryBlock | None:
        """A block of the current stream, for code ``within`` so many frames; None for no bytes.

        Raises:
            torch.OutOfMemoryError: With CUDA's message.
        """
        try:
            block = self.allocators[device].malloc(nbytes, self.current.streams[device])
        except OutOfMemory:
            raise self._out_of_memory(device, nbytes) from None
        if block is not None:
            self.ledger.allocation(nbytes, within)
        return block

    def _out_of_memory(self, device: int, nbytes: int) -> torch.OutOfMemoryError:
        """Return the error of a request that could not be served, which is counted.

        Its text is CUDA's, with what the device and this process have.
        """
        allocator = self.allocators[device]
        self.ledger.out_of_memory()
        capacity = allocator.capacity
        limit = allocator.limit
        reserved = allocator.reserved
        allocated = allocator.stats.both.allocated.current
        allowed = f"{_in_units(limit)} allowed; " if limit < capacity else ""
        return torch.OutOfMemoryError(
            f"CUDA out of memory. Tried to allocate {_in_units(nbytes)}. GPU {device} has a "
            f"total capacity of {_in_units(capacity)} of which {_in_units(capacity - reserved)} is free. "
            f"Including non-PyTorch memory, this process has {_in_units(reserved)} memory in use. "
            f"{allowed}Of the allocated memory {_in_units(allocated)} is allocated by PyTorch, and "
            f"{_in_units(reserved - allocated)} is reserved by PyTorch but unallocated."
        )

    def empty_caches(self) -> None:
        """Return all cached memory to the devices, after the events that blocks still wait for."""
        for allocator in self.allocators:
            allocator.empty_cache()

    def empty_host_cache(self) -> None:
        """Return all cached pinned memory to the system, each block by ``cudaFreeHost``."""
        self._may_block(self._pinned.total())
        self._pinned.clear()

    def refuse_more_than_all(self, device: int, nbytes: int) -> None:
        """Run out of device memory before the host tries to allocate more bytes than the device has."""
        if nbytes > self.allocators[device].capacity:
            self.malloc(device, nbytes)

    def use_for_a_while(self, device: int, sizes: Collection[int]) -> list[MemoryBlock]:
        """Blocks for an operation's temporaries, none for 0 bytes; the caller frees them by ``free``.

        Raises:
            torch.OutOfMemoryError: With CUDA's message; none of the blocks stays allocated.
        """
        blocks: list[MemoryBlock] = []
        try:
            # Extended by a generator, so that the blocks before the one that fails are known.
            blocks.extend(
                block
                for size in sizes
                if (block := self.malloc(device, size)) is not None
            )
        except torch.OutOfMemoryError:
            self.free(device, blocks)
            raise
        return blocks

    def use_cublas(self, device: int) -> None:
        """Take the workspace that PyTorch gives cuBLAS for each handle and stream.

        A thread has a handle on each device; a backward pass runs on threads of its own.

        Raises:
            torch.OutOfMemoryError: With CUDA's message.
        """
        key = (
            0 if is_in_backward() else threading.get_ident(),
            self.current.streams[device],
        )
        if key not in self._cublas:
            self._cublas[key] = (
                device,
                self.malloc(device, workspace_bytes(self.profile)),
            )

    def free_cublas(self) -> None:
        """Free the workspaces of cuBLAS; its next use takes one again."""
        for device, block in self._cublas.values():
            self.free(device, [block] if block else [])
        self._cublas.clear()

    def free(self, device: int, blocks: Collection[MemoryBlock]) -> None:
        """Return an operation's temporaries."""
        for block in blocks:
            self.allocators[device].free(block)

    def place(
        self, storage: torch.UntypedStorage, device: int, within: int = WITHIN_PLACE
    ) -> Tag:
        """Give a new storage its place on a device, charging its bytes there; as ``malloc``.

        Raises:
            torch.OutOfMemoryError: With CUDA's message.
        """
        nbytes = storage.nbytes()
        # As ``malloc`` does, which takes longer.
        try:
            block = self.allocators[device].malloc(nbytes, self.current.streams[device])
        except OutOfMemory:
            raise self._out_of_memory(device, nbytes) from None
        if block is not None:
            self.ledger.allocation(nbytes, within)
        tag = self.storages.add(storage, device, nbytes, block)
        # Only then can new memory be what another stream still uses.
        if self.ordering.has_left_behind:
            self._owns(tag)
        return tag

    def place_on_host(
        self,
        storage: torch.UntypedStorage,
        *,
        pinned: bool = False,
        floating: bool = False,
    ) -> Tag:
        """Record a new storage in host memory; ``Tag`` says what ``pinned`` and ``floating`` mean."""
        nbytes = storage.nbytes()
        if pinned:
            self._pin(nbytes)
        self.host_bytes += nbytes
        self.ledger.usage_rose()
        return self.storages.add(
            storage, HOST, nbytes, pinned=pinned, floating=floating
        )

    def adopt(self, tag: Tag, device: int) -> None:
        """Assign memory that C++ code made for itself to the device that uses it."""
        tag.block = self.malloc(device, tag.nbytes)
        self.host_bytes -= tag.nbytes
        tag.device, tag.floating = device, False
        self._owns(tag)
        # The kernels that made it would have run on that device.
        self.ledger.launch(tag.owed)

    def settle(self, tags: Collection[Tag | None]) -> None:
        """Keep memory that C++ code made for itself on the host: it was made for host tensors."""
        for tag in tags:
            if tag is not None:
                tag.floating = False
                self.unclaimed.discard(tag.serial)

    def resized(self, tag: Tag, nbytes: int) -> None:
        """Record that a storage was resized: CUDA moves it to a new block."""
        if tag.device == HOST:
            if tag.pinned:
                self._pin(nbytes)
                self._unpin(tag.nbytes)
            self.host_bytes += nbytes - tag.nbytes
            tag.nbytes = nbytes
            self.ledger.usage_rose()
            return
        # The old block is held until its content is copied. Source: ATen/native/cuda/Resize.cpp.
        block = self.malloc(tag.device, nbytes)
        if kept := min(tag.nbytes, nbytes):
            self.ledger.count("d2d", 1, kept)
            self.run(tag.device, 0, (tag.serial,), (tag.serial,))
        self._released(tag)
        tag.block, tag.nbytes = block, nbytes
        self._owns(tag)

    def touched(self, tensor: torch.Tensor, tag: Tag) -> Data:
        """Return what an access to a tensor touches: its storage, by serial number, or a part of that.

        Parts matter only to what may be used by something else at the same time.
        """
        if (
            (tag.device != HOST and not self.has_side_streams)
            or tensor.layout is not torch.strided
            or tensor.is_nested
            or tensor.nbytes == tag.nbytes
        ):
            return tag.serial
        size, steps = tensor.element_size(), []
        for stride, length in zip(tensor.stride(), tensor.shape, strict=True):
            if length > 1:
                steps.append((stride * size, length))
        return part_of(tag.serial, int(tensor.storage_offset()) * size, size, steps)

    def run(
        self,
        device: int,
        kernels: int,
        reads: Collection[Data],
        writes: Collection[Data],
        library: int = 0,
    ) -> None:
        """Launch kernels on the current stream of a device, and a number of a library's kernels.

        The data that they read and write is as from ``touched``. No kernel at all is a copy, which is
        ordered as one.
        """
        self.ledger.launch(kernels, library)
        stream = self.current.streams[device]
        conflicts = self.ordering.launch(stream, reads, writes)
        if conflicts:
            self.raced(conflicts)
        # Only these may race: a single stream races with the host, by copies.
        if (self.has_side_streams or not kernels) and self.ledger.is_counting:
            launched = self.ordering.record(stream)
            self._lines[launched[:2]] = user_line()
            if len(self._lines) > LINES_KEPT:
                del self._lines[next(iter(self._lines))]

    def raced(self, conflicts: Collection[Conflict]) -> None:
        """Count accesses that are not ordered after earlier ones, whose lines are sites as well."""
        if conflicts:
            self.ledger.count("hazards", len(conflicts))
        for each in conflicts:
            line = self._lines.get((each.earlier, each.tick))
            if line:
                self.ledger.add_site(line, "raced")

    def host_touches(self, data: Data, *, writes: bool) -> None:
        """Let the host read, or write, data that it shares with the devices.

        An access that no wait orders after those of the devices counts as a hazard.
        """
        self.raced(self.ordering.host_touches(data, writes=writes))

    def wait_for_stream(self, stream: int) -> None:
        """The host waits for a stream.

        Raises:
            RuntimeError: ``torch.cuda.set_sync_debug_mode`` asks for an error.
        """
        if self.sync_debug_mode:
            message = "called a synchronizing CUDA operation"
            if self.sync_debug_mode == WAITS_ARE_ERRORS:
                raise RuntimeError(message)
            warnings.warn(message, stacklevel=1)
        self._waited(
            "stream_syncs", stream, self.ordering.host_waits_for_streams((stream,))
        )

    def wait_for_device(self, device: int) -> None:
        """The host waits for everything on a device."""
        busy = self.ordering.host_waits_for_streams(self.streams_of(device))
        self._waited("device_syncs", device, busy)

    def wait_for_event(self, mark: StreamMark) -> None:
        """The host waits for an event."""
        self._waited("event_syncs", mark.stream, self.ordering.host_waits(mark))

    def poll(self, kind: str, mark: StreamMark, version: int = -1) -> bool:
        """Return whether the work before a mark is done; the first answer about pending work is no.

        CUDA answers so right after a launch. A host that asks again at the same line, and has queued nothing
        since, does nothing but wait for the work: that is counted. An event is pending by itself until the
        host has waited more often than the ``version`` at its record.
        """
        if version < self.ordering.host_version and self.ordering.is_complete(mark):
            return True
        asked = (*mark[:2], user_line())
        now = self.ordering.queued
        if asked not in self._polled:
            self._polled[asked] = now
            return False
        busy = self.ordering.host_waits(mark)
        if self._polled.pop(asked) == now:
            self._waited(kind, mark.stream, busy)
        return True

    def _waited(self, kind: str, stream: int, busy: Collection[int]) -> None:
        """Count a wait for a stream of a device, after which the ``busy`` ones hold newer work."""
        self.ledger.count(kind)
        # A stream of another device that is busy does not keep this device from idling.
        device = self.stream_devices[stream]
        if device not in map(self.stream_devices.__getitem__, busy):
            self.ledger.count("drains")

    def _pin(self, nbytes: int) -> None:
        """Take a pinned block, which is cached for its size or made by ``cudaHostAlloc``.

        Sizes are powers of two, and blocks are neither split nor merged (ATen/core/CachingHostAllocator.h).
        One whose copies have not finished would not be reused; here they have, as for ``Event.query``. The
        thread of a ``DataLoader`` that pins batches lets nobody wait: it has no line of the user.
        """
        size = 1 << (nbytes - 1).bit_length() if nbytes else 0
        if self._pinned[size]:
            self._pinned[size] -= 1
        elif size and user_line() != NOWHERE:
            self._may_block()

    def _unpin(self, nbytes: int) -> None:
        if nbytes:
            self._pinned[1 << (nbytes - 1).bit_length()] += 1

    def _owns(self, tag: Tag) -> None:
        if tag.block is not None:
            block = tag.block
            self.ordering.allocate(
                tag.serial, block.stream, block.address, block.address + block.size
            )

    def _released(self, tag: Tag) -> None:
        block, ordering = tag.block, self.ordering
        if block is not None:
            if not ordering.drop(tag.serial, block.stream):
                recorded = block.used_by or ()
                ordering.free(
                    tag.serial,
                    block.stream,
                    block.address,
                    block.address + block.size,
                    recorded,
                )
            self.allocators[tag.device].free(block)
            tag.block = None
        elif tag.device == HOST:
            self.host_bytes -= tag.nbytes
            # CUDA keeps the memory until copies that use it are done.
            if tag.pinned:
                self._unpin(tag.nbytes)
                ordering.forget(tag.serial)


def is_in_backward() -> bool:
    """Return True if the autograd engine is at work."""
    return torch._C._current_graph_task_id() != -1


def _in_units(nbytes: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if nbytes >= unit:
            return f"{nbytes / unit:.2f} {name}"
    return f"{nbytes} bytes"
