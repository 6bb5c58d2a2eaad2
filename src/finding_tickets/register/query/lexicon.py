"""The words that a query may use: those of the vocabulary, and those that stand in the register."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cached_property
from itertools import chain

from finding_tickets.model.vocabulary import Vocabulary, Words, word_for
from finding_tickets.register.query.facts import Facts
from finding_tickets.register.row import Row


def _today() -> date:
    return datetime.now().astimezone().date()


@dataclass(frozen=True)
class Lexicon:
    """What the words of a query can mean in one register, on one day."""

    facts: Facts
    today: date = field(default_factory=_today)

    @property
    def vocabulary(self) -> Vocabulary:
        """The words that the register has chosen."""
        return self.facts.config.vocabulary

    @property
    def rows(self) -> Sequence[Row]:
        """Every document."""
        return self.facts.rows

    @cached_property
    def ids(self) -> dict[str, str]:
        """The IDs of all documents by their lower case."""
        return {row.id.casefold(): row.id for row in self.rows}

    @cached_property
    def paths(self) -> dict[str, str]:
        """The IDs of all documents by their paths from the root."""
        return {row.path: row.id for row in self.rows}

    @cached_property
    def named(self) -> dict[str, str]:
        """The IDs that relations name, whether there are such documents or not, by their lower case."""
        return {other.casefold(): other for row in self.rows for other, _ in row.related}

    @cached_property
    def agents(self) -> Words:
        """The agents that the vocabulary knows, and who else found or reviewed something."""
        people = ((row.agent, *(reviewer for reviewer, _ in row.reviews)) for row in self.rows)
        return _with(self.vocabulary.known_agents, chain.from_iterable(people))

    @cached_property
    def opinions(self) -> Words:
        """The vocabulary's opinions, and what else reviewers said."""
        return _with(self.vocabulary.opinions, (said for row in self.rows for _, said in row.reviews))

    @cached_property
    def categories(self) -> Words:
        """The vocabulary's categories, and what else is ticked."""
        return _with(self.vocabulary.categories, chain.from_iterable(row.categories for row in self.rows))

    @cached_property
    def domains(self) -> Words:
        """The vocabulary's domains, and those of documents."""
        return _with(self.vocabulary.domains, chain.from_iterable(row.domains for row in self.rows))

    def is_id(self, word: str) -> bool:
        """Whether a word of a query means a document: one has it as its ID, or it has the form of one."""
        return word.casefold() in self.ids or bool(
            re.fullmatch(self.vocabulary.id_pattern, word, re.IGNORECASE)
        )

    def agent(self, name: str) -> str:
        """The register's word for a person or agent, else the name itself."""
        word = word_for(name, self.vocabulary.known_agents)
        if word is None:
            # Most names are words; the reader of Markdown is loaded for the others.
            from finding_tickets.documents.reviewers import reviewer_word

            word = reviewer_word(name, self.vocabulary)
        return word or name


def _with(words: Words, seen: Iterable[str | None]) -> Words:
    return {**dict.fromkeys((word for word in seen if word), ()), **words}
