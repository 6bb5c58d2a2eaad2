"""Tables in which somebody checked claims: ``Claim | Status | Evidence``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from finding_tickets.documents.inline import plain
from finding_tickets.documents.parts import Part
from finding_tickets.documents.tables import table_of
from finding_tickets.model.ticket import CheckedClaim

_CLAIM = re.compile(r".*\b(?:claim|assertion|premise)s?\b.*")
_STATUS = re.compile(
    r"status|verdict|result|assessment|accura\w+|correct\??|true\??|verified\??|valid\??|holds\??"
)
_EVIDENCE = re.compile(
    r"(?:.* )?(?:evidence|reality|actual\w*|proof|notes?|details?|finding|code|explanation)"
)
_OPEN = re.compile(r"\W*(?:partial\w*|partly|mixed|mostly|unclear|unverified|misleading|n/a)\b|\u26a0")
_FALSE = re.compile(
    r"[\u274c\u2716\u2717\u2718]|\b(?:false|incorrect|wrong|inaccurate|refuted|invalid|outdated|untrue|no)\b"
    r"|\bnot (?:true|accurate|correct|valid|confirmed|verified)\b"
)
_TRUE = re.compile(r"[\u2705\u2713\u2714]|\b(?:true|correct|confirmed|verified|valid|accurate|yes|proven)\b")


def read_checked_claims(parts: Iterable[Part]) -> Iterator[CheckedClaim]:
    """The rows of every table with a column of claims and one that says what came of them."""
    for part in parts:
        for block in (each for each in part.blocks if each.kind == "Table"):
            table = table_of(part.source, block)
            titles = table.titles
            claim = _pick(titles, _CLAIM)
            if claim is None:
                continue
            status = _pick([title for title in titles if title != claim], _STATUS)
            evidence = _pick([title for title in titles if title not in (claim, status)], _EVIDENCE)
            if status is None and evidence is None:
                continue
            for row in table.records:
                first, last = row[titles[0]], row[titles[-1]]
                text = part.source.text(first.span.start, last.span.end)
                found = plain(row[status].raw) if status else ""
                yield CheckedClaim(
                    raw=text.raw,
                    span=text.span,
                    claim=plain(row[claim].raw),
                    status=found,
                    holds=_holds(found.lower()),
                    evidence=plain(row[evidence].raw) if evidence else "",
                )


def _pick(titles: Sequence[str], pattern: re.Pattern[str]) -> str | None:
    return next((title for title in titles if pattern.fullmatch(title)), None)


def _holds(status: str) -> bool | None:
    if _OPEN.match(status):
        return None
    if _FALSE.search(status):
        return False
    return True if _TRUE.search(status) else None
