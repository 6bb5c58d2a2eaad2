"""The pytest plugin of finding-tickets: with ``--tickets`` each document that has a verifier is a test.

pytest imports this module in every run, so everything else is imported once it is asked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from finding_tickets.documents.reading import Document
    from finding_tickets.errors import BadDataError
    from finding_tickets.measure.processes.isolation import Isolation
    from finding_tickets.verify.verify import Settings

pytest_plugins = ["pytest_budget"]


class NotAsExpectedError(Exception):
    """What came of a ticket that fails, in words."""


class TicketFile(pytest.File):
    """The file of one document."""

    def collect(self) -> Iterator[TicketItem]:
        """Nothing: its item is made with it."""
        return iter(())


class TicketItem(pytest.Item):
    """The verification of one document."""

    def __init__(
        self,
        *,
        document: Document,
        broken: BadDataError | None,
        isolation: Isolation,
        settings: Settings,
        **more: Any,
    ) -> None:
        super().__init__(**more)
        self._document, self._broken = document, broken
        self._isolation, self._settings = isolation, settings

    def runtest(self) -> None:
        """Measure it; fail where a claim comes out otherwise than expected, or nothing is known."""
        from finding_tickets.report.text import plainly
        from finding_tickets.report.verification import verification_lines
        from finding_tickets.verify.verify import verify

        if self._broken:
            raise NotAsExpectedError(str(self._broken))
        (verified,) = verify([self._document], self._isolation, self._settings)
        if verified.error or verified.verification is None:
            raise NotAsExpectedError(str(verified.error))
        if not verified.verification.is_settled:
            # What is needed to act.
            lines = verification_lines(verified.verification, plainly, is_brief=True)
            raise NotAsExpectedError("\n".join(lines))

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None
    ) -> str | Any:  # the terminal's own representation has no public type
        """The words alone, for what failed is no line of Python."""
        if isinstance(excinfo.value, NotAsExpectedError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[os.PathLike[str], int | None, str]:
        """The file and the line (from 0) of the Remediation section."""
        remediation = self._document.remediation
        return self.path, remediation.span.line - 1 if remediation else None, self.name


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("tickets", "finding tickets that are measured")
    group.addoption(
        "--tickets",
        action="store_true",
        help="measure each ticket that has a verifier, as a test",
    )
    group.addoption(
        "--tickets-root",
        metavar="FOLDER",
        help="the register, by default that of pytest's rootdir",
    )
    group.addoption(
        "--tickets-meter",
        choices=("auto", "simulated", "cuda"),
        help="what counts, by default what is configured: a real GPU where one is usable is auto",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add an item for each document that has a verifier, before any are chosen by ``-k``."""
    if config.getoption("tickets"):
        items += _items(session, config)


def _items(session: pytest.Session, config: pytest.Config) -> Iterator[TicketItem]:
    from finding_tickets.errors import TicketsError
    from finding_tickets.measure.processes.isolation import Isolation
    from finding_tickets.register.config import find_root
    from finding_tickets.register.load import load
    from finding_tickets.verify.plan import verifier_of
    from finding_tickets.verify.verify import Settings

    chosen = config.getoption("tickets_root")
    try:
        register = load(Path(chosen) if chosen else find_root(config.rootpath))
    except TicketsError as error:
        raise pytest.UsageError(f"--tickets: {error}") from None
    started = Isolation(at_once=False)
    isolation = started.__enter__()
    config.add_cleanup(lambda: started.__exit__(None, None, None))
    settings = Settings(
        root=register.root,
        evidence=register.config.evidence,
        meter=config.getoption("tickets_meter") or register.config.meter,
        timeout=register.config.timeout,
        memory=register.config.memory,
        record=False,
    )
    for document in register.documents:
        if verifier_of(document, register.root):
            file = TicketFile.from_parent(session, path=register.root / document.path)
            yield TicketItem.from_parent(
                file,
                name=document.id.value,
                document=document,
                broken=register.remediation_error(document),
                isolation=isolation,
                settings=settings,
            )
