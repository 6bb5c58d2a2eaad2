"""Text in a cell of a spreadsheet: what it says, and never a formula."""

from __future__ import annotations

import re

from finding_tickets.report.printable import printable

_FORMULA = re.compile("^(?=[=+\\-@\uff0b\uff0d\uff1d\uff20])")
# Where a semicolon separates cells, as it does for half of Europe, what follows one begins a cell.
_LATER_FORMULA = re.compile("(?<=;)(?=[\"'\\s]*[=+\\-@\uff0b\uff0d\uff1d\uff20])")
DEFUSED = "'"
LONGEST = 32_767
"""Characters that spreadsheets take in a cell; some put what follows into the next cells."""


def cell(value: object) -> str:
    """A value on one line; where it would be a formula, an apostrophe in front makes it text.

    A longer one than spreadsheets take is cut.
    """
    text = "" if value is None else " ".join(printable(str(value)).split())
    text = _LATER_FORMULA.sub(DEFUSED, _FORMULA.sub(DEFUSED, text))
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "\u2026"
