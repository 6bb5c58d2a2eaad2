"""Describe each document for lists: by one entry, which takes neither pydantic nor the document."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from finding_tickets.errors import BadDataError, UsageError
from finding_tickets.model.vocabulary import Outcome
from finding_tickets.register.staleness import CodeInputs, code_inputs

if TYPE_CHECKING:
    from finding_tickets.documents.reading import Document
    from finding_tickets.model.ticket import Remediation

_SUGGESTIONS = 5


class StatedClaim(NamedTuple):
    """A claim of a remediation: what is claimed, and whether of every point."""

    variant: str
    metric: str
    text: str
    is_everywhere: bool = True


# File, function, code and occurrence of a statement.
StatementKey = tuple[str, str, str, int]


@dataclass(frozen=True, slots=True)
class Entry:
    """A document as lists, queries and reports need it; what it does not state is None, 0 or empty.

    ``kind`` is ``finding`` or ``review``; a remediation beside its ticket has an entry of this kind, too.
    """

    kind: str
    path: str
    id: str
    title: str
    severity: str | None = None
    status: str | None = None
    outcome: str | None = None  # by the metadata, or else by the section Resolution
    batch: int | None = None
    agent: str | None = None
    assignee: str | None = None
    domains: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()  # those that are ticked
    files: tuple[str, ...] = ()  # of its locations, each once
    reviews: tuple[
        tuple[str | None, str], ...
    ] = ()  # who, and the opinion or else the verdict as written
    related: tuple[
        tuple[str, str], ...
    ] = ()  # IDs and relationships, in the order of the document
    created: str | None = None  # dates are as they are written
    updated: str | None = None
    done: int = 0  # items of the checklist that are ticked
    undone: int = 0
    summary: str | None = None
    code: CodeInputs | None = None  # what verifying it depends on, by its Remediation
    filed: bool = (
        False  # whether status or outcome are not the document's own, but its folder's
    )
    claims: tuple[StatedClaim, ...] = ()
    place: StatementKey | None = None  # the statement that it is about
    moved: tuple[
        StatementKey, ...
    ] = ()  # those of its fix that wait in the stead of that one
    line: int = field(default=0, compare=False)  # of the ID
    section_line: int = field(
        default=0, compare=False
    )  # of the Remediation section, if there is one

    @property
    def verifier(self) -> str | None:
        """The file that its Remediation names; the usual one is not looked for."""
        return self.code.verifier if self.code else None


def entry_of(document: Document | Remediation) -> Entry:
    """Return the entry of a document or a remediation, derived from its record."""
    # A list loads no records.
    from finding_tickets.model.ticket import Remediation

    if isinstance(document, Remediation):
        return replace(
            Entry("remediation", document.path, "", ""), **_stated_code(document)
        )
    done = sum(item.done for item in document.checklist)
    section = document.remediation
    entry = Entry(
        kind=document.kind,
        path=document.path,
        id=document.id.value,
        title=document.title.value,
        files=_unique(location.file for location in document.locations),
        done=done,
        undone=len(document.checklist) - done,
        **_stated_code(section),
        line=document.id.span.line,
        section_line=section.span.line
        if section and section.path == document.path
        else 0,
    )
    if document.kind != "finding":
        # A review document counts as its own single review.
        stated = document.reviewer or document.verdict
        said = (_stated_text(document.reviewer), _stated_text(document.verdict) or "")
        return replace(
            entry,
            reviews=(said,) if stated else (),
            created=_stated_text(document.date),
        )
    outcome = outcome_of(document)
    return replace(
        entry,
        severity=_stated_text(document.severity),
        status=_stated_text(document.status),
        outcome=outcome.value if outcome else None,
        batch=document.batch.value if document.batch else None,
        agent=_stated_text(document.agent),
        assignee=_stated_text(document.assignee),
        domains=_unique(each.value for each in document.domains),
        categories=tuple(
            category.name for category in document.categories if category.ticked
        ),
        reviews=tuple(
            (
                _stated_text(each.reviewer),
                _stated_text(each.opinion) or each.verdict.value,
            )
            for each in document.reviews
        ),
        related=tuple(
            (relation.id, relation.relationship.value) for relation in document.related
        ),
        created=_stated_text(document.created),
        updated=_stated_text(document.updated),
        summary=document.summary.raw if document.summary else None,
        filed=any(
            each is not None and not each.raw
            for each in (document.status, document.outcome)
        ),
    )


def _stated_code(remediation: Remediation | None) -> dict[str, Any]:
    """Return what a remediation adds to the entry of its document."""
    if remediation is None:
        return {}
    claims = [
        StatedClaim(each.variant, each.metric, each.text, not each.at)
        for each in remediation.claims
    ]
    return {
        "code": code_inputs(remediation),
        "claims": tuple(claims),
        "place": remediation.place.key if remediation.place else None,
        "moved": tuple(each.key for each in remediation.moved),
    }


def outcome_of(document: Document) -> Outcome | None:
    """Return the resolution of a finding: by its metadata, else by its section Resolution."""
    if document.kind != "finding":
        return None
    if document.outcome and document.outcome.value:
        return document.outcome.value
    return document.resolution.outcome if document.resolution else None


def _stated_text(stated: Any) -> str | None:
    value = stated.value if stated else None
    return value.value if isinstance(value, Enum) else value


def _unique(values: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value))


def natural(text: str) -> tuple[tuple[int, str], ...]:
    """A key that sorts numbers within text by their value, however long: ``B2`` before ``B10``."""
    pieces = re.split(r"([0-9]+)", text.upper())
    # Of two numbers without leading zeros, the longer one is greater.
    bare = (piece.lstrip("0") if at % 2 else piece for at, piece in enumerate(pieces))
    return tuple((len(piece) if at % 2 else 0, piece) for at, piece in enumerate(bare))


def find(entries: Sequence[Entry], document_id: str) -> Entry:
    """Return the entry with this ID, in any case, or at this path.

    Raises:
        UsageError: There is none; the hint names similar ones.
        BadDataError: There are several; the message names their files.
    """
    wanted = document_id.strip().casefold()
    path = document_id.strip().removeprefix("./")
    found = [
        each for each in entries if each.id.casefold() == wanted or each.path == path
    ]
    if len(found) > 1:
        files = ", ".join(each.path for each in found)
        hint = "name one by its path, or give it another ID"
        raise BadDataError(
            f"{found[0].id} is the ID of several documents: {files}", hint=hint
        )
    if not found:
        hint = hint_for([each.id for each in entries], wanted)
        raise UsageError(f"no document has the ID {document_id!r}", hint=hint)
    return found[0]


def hint_for(ids: Sequence[str], wanted: str) -> str:
    """Return a hint with the IDs that begin with an unknown one, or resemble it."""
    if not ids:
        return "the register is empty"
    from difflib import get_close_matches

    folded = {name.casefold(): name for name in ids}
    begin = [name for name in folded if wanted and name.startswith(wanted)]
    close = begin or get_close_matches(wanted, folded, n=_SUGGESTIONS)
    names = [folded[name] for name in close[:_SUGGESTIONS]]
    return (
        f"did you mean {', '.join(names)}?" if names else "tickets list shows them all"
    )
