"""Choosing entries by what they are: values of one filter are alternatives, filters add up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from finding_tickets.model.ticket import Ticket
from finding_tickets.model.verdict import Verdict
from finding_tickets.model.vocabulary import Severity, Status
from finding_tickets.report.entries import Entry


@dataclass(frozen=True)
class Query:
    """What an entry must be; an empty filter lets everything pass.

    ``domains`` also match what lies below them (``simic`` matches ``simic/telemetry``), ``categories`` also
    match a part of a ticked category. Domains, agents and categories ignore case.
    """

    severities: Sequence[Severity] = ()
    statuses: Sequence[Status] = ()
    verdicts: Sequence[Verdict] = ()
    domains: Sequence[str] = ()
    agents: Sequence[str] = ()
    categories: Sequence[str] = ()

    def matches(self, entry: Entry) -> bool:
        """Whether an entry passes every filter."""
        return (
            (not self.severities or entry.severity in self.severities)
            and (not self.statuses or entry.status in self.statuses)
            and (not self.verdicts or entry.verdict in self.verdicts)
            and _any(self.domains, domains(entry), _is_or_holds)
            and _any(self.agents, agents(entry), str.__eq__)
            and _any(self.categories, categories(entry), lambda part, whole: part in whole)
        )


def domains(entry: Entry) -> list[str]:
    """The parts of the code that a finding belongs to."""
    return [field.value for field in entry.document.domains] if isinstance(entry.document, Ticket) else []


def agents(entry: Entry) -> list[str]:
    """The agent that wrote a finding, as a list of one or none."""
    agent = entry.document.agent if isinstance(entry.document, Ticket) else None
    return [agent.value] if agent else []


def categories(entry: Entry) -> list[str]:
    """The ticked categories of a finding."""
    ticket = entry.document
    return [item.name for item in ticket.categories if item.ticked] if isinstance(ticket, Ticket) else []


def _is_or_holds(wanted: str, domain: str) -> bool:
    return domain == wanted or domain.startswith(f"{wanted}/")


def _any(wanted: Iterable[str], present: Iterable[str], match: Callable[[str, str], bool]) -> bool:
    """Whether any wanted word matches any that is present, in any case; nothing wanted is no obstacle."""
    words = [word.casefold() for word in wanted]
    return not words or any(match(word, item.casefold()) for item in present for word in words)
