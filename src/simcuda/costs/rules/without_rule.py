"""Operations without a rule: those that ATen makes of others, that never wait, and that CUDA lacks.

``operations.json`` lists them by what is known of them and from where. What is in none of its tables and has
no rule might wait: it is reported as unknown.
"""

from __future__ import annotations

from simcuda.basis import in_aten, operations

TAKEN_APART: dict[str, list[str]] = operations("taken apart")
NEVER_WAITING: dict[str, list[str]] = operations("never waiting")
"""Operations by their source."""

TAKEN_APART_NAMES, _NEVER_WAITING_NAMES = (
    frozenset(f"aten.{name}" for names in table.values() for name in names)
    for table in (TAKEN_APART, NEVER_WAITING)
)

HOST_ONLY = in_aten(operations("host only"))

PRODUCT_KERNELS: dict[str, str] = {
    f"aten.{name}": kernel
    for kernel, names in operations("products").items()
    for name in names
}


def never_waits(packet: str) -> bool:
    """Return True if an operation, named without overload, is known never to make the host wait."""
    return packet in _NEVER_WAITING_NAMES or packet.startswith("aten._foreach_")
