"""The remediation of a ticket: its verifier, its variants and what it claims of them."""

from __future__ import annotations

from typing import Literal

from finding_tickets.model.record import Record, Span
from finding_tickets.model.vocabulary import SAME_RESULT, SECONDS, squeeze

__all__ = ["SAME_RESULT", "SECONDS", "Answer", "Claim", "Remediation", "Unmeasured", "VariantRef"]


class VariantRef(Record):
    """Where a function lives: ``path.py:function`` or ``package.module:function``, at a revision."""

    raw: str
    module: str
    function: str
    revision: str | None
    line: int


class Claim(Record):
    """One value claimed for one metric of one variant.

    ``id`` is ``variant.metric``, with ``[n]`` (from 0) where the metric has several values. ``value`` is an
    expression, a comparison, a range or a growth class, as written. ``at`` restricts the claim to the points
    of the sweep at which every named variable satisfies its condition. ``tolerance`` belongs to
    ``same_result_as`` alone, where ``value`` names the other variant.
    """

    id: str
    variant: str
    metric: str
    value: str
    at: dict[str, str]
    expect: Literal["holds", "refuted"]
    why: str | None
    tolerance: float | None
    line: int


class Unmeasured(Record):
    """A numeric claim of the ticket that is not measured, and why."""

    claim: str
    why: str
    line: int


class Answer(Record):
    """What answers one item of the checklist: claims, by their ids, or the reason why none can."""

    item: str
    claims: tuple[str, ...]
    why: str | None
    line: int


class Remediation(Record):
    """The Remediation block of a ticket; what it leaves out follows from the convention of the house.

    ``path`` is the file that it stands in, the ticket's own or one beside it, ``span`` where it is there, and
    ``digest`` the SHA-256 of what it was read from.
    ``verifier`` and ``variants`` are the block's own: empty where the convention (``verifiers/<id>.py``,
    ``fixes/<id>/*.py``) applies. ``variants`` keeps the order of the block.
    """

    verifier: str | None
    variants: dict[str, VariantRef]
    decision: Literal["fix", "keep"]
    claims: tuple[Claim, ...]
    unmeasured: tuple[Unmeasured, ...]
    checklist: tuple[Answer, ...]
    path: str
    span: Span
    digest: str

    def answer_to(self, item: str) -> Answer | None:
        """The answer to an item of the checklist, compared without case, markup and punctuation."""
        wanted = squeeze(item)
        return next((answer for answer in self.checklist if squeeze(answer.item) == wanted), None)
