"""What ``tickets new`` is to write: the content that options, answers on a terminal or JSON give."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from finding_tickets.cli.options import known
from finding_tickets.cli.output import ask, say
from finding_tickets.errors import BadDataError, UsageError
from finding_tickets.model.vocabulary import Words, word_for
from finding_tickets.register.draft import Draft, draft_of, read_drafts
from finding_tickets.register.load import Register

STDIN = "-"
REQUIRED = ("title", "severity")
QUESTIONS = {"title": "What is wrong", "severity": "Severity, P0 to P4", "summary": "In a sentence"}
LINES = re.compile(r":\d+(-\d+)?(,\d+(-\d+)?)*$")


def drafts(register: Register, options: Mapping[str, object], source: str | None) -> list[Draft]:
    """What to write: the content of the JSON in ``source`` (``-`` is standard input), else what options say.

    Raises:
        UsageError: A title or a severity is missing, or there are options beside a source.
        BadDataError: The content does not make a ticket.
    """
    if source is None:
        return [_draft(register, options)]
    if options:
        raise UsageError("--from states the whole content: leave out the options that state some of it")
    return read_drafts(_text(source), "standard input" if source == STDIN else source)


def places(files: Sequence[str], symbol: str | None) -> list[dict[str, object]]:
    """Locations in the form of a draft, from ``path.py:10-20,30``.

    Raises:
        UsageError: There is a symbol and no file that it is in.
    """
    if symbol and not files:
        raise UsageError("--symbol needs the --file that it is in")
    found: list[dict[str, object]] = []
    for file in files:
        path, _, lines = file.rpartition(":") if LINES.search(file) else (file, "", "")
        pairs = [tuple(map(int, span.split("-"))) for span in lines.split(",") if span]
        found.append({"file": path, "lines": [(pair[0], pair[-1]) for pair in pairs], "symbol": symbol})
    return found


def _text(source: str) -> str:
    try:
        return sys.stdin.read() if source == STDIN else Path(source).read_text(encoding="utf-8")
    except OSError as error:
        raise BadDataError(f"cannot be read: {error.strerror or error}", file=source) from None
    except UnicodeDecodeError as error:
        raise BadDataError(f"cannot be read: {error}", file=source) from None


def _draft(register: Register, options: Mapping[str, object]) -> Draft:
    words = register.config.vocabulary
    missing = [name for name in REQUIRED if name not in options]
    content = _asked(options, words.severities) if missing and sys.stdin.isatty() else options
    for name in missing:
        if name not in content:
            raise UsageError(f"a ticket needs --{name}", hint="on a terminal, tickets new asks for it")
    (severity,) = known("severity", [str(content["severity"])], words.severities)
    try:
        return draft_of({**content, "severity": severity}, "options")
    except BadDataError as error:
        # What is wrong was typed on the command line, and stands in no file.
        raise UsageError(error.message) from None


def _asked(options: Mapping[str, object], severities: Words) -> dict[str, object]:
    """The options with answers to the questions that they leave open; an empty answer is none."""
    answers = {name: _answer(name, severities) for name in QUESTIONS if name not in options}
    return {**options, **{name: answer for name, answer in answers.items() if answer}}


def _answer(name: str, severities: Words) -> str:
    """The answer to one question, which is asked again until it can be used."""
    while True:
        answer = ask(QUESTIONS[name])
        if name == "severity" and answer and word_for(answer, severities) is None:
            say(f"{answer}: no such severity (one of {', '.join(severities)})")
        elif answer or name not in REQUIRED:
            return answer
