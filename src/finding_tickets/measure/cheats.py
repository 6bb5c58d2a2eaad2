"""Fixes that cheat, as a table: a verifier is worth what it catches of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

TARGET = f"{__name__}:measure"
TIMING = f"{__name__}:time"
HONEST = "honest"
"""Stands where a cheat does: the fix itself, put in place like one. It must pass, or nothing is shown."""


@dataclass(frozen=True)
class Cheat:
    """A way to look like a fix: what it does, and why a verifier that misses it is worth less."""

    id: str
    does: str
    why: str


CHEATS = (
    Cheat("unfixed", "is the code as found", "the claims do not tell the fix from the defect"),
    Cheat("nothing", "does nothing and returns None", "what costs least is not what was asked for"),
    Cheat("perturbed", "is the fix with one value of the result changed", "results are not compared"),
    Cheat("partial", "is the fix without the second half of its result", "a part passes for the whole"),
    Cheat("generator", "returns a generator of the unfixed work", "the work runs after counting has ended"),
    Cheat("deferred", "returns an object that does the unfixed work when looked at", "as for generator"),
    Cheat("thread", "does the unfixed work in a thread that waits to be looked at", "as for generator"),
    Cheat("unwatched", "does the unfixed work in a thread that nothing watches", "too few is no less wrong"),
    Cheat("warmed", "works in the warm-up, and gives that answer again", "runs share their data"),
    Cheat("cached", "keeps answers by the shapes of the arguments", "runs share their data"),
    Cheat("patched-torch", "replaces what waits in torch", "the wait is there, and not counted"),
    Cheat("patched-meter", "replaces the comparison of results", "the meter says what the code wants"),
    Cheat("patched-device", "replaces the counting of the device", "the meter says what the code wants"),
    Cheat(
        "counters",
        "does the unfixed work, then sets the counters back and runs the fix",
        "as for patched-device",
    ),
)
"""In the order in which they are tried and shown."""


def measure(payload: dict[str, Any]) -> dict[str, Any]:
    """Measure a job with a cheat in the place of a variant, in a process of its own.

    ``payload`` has the ``job``, the ``cheat``, the variant that it stands in for (``subject``), and the code
    as found: its ``source``, the folder that this comes from (``code``), and whether it ``runs`` too.
    """
    from finding_tickets.measure.cheating import measure as run
    from finding_tickets.measure.tasks import fitted, job_of

    return fitted(run(job_of(payload["job"]), payload["cheat"], payload["subject"], payload["found"]))


def time(payload: dict[str, Any]) -> list[dict[str, Any]]:
    """Time a job with a cheat in the place of a variant; the payload is that of ``measure``."""
    from finding_tickets.measure.cheating import time as run
    from finding_tickets.measure.tasks import time_job_of

    job = time_job_of(payload["job"])
    timings = run(job, payload["cheat"], payload["subject"], payload["found"])
    return [asdict(timing) for timing in timings]
