"""The files of a new ticket: the ticket itself and what it brings along."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from finding_tickets.documents.reading import read_document
from finding_tickets.errors import BadDataError
from finding_tickets.model.ticket import Ticket
from finding_tickets.model.vocabulary import Vocabulary, squeeze, word_for
from finding_tickets.register.convention import fixes_folder, verifier_path
from finding_tickets.register.draft import Draft, Place
from finding_tickets.register.load import Register
from finding_tickets.report.templates import render

TICKET = "ticket.md.j2"
TO_MEASURE = "Measure what it costs before and after the fix"


@dataclass(frozen=True, kw_only=True)
class Attached:
    """What a ticket brings along beside its own content.

    Attributes:
        ticket: The template of the ticket.
        remediation: The template of its Remediation block, if it has one.
        files: Templates by path, in which ``{verifier}`` and ``{fixes}`` are the usual places of the ticket.
        place: The location of a ticket that states none; its file may be such a path.
        checklist: The checklist of a ticket that states none.
        context: What these templates know beyond what a ticket's usually knows.
        mark: What is to be found in the ticket again; a comment has it where the template leaves it out.
    """

    ticket: str = TICKET
    remediation: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    place: Place | None = None
    checklist: tuple[str, ...] = (TO_MEASURE,)
    context: Mapping[str, object] = field(default_factory=dict)
    mark: str = ""


EXAMPLE = Attached(
    remediation="example.yaml.j2",
    files={
        "{verifier}": "verifier.py.j2",
        "{fixes}/found.py": "found.py.j2",
        "{fixes}/fix.py": "fix.py.j2",
    },
    place=Place(file="{fixes}/found.py", symbol="nan_flags()"),
    checklist=("One wait for the GPU instead of one per tensor, with the same result",),
)
"""A verifier and two variants that run, to be replaced by the code that the ticket speaks of."""


def ticket_files(
    register: Register, draft: Draft, ticket_id: str, path: str, today: date, attached: Attached | None
) -> dict[str, str]:
    """The text of every file by its path from the root; the ticket is at ``path`` and comes first.

    Raises:
        BadDataError: The ticket would not be understood when it is read again.
    """
    vocabulary = register.config.vocabulary
    usual = {"verifier": verifier_path(ticket_id), "fixes": fixes_folder(ticket_id)}
    context = {
        "draft": draft,
        "id": ticket_id,
        "today": today.isoformat(),
        "locations": _locations(draft, attached, usual),
        "categories": _categories(draft, vocabulary),
        "checklist": draft.checklist or (attached.checklist if attached else [TO_MEASURE]),
        "remediation": attached.remediation if attached else None,
        **usual,
        **(attached.context if attached else {}),
    }
    templates = {path: attached.ticket if attached else TICKET}
    for place, template in attached.files.items() if attached else ():
        templates[place.format(**usual)] = template
    own = register.root / register.config.templates
    texts = {name: render(template, context, own) for name, template in templates.items()}
    if attached and attached.mark not in texts[path]:
        texts[path] += f"\n<!-- {attached.mark} -->\n"
    _check(texts[path], path, draft, ticket_id, vocabulary)
    return texts


def _locations(draft: Draft, attached: Attached | None, usual: Mapping[str, str]) -> Sequence[Place]:
    if draft.locations or attached is None or attached.place is None:
        return draft.locations
    place = attached.place
    return [place.model_copy(update={"file": place.file.format(**usual)})]


def _categories(draft: Draft, vocabulary: Vocabulary) -> list[tuple[str, bool]]:
    """All categories of the register and whether the draft has them."""
    ticked = set()
    for name in draft.categories:
        word = word_for(name, vocabulary.categories)
        if word is None:
            raise BadDataError(f"unknown category {name}", hint=f"one of {', '.join(vocabulary.categories)}")
        ticked.add(word)
    return [(name, name in ticked) for name in vocabulary.categories]


def _check(text: str, path: str, draft: Draft, ticket_id: str, vocabulary: Vocabulary) -> None:
    """Refuse a ticket that reads back as something else than was asked for."""
    document, problems = read_document(text.encode(), path, vocabulary)
    for problem in problems:
        raise BadDataError(f"the ticket cannot be written: {problem.message}", hint=problem.hint)
    if not isinstance(document, Ticket) or document.id.value != ticket_id:
        raise BadDataError(f"the ticket cannot be written: it would not be read as {ticket_id}")
    if squeeze(document.title.value) != squeeze(draft.title):
        raise BadDataError(
            f"the title would be read as {document.title.value!r}", hint="write it without markup"
        )
