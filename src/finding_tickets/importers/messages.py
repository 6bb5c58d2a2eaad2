"""The text of a message: its gaps filled, its links to places resolved."""

from __future__ import annotations

import re
from collections.abc import Collection

from finding_tickets.importers.rules import Rules
from finding_tickets.importers.sarif import Message, Result

_GAP = re.compile(r"\{(?:(?P<number>\d+)\}|\{)|\}\}")
_LINK = re.compile(r"(?<!\\)\[(?P<text>(?:\\[\\\[\]]|[^\\\[\]])*)\]\((?P<place>\d+)\)")
_ESCAPE = re.compile(r"\\([\\\[\]])")


def text_of(message: Message | None, result: Result, rules: Rules) -> str:
    """What a message of a result says; empty where it says nothing."""
    if message is None:
        return ""
    taken = rules.text(result, message.id) if message.id else None
    text = message.text or taken or message.markdown or ""
    # A text that nothing is filled into may well have braces of its own.
    if message.arguments or (taken and not message.text):
        text = _filled(text, message.arguments or [])
    return _unlinked(text, {place.id for place in result.related_locations or () if place.id is not None})


def _filled(text: str, arguments: list[str]) -> str:
    def value(gap: re.Match[str]) -> str:
        if gap["number"] is None:
            return gap[0][0]
        number = int(gap["number"])
        return arguments[number] if number < len(arguments) else gap[0]

    return _GAP.sub(value, text)


def _unlinked(text: str, places: Collection[int]) -> str:
    """``[text](1)`` is the text, where 1 is a related place: ``array[0](1)`` is code otherwise."""

    def bare(link: re.Match[str]) -> str:
        return _ESCAPE.sub(r"\1", link["text"]) if int(link["place"]) in places else link[0]

    return _LINK.sub(bare, text) if places else text
