"""A case: a piece of CUDA work whose cost is recorded."""

from __future__ import annotations

import random
import sys
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch

Work = Callable[[], object]

MEASURED, WARM_UP = 0, 1
"""The seeds of the data on which a case is measured, and is run once before."""


class NotRunError(Exception):
    """A case has nothing to run, or cannot run here, with the reason."""


@dataclass(frozen=True)
class Case:
    """One piece of work.

    Attributes:
        id: Unique name; it begins with the name of the case's group and a slash.
        prepare: ``prepare(seed)`` builds the inputs on the device and returns the work on them. It raises
            ``NotRunError`` where there is nothing to run.
        digest: What the case runs, in eight hexadecimal digits; under the same id, another digest is another
            case.
        devices: How many devices it needs.
        memory: Bytes of memory that each device is to have; None for all.
    """

    id: str
    prepare: Callable[[int], Work]
    digest: str
    devices: int = 1
    memory: int | None = None


Groups = dict[str, Callable[[], Iterable[Case]]]
"""What finds the cases of each group, by its name; looking for them may take time, or raise."""


def digest(*parts: str) -> str:
    """Eight hexadecimal digits that differ where the parts do, of which a case is made."""
    return f"{zlib.crc32(chr(0).join(parts).encode()):08x}"


def seed_all(seed: int) -> torch.Generator:
    """Seed every source of random numbers; the generator returned is the host's, seeded alike."""
    torch.manual_seed(seed)
    random.seed(seed)
    # Where it was not imported, nothing can have drawn from it.
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(seed)
    return torch.Generator().manual_seed(seed)
