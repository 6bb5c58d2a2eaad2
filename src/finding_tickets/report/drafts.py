"""The files of a new ticket: the ticket and, if wanted, a verifier and two variants that run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from finding_tickets.errors import BadDataError
from finding_tickets.markdown.reading import read_document
from finding_tickets.model.ticket import Ticket
from finding_tickets.model.vocabulary import Vocabulary, squeeze, word_for
from finding_tickets.register.convention import fixes_folder, verifier_path
from finding_tickets.register.draft import Draft, Place
from finding_tickets.register.load import Register
from finding_tickets.report.templates import render

TO_MEASURE = "Measure what it costs before and after the fix"
TO_VERIFY = "One wait for the GPU instead of one per tensor, with the same result"
EXAMPLE = "nan_flags()"


def ticket_files(
    register: Register, draft: Draft, ticket_id: str, path: str, today: date, with_verifier: bool
) -> dict[str, str]:
    """The text of every file by its path from the root; the ticket is at ``path`` and comes first.

    Raises:
        BadDataError: The ticket would not be understood when it is read again.
    """
    vocabulary = register.config.vocabulary
    context = {
        "draft": draft,
        "id": ticket_id,
        "today": today.isoformat(),
        "locations": _locations(draft, ticket_id, with_verifier),
        "categories": _categories(draft, vocabulary),
        "checklist": draft.checklist or ([TO_VERIFY] if with_verifier else [TO_MEASURE]),
        "with_verifier": with_verifier,
        "verifier": verifier_path(ticket_id),
        "fixes": fixes_folder(ticket_id),
    }
    templates = {path: "ticket.md.j2"}
    if with_verifier:
        templates[verifier_path(ticket_id)] = "verifier.py.j2"
        templates |= {f"{fixes_folder(ticket_id)}/{name}.py": f"{name}.py.j2" for name in ("found", "fix")}
    own = register.root / register.config.templates
    texts = {name: render(template, context, own) for name, template in templates.items()}
    _check(texts[path], path, draft, ticket_id, vocabulary)
    return texts


def _locations(draft: Draft, ticket_id: str, with_verifier: bool) -> Sequence[Place]:
    if draft.locations or not with_verifier:
        return draft.locations
    return [Place(file=f"{fixes_folder(ticket_id)}/found.py", symbol=EXAMPLE)]


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
