"""What lint has to say, for tests that are about problems alone."""

from __future__ import annotations

from collections.abc import Collection

from finding_tickets.documents.reading import Document
from finding_tickets.lint.engine import breaches
from finding_tickets.model.ticket import Problem
from finding_tickets.register.load import Register


def lint(register: Register, documents: Collection[Document] | None = None) -> tuple[Problem, ...]:
    """The problems of a register or of some of its documents, by file and line."""
    return tuple(breach.problem for breach in breaches(register, documents))
