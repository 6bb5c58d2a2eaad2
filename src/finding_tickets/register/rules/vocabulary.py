"""Rules about words that a register chooses for itself: agents, domains and categories."""

from __future__ import annotations

from collections.abc import Iterator

from finding_tickets.markdown.reading import Document
from finding_tickets.model.problem import Level
from finding_tickets.model.ticket import Ticket
from finding_tickets.model.vocabulary import Words, word_for
from finding_tickets.register.rules.context import Context
from finding_tickets.register.rules.rule import Remark, rule
from finding_tickets.verify.expressions import suggest


@rule(
    "unknown-agent",
    Level.WARNING,
    "The agent of a finding is one of the register's, so that a filter by agent finds all of its tickets.",
    example="**Agent** `pytroch`",
)
def unknown_agent(document: Document, context: Context) -> Iterator[Remark]:
    """Agents that the configuration does not name."""
    if isinstance(document, Ticket) and document.agent:
        line = document.agent.span.line
        yield from _unknown("agent", document.agent.value, line, context.vocabulary.agents)


@rule(
    "unknown-domain",
    Level.WARNING,
    "Where the configuration names the domains of the register, a finding is in one of them.",
    example='domains = ["training"] and **Domain** `trianing`',
)
def unknown_domain(document: Document, context: Context) -> Iterator[Remark]:
    """Domains that the configuration does not name; without any there, every domain will do."""
    if isinstance(document, Ticket) and context.vocabulary.domains:
        for domain in document.domains:
            yield from _unknown("domain", domain.value, domain.span.line, context.vocabulary.domains)


@rule(
    "unknown-category",
    Level.WARNING,
    "A ticked category is one of the register's, so that tickets can be counted by it.",
    example="- [x] Preformance bottleneck",
)
def unknown_category(document: Document, context: Context) -> Iterator[Remark]:
    """Ticked categories that the configuration does not name."""
    if isinstance(document, Ticket):
        for category in document.categories:
            if category.ticked:
                yield from _unknown(
                    "category", category.name, category.span.line, context.vocabulary.categories
                )


def _unknown(what: str, word: str, line: int, words: Words) -> Iterator[Remark]:
    if word_for(word, words) is None:
        yield Remark(line, f"{word!r} is no {what} of this register", suggest(word, list(words)))
