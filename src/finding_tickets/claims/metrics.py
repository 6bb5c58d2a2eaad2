"""The metrics: their names, and what each counts.

``python -m finding_tickets.claims.metrics`` prints the table of docs/metrics.md.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

BEGIN = "<!-- This table is printed by python -m finding_tickets.claims.metrics. -->"
END = "<!-- The table ends here. -->"
# What every metric counts, in Markdown. Results are kept and shown in this order, as is the table.
DEFINITIONS: Mapping[str, str] = {
    "syncs": "explicit host waits: `stream_syncs + event_syncs + device_syncs`",
    "stream_syncs": (
        "waits for one stream: `.item()`, a blocking copy between host and device, `Stream.synchronize()`, "
        "a loop that does nothing but call `Stream.query()`"
    ),
    "event_syncs": (
        "waits for an event: `Event.synchronize()`, a loop that does nothing but call `Event.query()`"
    ),
    "device_syncs": "waits for everything on a device: `torch.cuda.synchronize()`",
    "drains": (
        "those `syncs` after which the waited-for streams hold no more queued work: "
        "the GPU then idles until the host launches again"
    ),
    "implicit_syncs": (
        "places where the host may block without a synchronise call: asynchronous copies from or to pageable "
        "memory, and each `cudaMalloc`, `cudaFree`, `cudaHostAlloc` and `cudaFreeHost` of the allocators"
    ),
    "h2d": "copies from host to device",
    "h2d_bytes": "bytes of copies from host to device",
    "d2h": "copies from device to host",
    "d2h_bytes": "bytes of copies from device to host",
    "d2d": "copies within a device",
    "d2d_bytes": "bytes of copies within a device",
    "p2p": "copies between devices",
    "p2p_bytes": "bytes of copies between devices",
    "launches": (
        "kernel launches by ATen operations; of a library's kernels as many as are usual, "
        "with [a range](#what-libraries-choose)"
    ),
    "aten_launches": "launches of ATen's own kernels, without those of cuBLAS and cuDNN",
    "allocations": "blocks requested from the device's caching allocator",
    "largest_allocation": "the largest single request, in bytes",
    "peak_bytes": "peak of requested device bytes above what was live on entry, all devices together",
    "peak_allocated_bytes": "the same in allocator blocks, which are multiples of 512 bytes",
    "retained_bytes": "requested device bytes still live after the result was dropped",
    "host_peak_bytes": "peak of host tensors' bytes above what was live on entry",
    "hazards": (
        "accesses to the same data from different streams, one of them a write, without an ordering between "
        "them; the host counts as a stream while a copy uses its pinned memory"
    ),
    "ooms": "allocations that failed for want of memory",
    "raised": "1 where the variant ended with an exception, else 0",
    "graph_breaks": "breaks that `torch.compile` would make; measured in a run of its own, on the CPU",
}
# The kinds of ``syncs``.
SYNCS = ("stream_syncs", "event_syncs", "device_syncs")
# The metrics that are known by statement.
OF_STATEMENTS = (
    *("syncs", *SYNCS, "drains", "implicit_syncs", "hazards"),
    *("d2h", "h2d", "d2d", "p2p", "allocations"),
)
METRICS = tuple(DEFINITIONS)
# The metrics whose source lines are always shown; those that allocate only where memory decides.
WAITING = frozenset(
    [
        "drains",
        "stream_syncs",
        "event_syncs",
        "device_syncs",
        "implicit_syncs",
        "h2d",
        "d2h",
        "d2d",
        "p2p",
        "hazards",
    ]
)
MEMORY = frozenset(
    [
        "peak_bytes",
        "peak_allocated_bytes",
        "largest_allocation",
        "allocations",
        "retained_bytes",
        "ooms",
    ]
)
# What a claim may name: a metric, or that a variant returns what another one returns.
CLAIMABLE = (*DEFINITIONS, "same_result_as")
# What to do instead of a claim about a metric that older versions had.
REMOVED_METRICS = {"seconds": "times are not measured: list the claim under unmeasured"}
# Metrics of how a run ended: measured where it raised too, and a claim about one makes that a result.
ENDINGS = frozenset({"raised", "ooms"})
# What also depends on the memory that is cached already: the same work may ask the driver for more or less.
DEPENDS_ON_CACHE = "implicit_syncs"
# Metrics that a meter counts during one run; the others follow from its end or from a run of their own.
COUNTS = tuple(name for name in METRICS if name not in {"raised", "graph_breaks"})


def table() -> str:
    """The table in Markdown, between its marks."""
    rows = (f"| `{name}` | {what} |" for name, what in DEFINITIONS.items())
    return "\n".join([BEGIN, "", "| metric | counts |", "|---|---|", *rows, "", END])


if __name__ == "__main__":
    sys.stdout.write(table() + "\n")
