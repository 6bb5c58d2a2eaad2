"""Which accesses are ordered: rows of what streams and the host do, and the conflict of the last of it."""

from __future__ import annotations

from typing import Any

import pytest

from simcuda.device.ordering import Conflict, Ordering, part_of

MAIN, SIDE, OTHER = 0, 1, 2
X, Y, HOST_BUFFER = 100, 101, 200


class Steps:
    """An ordering, and short names for what is done to it; each returns the conflicts."""

    def __init__(self) -> None:
        self.order = Ordering()

    def read(self, stream: int, *data: Any) -> list[Conflict]:
        """Launch a kernel that reads."""
        return self.order.launch(stream, reads=data)

    def write(self, stream: int, *data: Any) -> list[Conflict]:
        """Launch a kernel that writes."""
        return self.order.launch(stream, writes=data)

    def follow(self, stream: int, other: int) -> list[Conflict]:
        """Let a stream wait for another one."""
        self.order.wait(stream, self.order.record(other))
        return []

    def host_waits(self, *streams: int) -> list[Conflict]:
        """Let the host wait for streams."""
        self.order.host_waits_for_streams(streams)
        return []

    def free(self, data: int, start: int = 0, end: int = 512, **how: Any) -> list[Conflict]:
        """Give memory of the main stream back."""
        self.order.free(data, MAIN, start, end, **how)
        return []

    def take(self, data: int, start: int = 0, end: int = 512) -> list[Conflict]:
        """Hand memory of the main stream out."""
        self.order.allocate(data, MAIN, start, end)
        return []


READ_AFTER, AFTER_READ, WRITES, REUSE = (
    *("read after write", "write after read"),
    *("write after write", "reuse"),
)
STEPS: dict[str, tuple[str, str]] = {
    # On one stream nothing needs care, and reads need no order among each other.
    "write(MAIN, X); read(MAIN, X); write(MAIN, Y); read(MAIN, Y); write(MAIN, X)": ("", ""),
    "read(MAIN, X); read(SIDE, X)": ("", ""),
    "write(MAIN, X); read(SIDE, X)": (READ_AFTER, "X, SIDE, MAIN"),
    "read(MAIN, X); write(SIDE, X)": (AFTER_READ, "X, SIDE, MAIN"),
    "write(SIDE, X); write(MAIN, X)": (WRITES, "X, MAIN, SIDE"),
    # What was queued before an event is safe, what was queued behind it is not.
    "write(SIDE, X); follow(MAIN, SIDE); read(MAIN, X)": ("", ""),
    "write(SIDE, X); follow(MAIN, SIDE); write(SIDE, Y); read(MAIN, Y)": (READ_AFTER, "Y, MAIN, SIDE"),
    # The main stream waits for the side stream, which had waited for a third.
    "write(OTHER, X); follow(SIDE, OTHER); follow(MAIN, SIDE); write(MAIN, X)": ("", ""),
    # Waiting works in one direction.
    "write(MAIN, X); follow(MAIN, SIDE); read(SIDE, X)": (READ_AFTER, "X, SIDE, MAIN"),
    # A launch comes after what the host waited for, and one that was queued before the wait does not.
    "write(SIDE, X); host_waits(SIDE); write(MAIN, X)": ("", ""),
    "write(SIDE, X); host_waits(MAIN); write(MAIN, X)": (WRITES, "X, MAIN, SIDE"),
    "write(SIDE, X); write(OTHER, Y); host_waits(MAIN, SIDE, OTHER); write(MAIN, X, Y)": ("", ""),
    "read(MAIN, X); host_waits(SIDE); write(SIDE, X)": (AFTER_READ, "X, SIDE, MAIN"),
    # Without record_stream the owner's next tensor overwrites what the side stream still reads or writes.
    "write(MAIN, X); follow(SIDE, MAIN); read(SIDE, X); free(X); take(Y); write(MAIN, Y)": (
        REUSE,
        "Y, MAIN, SIDE",
    ),
    "write(SIDE, X); free(X); take(Y, 256, 768); write(MAIN, Y)": (REUSE, "Y, MAIN, SIDE"),
    # A tensor that was made and dropped without a kernel does not end the side stream's work.
    "read(SIDE, X); free(X); take(Y); free(Y); take(Y); write(MAIN, Y)": (REUSE, "Y, MAIN, SIDE"),
    # With record_stream the allocator waits; byte 512 is outside of 0 to 512; the owner may wait later.
    "read(SIDE, X); free(X, recorded={SIDE}); take(Y); write(MAIN, Y)": ("", ""),
    "read(SIDE, X); free(X); take(Y, 512, 1024); write(MAIN, Y)": ("", ""),
    "read(SIDE, X); free(X); take(Y); follow(MAIN, SIDE); write(MAIN, Y)": ("", ""),
}


