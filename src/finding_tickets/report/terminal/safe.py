"""What is shown on a terminal, kept from steering it."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment

from finding_tickets.report.printable import printable


class Safe:
    """A renderable of which only text and style reach the terminal, whatever text it is made of."""

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Each piece of text as it may be printed; what steers the terminal is left out."""
        for segment in console.render(self._renderable, options):
            if not segment.control:
                yield Segment(printable(segment.text), segment.style)
