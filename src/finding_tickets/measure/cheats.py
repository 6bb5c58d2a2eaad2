"""The table of fixes that cheat: a good verifier catches them."""

from __future__ import annotations

from dataclasses import dataclass

TARGET = "finding_tickets.measure.cheating:measure_payload"
TIMING = "finding_tickets.measure.cheating:time_payload"
# The name under which the fix itself is tried first, as if it were a cheat: it must pass.
HONEST = "honest"
# The name of what the code as found does meanwhile: it leaves its answers where a cheat looks for them.
LEAVING = "leaving"


@dataclass(frozen=True)
class Cheat:
    """A way to look like a fix: what it does, and why a verifier should catch it."""

    id: str
    does: str
    why: str


# In the order in which they are tried and shown.
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
    Cheat("shared", "takes what the code as found has left behind", "variants can see each other"),
    Cheat("pasted", "has a table of the answers for the workload's seed", "the inputs are always the same"),
    Cheat("equal", "returns what says of itself that it equals everything", "results judge themselves"),
    Cheat("early", "does the unfixed work with methods bound before", "the wait is there, and not counted"),
    Cheat("scripted", "does the unfixed work with scripted reads", "as for early"),
    Cheat("early-thread", "does the unfixed work in a thread that was there before", "as for unwatched"),
    Cheat("stopped", "stops the process that watches it", "no time limit ends it"),
    Cheat("patched-torch", "replaces what waits in torch", "the wait is there, and not counted"),
    Cheat("patched-meter", "replaces the comparison of results", "the meter says what the code wants"),
    Cheat("patched-device", "replaces the counting of the device", "the meter says what the code wants"),
    Cheat("patched-code", "replaces the code of the counting in place", "as for patched-device"),
    Cheat(
        "counters",
        "does the unfixed work, then sets the counters back and runs the fix",
        "as for patched-device",
    ),
)
