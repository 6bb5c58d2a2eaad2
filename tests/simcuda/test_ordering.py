from simcuda.device.ordering import HOST, Conflict, Ordering

MAIN, SIDE, OTHER = 0, 1, 2
X, Y, HOST_BUFFER = 100, 101, 200


def test_work_on_one_stream_is_ordered() -> None:
    """Writing, reading and writing again on one stream needs no care."""
    order = Ordering()
    assert [] == order.launch(MAIN, writes=[X])
    assert [] == order.launch(MAIN, reads=[X], writes=[Y])
    assert [] == order.launch(MAIN, reads=[Y], writes=[X])


def test_reading_what_another_stream_writes_is_a_conflict() -> None:
    """Without an event between them the reader may see old values."""
    order = Ordering()
    order.launch(MAIN, writes=[X])
    assert [Conflict(X, SIDE, MAIN, "read after write")] == order.launch(SIDE, reads=[X])


def test_writing_what_another_stream_reads_is_a_conflict() -> None:
    """The write may arrive before the read."""
    order = Ordering()
    order.launch(MAIN, reads=[X])
    assert [Conflict(X, SIDE, MAIN, "write after read")] == order.launch(SIDE, writes=[X])


def test_two_streams_that_only_read_do_not_conflict() -> None:
    """Reads need no order among each other."""
    order = Ordering()
    order.launch(MAIN, reads=[X])
    assert [] == order.launch(SIDE, reads=[X])


def test_each_piece_of_data_conflicts_by_itself() -> None:
    """Six parameters written by a side stream, then overwritten by one launch each: six conflicts."""
    order = Ordering()
    order.launch(SIDE, writes=range(6))
    conflicts = [conflict for data in range(6) for conflict in order.launch(MAIN, writes=[data])]
    assert [Conflict(data, MAIN, SIDE, "write after write") for data in range(6)] == conflicts


def test_one_launch_reports_data_once() -> None:
    """An in-place kernel reads and writes the same data, which counts as one access."""
    order = Ordering()
    order.launch(SIDE, writes=[X])
    assert 1 == len(order.launch(MAIN, reads=[X], writes=[X, X]))


def test_a_stream_that_waits_for_an_event_is_ordered() -> None:
    """What was queued before the event is safe, what was queued behind it is not."""
    order = Ordering()
    order.launch(SIDE, writes=[X])
    mark = order.record(SIDE)
    order.launch(SIDE, writes=[Y])
    order.wait(MAIN, mark)
    assert [] == order.launch(MAIN, reads=[X])
    assert [Conflict(Y, MAIN, SIDE, "read after write")] == order.launch(MAIN, reads=[Y])


def test_order_passes_through_a_third_stream() -> None:
    """A waits for B, which had waited for C: A comes after C's work too."""
    order = Ordering()
    order.launch(OTHER, writes=[X])
    order.wait(SIDE, order.record(OTHER))
    order.wait(MAIN, order.record(SIDE))
    assert [] == order.launch(MAIN, writes=[X])


def test_waiting_works_in_one_direction() -> None:
    """The stream that was waited for learns nothing of the one that waits."""
    order = Ordering()
    order.launch(MAIN, writes=[X])
    order.wait(MAIN, order.record(SIDE))
    assert 1 == len(order.launch(SIDE, reads=[X]))


def test_a_launch_comes_after_what_the_host_waited_for() -> None:
    """After the host waits for the side stream, every stream's later work is ordered after it."""
    order = Ordering()
    order.launch(SIDE, writes=[X])
    order.host_waits_for_streams([SIDE])
    assert [] == order.launch(MAIN, writes=[X])


def test_waiting_for_the_wrong_stream_does_not_help() -> None:
    """A wait for the current stream leaves the side stream's work unordered."""
    order = Ordering()
    order.launch(SIDE, writes=[X])
    order.host_waits_for_streams([MAIN])
    assert 1 == len(order.launch(MAIN, writes=[X]))


def test_a_device_wide_wait_orders_every_stream() -> None:
    """Waiting for the device is waiting for each of its streams."""
    order = Ordering()
    order.launch(SIDE, writes=[X])
    order.launch(OTHER, writes=[Y])
    order.host_waits_for_streams([MAIN, SIDE, OTHER])
    assert [] == order.launch(MAIN, writes=[X, Y])


def test_waiting_for_an_older_event_takes_nothing_back() -> None:
    """A stream that waited for the newer of two events is still ordered after it."""
    order = Ordering()
    older = order.record(SIDE)
    order.launch(SIDE, writes=[X])
    first = order.record(SIDE)
    order.launch(SIDE, writes=[Y])
    order.wait(MAIN, order.record(SIDE))
    for mark in (first, older):
        order.wait(MAIN, mark)
    assert [] == order.launch(MAIN, reads=[Y])


def test_work_launched_before_the_wait_is_not_ordered_by_it() -> None:
    """A kernel that was already queued when the host began to wait may have run at any time."""
    order = Ordering()
    order.launch(MAIN, reads=[X])
    order.host_waits_for_streams([SIDE])
    assert 1 == len(order.launch(SIDE, writes=[X]))


