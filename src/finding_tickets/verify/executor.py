"""Where verifications are made: on this machine, or wherever else something verifies documents this way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from finding_tickets.documents.reading import Document
from finding_tickets.measure.isolation import Isolation
from finding_tickets.verify.session import Settings, Verified, verify


class Executor(Protocol):
    """Verifies documents; one that cannot be measured ends inconclusive and leaves the others alone."""

    def verify(
        self, documents: Sequence[Document], settings: Settings, on_start: Callable[[Document], None]
    ) -> Iterator[Verified]:
        """Every document once, with its evidence recorded; ``on_start`` is told of those that begin."""

    def together(self, settings: Settings) -> AbstractContextManager[object]:
        """A block in which what several calls of ``verify`` have in common is made ready once."""


@dataclass(frozen=True)
class Local:
    """This machine: a process for each processor, and for real runs a GPU each."""

    isolation: Isolation

    def verify(
        self, documents: Sequence[Document], settings: Settings, on_start: Callable[[Document], None]
    ) -> Iterator[Verified]:
        """Every document as soon as it is done."""
        interpreter = settings.cell.interpreter if settings.cell else ""
        return verify(documents, self.isolation.on(interpreter), settings, on_start)

    def together(self, settings: Settings) -> AbstractContextManager[object]:  # noqa: ARG002 - the protocol's
        """Nothing: the servers last as long as that of the tool's own Python."""
        return nullcontext()