@pytest.mark.parametrize("steps", STEPS)
def test_the_last_access_conflicts_or_does_not(steps: str) -> None:
    """None before it does."""
    names = {"MAIN": MAIN, "SIDE": SIDE, "OTHER": OTHER, "X": X, "Y": Y}
    done = Steps()
    found = [eval(f"done.{step.strip()}", names, {"done": done}) for step in steps.split(";")]  # noqa: S307 - the rows are above
    kind, who = STEPS[steps]
    expected = []
    if kind:
        data, later, earlier = eval(who, names)  # noqa: S307 - the rows are above
        expected = [Conflict(data, later, earlier, kind)]
    assert [[]] * (len(found) - 1) + [expected] == found


def test_waiting_for_an_older_event_takes_nothing_back() -> None:
    """A stream that waited for the newer of two events is still ordered after it."""
    order = Ordering()
    older = order.record(SIDE)
    order.launch(SIDE, writes=[Y])
    order.wait(MAIN, order.record(SIDE))
    order.wait(MAIN, older)
    assert [] == order.launch(MAIN, reads=[Y])


def test_parts_are_forgotten_that_the_host_has_waited_for() -> None:
    """A long buffer is filled part by part: what is kept does not grow with it."""
    order = Ordering()
    for number in range(1000):
        order.launch(MAIN, writes=[part_of(X, 4 * number, 4, ())])
        order.host_waits_for_streams([MAIN])
    assert len(order._shared[X]) <= 64


def test_a_copy_between_devices_orders_both_streams() -> None:
    """The copy comes after the destination's earlier work, and its later work after the copy."""
    order = Ordering()
    order.launch(MAIN, writes=[X])
    order.launch(SIDE, reads=[Y])
    assert [] == order.copy_across(MAIN, SIDE, read=X, written=Y)
    assert [] == order.launch(SIDE, reads=[Y])
    assert [] == order.launch(SIDE, writes=[X])


def test_a_mark_is_complete_once_the_host_has_waited_beyond_it() -> None:
    """The host knows of progress only by waiting, and of nothing queued later."""
    order = Ordering()
    order.launch(MAIN)
    first = order.record(MAIN)
    assert not order.is_complete(first)
    order.host_waits(first)
    order.launch(MAIN)
    assert (True, False) == (order.is_complete(first), order.is_complete(order.record(MAIN)))


def test_ordered_work_leaves_nothing_behind() -> None:
    """A program that needs no care costs no memory."""
    order = Ordering()
    order.launch(MAIN, writes=[X])
    order.launch(SIDE, writes=[Y])
    order.wait(MAIN, order.record(SIDE))
    order.free(X, MAIN, 0, 512)
    order.free(Y, MAIN, 512, 1024)
    assert {} == order._left_behind


def test_freed_data_is_forgotten() -> None:
    """What is kept does not grow with the number of tensors that came and went."""
    order = Ordering()
    for data in range(1000):
        order.allocate(data, MAIN, 0, 512)
        order.launch(MAIN, writes=[data])
        order.launch(SIDE, reads=[data])
        order.free(data, MAIN, 0, 512)
    order.launch(SIDE, writes=[HOST_BUFFER])
    order.forget(HOST_BUFFER)
    assert (0, 0, 1) == (len(order._sole), len(order._shared), len(order._left_behind[MAIN]))
    order.host_waits_for_streams([SIDE])
    order.allocate(X, MAIN, 4096, 8192)
    assert {} == order._left_behind[MAIN]
