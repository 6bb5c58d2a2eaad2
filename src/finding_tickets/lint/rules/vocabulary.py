"""Rules about the words of a register: those it chooses for itself, and how all of them are spelt."""

from __future__ import annotations

from collections.abc import Iterator

from finding_tickets.claims.expressions import suggest
from finding_tickets.documents.inline import plain
from finding_tickets.documents.reading import Document
from finding_tickets.documents.splice import Splice
from finding_tickets.lint.rules.context import Context
from finding_tickets.lint.rules.rule import Remark, rule
from finding_tickets.model.problem import Level
from finding_tickets.model.record import Text
from finding_tickets.model.ticket import Ticket
from finding_tickets.model.vocabulary import Words, squeeze, word_for


@rule(
    "unknown-agent",
    Level.WARNING,
    "Where the configuration names the agents of the register, one of them found the finding, so that a "
    "filter by agent finds all of its tickets.",
    wrong={"tickets.toml": 'agents = ["security"]', "tickets/B1-PT-01.md": "| **Agent** | `secrutiy` |"},
    right={"tickets.toml": 'agents = ["security"]', "tickets/B1-PT-01.md": "| **Agent** | `security` |"},
)
def unknown_agent(document: Document, context: Context) -> Iterator[Remark]:
    """Agents that the configuration does not name; without any there, every agent will do."""
    if isinstance(document, Ticket) and document.agent and context.vocabulary.agents:
        agent = document.agent
        yield from _unknown("agent", agent.value, agent, context.vocabulary.agents)


@rule(
    "unknown-domain",
    Level.WARNING,
    "Where the configuration names the domains of the register, a finding is in one of them.",
    wrong={"tickets.toml": 'domains = ["training"]', "tickets/B1-PT-01.md": "| **Domain** | `trianing` |"},
    right={"tickets.toml": 'domains = ["training"]', "tickets/B1-PT-01.md": "| **Domain** | `training` |"},
)
def unknown_domain(document: Document, context: Context) -> Iterator[Remark]:
    """Domains that the configuration does not name; without any there, every domain will do."""
    if isinstance(document, Ticket) and context.vocabulary.domains:
        for domain in document.domains:
            yield from _unknown("domain", domain.value, domain, context.vocabulary.domains)


@rule(
    "unknown-category",
    Level.WARNING,
    "A ticked category is one of the register's, so that tickets can be counted by it.",
    wrong="## Summary\n\n**One-line summary:** It waits.\n\n- [x] Preformance bottleneck",
    right="## Summary\n\n**One-line summary:** It waits.\n\n- [x] Performance bottleneck",
)
def unknown_category(document: Document, context: Context) -> Iterator[Remark]:
    """Ticked categories that the configuration does not name."""
    if isinstance(document, Ticket):
        for category in document.categories:
            if category.ticked:
                yield from _unknown("category", category.name, category, context.vocabulary.categories)


@rule(
    "spelling",
    Level.NOTE,
    "Severity and status are written with the letters of the vocabulary, so that a search finds them all.",
    wrong="| **Severity** | `p2` |\n| **Status** | `Won't fix` |",
    right="| **Severity** | `P2` |\n| **Status** | `wont-fix` |",
    mends=True,
)
def spelling(document: Document, context: Context) -> Iterator[Remark]:
    """Words of the vocabulary, standing alone, in other letters; a synonym such as `triaged` says more."""
    if not isinstance(document, Ticket):
        return
    for field in (document.severity, document.status):
        if field is None or field.value is None:
            continue
        written = plain(field.raw)
        if written != field.value and squeeze(written) == squeeze(field.value) and written in field.raw:
            start = field.span.start + len(field.raw[: field.raw.index(written)].encode())
            fix = Splice(start, start + len(written.encode()), field.value.encode())
            yield Remark(field.span, f"{written} is a spelling of {field.value}", fix=[fix])


def _unknown(what: str, word: str, place: Text, words: Words) -> Iterator[Remark]:
    if word_for(word, words) is None:
        hint = f"{suggest(word, list(words))}; the configuration may name others"
        yield Remark(place.span, f"{word!r} is no {what} of this register", hint)
