"""The states of a finding and the ways from one to another: data, and what a refusal says."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from finding_tickets.errors import UsageError
from finding_tickets.model.vocabulary import Outcome, Status

SETTLED_AS: Mapping[Outcome, Status] = MappingProxyType(
    {
        Outcome.FIXED: Status.FIXED,
        Outcome.WONT_FIX: Status.WONT_FIX,
        Outcome.NOT_A_BUG: Status.CLOSED,
        Outcome.DUPLICATE: Status.CLOSED,
    }
)
"""What a ticket can be closed as, and the status that it has then."""

REOPENED_AS = Status.OPEN

# Nobody can review what nobody has worked on; everything else that is unsettled may change into any other.
_WORK: Mapping[Status | None, tuple[Status, ...]] = {
    None: (Status.OPEN, Status.INVESTIGATING, Status.IN_PROGRESS, Status.IN_REVIEW),
    Status.OPEN: (Status.INVESTIGATING, Status.IN_PROGRESS),
    Status.INVESTIGATING: (Status.OPEN, Status.IN_PROGRESS),
    Status.IN_PROGRESS: (Status.OPEN, Status.INVESTIGATING, Status.IN_REVIEW),
    Status.IN_REVIEW: (Status.OPEN, Status.INVESTIGATING, Status.IN_PROGRESS),
}
_SETTLED = (Status.CLOSED, Status.FIXED, Status.WONT_FIX, Status.INVALID)

TRANSITIONS: Mapping[Status | None, Mapping[str, tuple[Status, ...]]] = MappingProxyType(
    {
        **{
            status: {"set": following, "close": tuple(dict.fromkeys(SETTLED_AS.values()))}
            for status, following in _WORK.items()
        },
        **{status: {"reopen": (REOPENED_AS,)} for status in _SETTLED},
    }
)
"""For each status (None: not stated, or none of the vocabulary) the statuses that each command leads to."""


def check(current: Status | None, command: str, wanted: Status) -> None:
    """Refuse what the states do not allow.

    Raises:
        UsageError: There is no such transition; the hint names those that there are.
    """
    ways = TRANSITIONS[current]
    if wanted in ways.get(command, ()):
        return
    said = f"{command} does not lead from {current or 'not stated'} to {wanted}"
    hint = "; ".join(f"tickets {name}: {', '.join(statuses)}" for name, statuses in ways.items())
    raise UsageError(
        f"it is {wanted} already" if current is wanted else said, hint=f"allowed from here: {hint}"
    )
