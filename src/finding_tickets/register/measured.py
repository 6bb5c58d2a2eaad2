"""What the machine has measured for a document of a register."""

from __future__ import annotations

from typing import TYPE_CHECKING

from finding_tickets.markdown.reading import Document
from finding_tickets.register.load import Register

if TYPE_CHECKING:
    from finding_tickets.verify.evidence import Current


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

    return current_verdict(document, register.root, folder)
