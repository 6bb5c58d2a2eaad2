"""Verifications that wait to be shown: there may be thousands, and each is most of a megabyte of objects."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Iterator

from finding_tickets.model.verification import Verification


class Packed(Collection[Verification]):
    """Verifications as a few kilobytes each; every look at them makes new and equal ones."""

    def __init__(self, packs: Iterable[bytes]) -> None:
        self._packs = tuple(packs)

    def __len__(self) -> int:
        """How many they are."""
        return len(self._packs)

    def __iter__(self) -> Iterator[Verification]:
        """One after the other, none of which is kept."""
        return map(_unpacked, self._packs)

    def __contains__(self, one: object) -> bool:
        """Whether one is equal to this."""
        return any(each == one for each in self)


def pack(verification: Verification) -> bytes:
    """What ``Packed`` holds of a verification."""
    return zlib.compress(verification.model_dump_json().encode())


def _unpacked(packed: bytes) -> Verification:
    return Verification.model_validate_json(zlib.decompress(packed))
