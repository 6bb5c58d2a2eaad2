"""What is current in each thread: a device, and one stream of every device."""

from __future__ import annotations

import threading
from bisect import bisect_right
from operator import itemgetter

import torch

ADDS_TO_A_LEAF = 2**64 - 1
"""The number of every node that adds a gradient to a leaf, whenever it was made."""


class CurrentStreams(threading.local):
    """A thread's current device and streams, as CUDA has them for each thread.

    Args:
        count: Number of devices.

    Attributes:
        device: Index of the current device.
        streams: The current stream of every device.
    """

    def __init__(self, count: int) -> None:
        self.device = 0
        self.streams = list(range(count))
        # Autograd numbers its nodes as they are made: what was current then is found by that number.
        self._switches: list[list[tuple[int, int]]] = [[(-1, device)] for device in range(count)]
        self._followed = (-1, -1, -1)

    def set_stream(self, device: int, stream: int) -> None:
        """Make a stream current on its device."""
        self.streams[device] = stream
        switches = self._switches[device]
        made = torch._C._autograd._get_sequence_nr()
        if switches[-1][0] == made:
            switches.pop()
        switches.append((made, stream))

    def stream_of_forward(self, device: int, backward_pass: int) -> int | None:
        """The stream that the node at work was made on; None if that was asked already, or it has none."""
        node = torch._C._current_autograd_node()
        number = ADDS_TO_A_LEAF if node is None else node._sequence_nr()
        followed = (device, backward_pass, number)
        if number == ADDS_TO_A_LEAF or followed == self._followed:
            return None
        self._followed = followed
        switches = self._switches[device]
        return switches[bisect_right(switches, number, key=itemgetter(0)) - 1][1]
