"""What makes a result the same one in another log, although lines have moved since."""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

MARK = "sarif:"
_DIGITS = 32
_NUMBER = re.compile(r"(?<![\w.])\d++(?![\w.]*\w)")


class Identity(NamedTuple):
    """What a result has in common with itself elsewhere; ``at`` is the line and the column it has here."""

    parts: tuple[object, ...]
    at: tuple[int, int]


class Traits(NamedTuple):
    """What may tell a result from others; ``path`` is that of its file, ``code`` the text there."""

    tool: str
    rule: str
    path: str
    symbol: str
    text: str
    code: str


def parts_of(
    traits: Traits, whole: Mapping[str, str] | None, partial: Mapping[str, str] | None
) -> tuple[object, ...]:
    """What is the same in every log, by the best that the tool says.

    ``whole`` are fingerprints that stand for the result wherever it is, ``partial`` those that need the file
    beside them. Without any: rule, file, symbol, text and code; numbers in the text may count lines, and are
    left out.
    """
    if own := _usable(whole):
        return traits.tool, traits.rule, own
    if own := _usable(partial):
        return traits.tool, traits.rule, traits.path, own
    text, code = _NUMBER.sub("#", traits.text), traits.code
    return (
        traits.tool,
        traits.rule,
        traits.path,
        traits.symbol,
        " ".join(text.split()),
        " ".join(code.split()),
    )


def fingerprints(identities: Iterable[Identity]) -> list[str]:
    """A fingerprint for each result of a run.

    Where several have all parts in common, their order in the file tells them apart, not that in the log.
    """
    each = list(identities)
    places = defaultdict[tuple[object, ...], set[tuple[int, int]]](set)
    for identity in each:
        places[identity.parts].add(identity.at)
    ranks = {(parts, at): rank for parts, all_at in places.items() for rank, at in enumerate(sorted(all_at))}
    return [_digest(*identity.parts, ranks[identity]) for identity in each]


def _usable(stated: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    """The fingerprints of a tool; what has spaces is a sentence, such as one that asks the user to log in."""
    pairs = ((name, value) for name, value in (stated or {}).items() if value and not re.search(r"\s", value))
    return tuple(sorted(pairs))


def _digest(*parts: object) -> str:
    text = json.dumps(parts, ensure_ascii=True)
    return MARK + hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