def test_the_host_reads_the_result_of_a_copy_only_after_waiting() -> None:
    """An asynchronous copy to the host must be waited for before its result is read."""
    order = Ordering()
    order.launch(MAIN, reads=[X], writes=[HOST_BUFFER])
    mark = order.record(MAIN)
    assert [Conflict(HOST_BUFFER, HOST, MAIN, "read after write")] == order.host_touches(
        HOST_BUFFER, writes=False
    )
    order.host_waits(mark)
    assert [] == order.host_touches(HOST_BUFFER, writes=False)


def test_the_host_overwrites_the_source_of_a_copy_only_after_waiting() -> None:
    """An asynchronous copy from pinned memory may still be reading; reading beside it is safe."""
    order = Ordering()
    order.launch(MAIN, reads=[HOST_BUFFER], writes=[X])
    assert [] == order.host_touches(HOST_BUFFER, writes=False)
    assert [Conflict(HOST_BUFFER, HOST, MAIN, "write after read")] == order.host_touches(
        HOST_BUFFER, writes=True
    )
    order.host_waits_for_streams([MAIN])
    assert [] == order.host_touches(HOST_BUFFER, writes=True)


def test_host_data_that_no_stream_touched_is_free_to_use() -> None:
    """Ordinary host memory has no conflicts."""
    order = Ordering()
    assert ([], []) == (
        order.host_touches(HOST_BUFFER, writes=False),
        order.host_touches(HOST_BUFFER, writes=True),
    )


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


def test_a_mark_on_an_idle_stream_is_complete() -> None:
    """There is nothing to wait for."""
    order = Ordering()
    assert order.is_complete(order.record(MAIN))


def test_memory_freed_while_another_stream_uses_it_must_not_be_reused() -> None:
    """Without ``record_stream`` the owner's next tensor overwrites what the side stream still reads."""
    order = Ordering()
    order.launch(MAIN, writes=[X])
    order.wait(SIDE, order.record(MAIN))
    order.launch(SIDE, reads=[X])
    order.free(X, MAIN, 0, 512)
    order.allocate(Y, MAIN, 0, 512)
    assert [Conflict(Y, MAIN, SIDE, "reuse")] == order.launch(MAIN, writes=[Y])


def test_memory_that_another_stream_still_writes_must_not_be_reused() -> None:
    """An unfinished write into freed memory would destroy the next tensor's values."""
    order = Ordering()
    order.launch(SIDE, writes=[X])
    order.free(X, MAIN, 0, 512)
    order.allocate(Y, MAIN, 256, 768)
    assert [Conflict(Y, MAIN, SIDE, "reuse")] == order.launch(MAIN, writes=[Y])


def test_memory_that_nobody_used_in_between_is_still_in_use() -> None:
    """A tensor that was made and dropped without a kernel does not end the side stream's work."""
    order = Ordering()
    order.launch(SIDE, reads=[X])
    order.free(X, MAIN, 0, 512)
    order.allocate(Y, MAIN, 0, 512)
    order.free(Y, MAIN, 0, 512)
    order.allocate(Y, MAIN, 0, 512)
    assert [Conflict(Y, MAIN, SIDE, "reuse")] == order.launch(MAIN, writes=[Y])


def test_ordered_work_leaves_nothing_behind() -> None:
    """A program that needs no care costs no memory."""
    order = Ordering()
    order.launch(MAIN, writes=[X])
    order.launch(SIDE, writes=[Y])
    order.wait(MAIN, order.record(SIDE))
    order.free(X, MAIN, 0, 512)
    order.free(Y, MAIN, 512, 1024)
    assert {} == order._left_behind


def test_recorded_streams_leave_nothing_behind() -> None:
    """With ``record_stream`` the allocator waits before it hands the memory out."""
    order = Ordering()
    order.launch(SIDE, reads=[X])
    order.free(X, MAIN, 0, 512, recorded={SIDE})
    order.allocate(Y, MAIN, 0, 512)
    assert [] == order.launch(MAIN, writes=[Y])


def test_other_memory_is_not_affected_by_what_was_left_behind() -> None:
    """Only a tensor that overlaps the freed range conflicts; byte 512 is outside of 0 to 512."""
    order = Ordering()
    order.launch(SIDE, reads=[X])
    order.free(X, MAIN, 0, 512)
    order.allocate(Y, MAIN, 512, 1024)
    assert [] == order.launch(MAIN, writes=[Y])


def test_the_owner_may_wait_after_the_memory_was_freed() -> None:
    """Reuse is safe when the owner waits for the other stream before its first kernel."""
    order = Ordering()
    order.launch(SIDE, reads=[X])
    order.free(X, MAIN, 0, 512)
    order.allocate(Y, MAIN, 0, 512)
    order.wait(MAIN, order.record(SIDE))
    assert [] == order.launch(MAIN, writes=[Y])


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
