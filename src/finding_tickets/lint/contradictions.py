"""What single rules say of one document, as reports ask: above all, where it contradicts itself.

What parses and checks is imported only when a document has to be read, which an index often spares.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from finding_tickets.documents.reading import Document
    from finding_tickets.documents.source import Source
    from finding_tickets.model.ticket import Problem
    from finding_tickets.model.vocabulary import Vocabulary
    from finding_tickets.register.load import Register

CONTRADICTIONS = ("contradiction", "folder", "severity-changed", "done-but-open", "contrary-reviews")
"""The rules that compare what one document says in several places, and look at nothing else."""


def contradictions_in(
    document: Document, data: bytes, vocabulary: Vocabulary
) -> tuple[tuple[Problem, ...], tuple[str, ...]]:
    """Where a document of these bytes contradicts itself, and the rules that it has lint ignore."""
    from finding_tickets.documents.source import Source
    from finding_tickets.documents.suppression import ignored_rules
    from finding_tickets.register.config import Config
    from finding_tickets.register.load import Register

    alone = Register(Path(), Config(vocabulary=vocabulary), (document,), ())
    source = Source(document.path, data, vocabulary)
    return tuple(problems_of(source, document, alone, *CONTRADICTIONS)), ignored_rules(data)


def problems_of(source: Source, document: Document, register: Register, *rules: str) -> list[Problem]:
    """What these rules say of a document of ``register``, which has all that they look at."""
    from finding_tickets.lint.engine import examine
    from finding_tickets.lint.rules import RULES, Context

    found = examine(source, document, (), Context(register), [RULES[name] for name in rules])
    return [breach.problem for breach in found if breach.problem.rule in rules]
