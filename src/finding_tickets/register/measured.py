"""What the machine has measured for a document of a register."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from finding_tickets.errors import BadDataError
from finding_tickets.register.config import Config

if TYPE_CHECKING:
    from finding_tickets.documents.reading import Document
    from finding_tickets.verify.evidence import Current


class Register(Protocol):
    """Whatever knows where a register is and how it is configured."""

    @property
    def root(self) -> Path:
        """The folder that paths are relative to."""

    @property
    def config(self) -> Config:
        """Its settings."""


def measured(register: Register, document: Document) -> Current | None:
    """The verdict that counts now; None in a register that holds no evidence at all.

    Raises:
        BadDataError: A file of evidence cannot be read.
    """
    folder = register.config.evidence
    if not (register.root / folder).is_dir():
        return None
    # Reading evidence takes the claims' grammar, which a register without any should not wait for.
    from finding_tickets.verify.evidence import current_verdict

    try:
        return current_verdict(document, register.root, folder)
    except OSError as error:
        raise BadDataError(f"cannot be read: {error.strerror}", file=str(error.filename)) from None
