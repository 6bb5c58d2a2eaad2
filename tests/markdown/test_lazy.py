"""Attributes that are computed when they are first asked for, and what reading leaves behind."""

from __future__ import annotations

import gc

from tests.markdown.mutations import SEEDS

from finding_tickets.documents.lazy import lazy
from finding_tickets.documents.reading import read_document


class Counted:
    """Counts how often its attribute is computed."""

    def __init__(self) -> None:
        self.asked = 0

    @lazy
    def total(self) -> int:
        """How often it was computed."""
        self.asked += 1
        return self.asked


def test_an_attribute_is_computed_once_for_each_object() -> None:
    """Asking again gives the same value, without computing it; another object has its own."""
    one, other = Counted(), Counted()
    assert (1, 1, 1) == (one.total, one.total, other.total)
    assert (1, 1) == (one.asked, other.asked)
    assert "How often it was computed." == Counted.total.__doc__


def test_reading_leaves_no_cycles() -> None:
    """What is kept while a document is read goes with it at once, and does not wait for the collector."""
    gc.collect()
    gc.disable()
    try:
        for data in SEEDS:
            read_document(data, "A-1.md")
        # The parser of YAML may leave cycles of its own.
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        left = {type(each).__module__ for each in gc.garbage}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert [] == [name for name in left if name.startswith("finding_tickets")]
