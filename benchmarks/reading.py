"""A ticket from its bytes to a validated record, against what markdown-it-py takes to tokenise it.

markdown-it-py is set to what tickets need, CommonMark and tables. Tokenising is the first step of any reader
that is built on it; it does not tell yet what a ticket says. The claim is a ratio of at most 0.6 on generated
tickets; with files of a register, the same is measured on them, and nothing is claimed.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

from markdown_it import MarkdownIt

from benchmarks.command import parser, show
from benchmarks.generated import tickets
from benchmarks.result import Bound, Number, Result, Size
from finding_tickets.documents.reading import read_document
from finding_tickets.model.vocabulary import Vocabulary

BOUND = Bound(0.6)
TICKETS = {Size.FULL: 200, Size.QUICK: 50, Size.LEAST: 2}
ROUNDS = {Size.FULL: 15, Size.QUICK: 5, Size.LEAST: 1}


def seconds(read: Callable[[bytes], object], documents: Sequence[bytes]) -> float:
    """Processor time of reading all documents once."""
    gc.collect()
    start = time.process_time()
    for document in documents:
        read(document)
    return time.process_time() - start


def measure(size: Size) -> Iterator[Result]:
    """Generated tickets."""
    yield compare([text.encode() for _, text in tickets(TICKETS[size])], ROUNDS[size], BOUND)


def compare(documents: Sequence[bytes], rounds: int, bound: Bound | None = None) -> Result:
    """Both readers, interleaved, after one round that warms up."""
    markdown, words = MarkdownIt("commonmark").enable("table"), Vocabulary()
    readers: tuple[Callable[[bytes], object], ...] = (
        lambda document: markdown.parse(document.decode()),
        lambda document: read_document(document, "ticket.md", words),
    )
    times = [[seconds(read, documents) for read in readers] for _ in range(1 + rounds)][1:]
    theirs, ours = (median(taken) / len(documents) * 1e3 for taken in zip(*times, strict=True))
    return Result(
        name="reading",
        what="a ticket to a record / to tokens by markdown-it-py",
        value=median(ours / theirs for theirs, ours in times),
        bound=bound,
        beside=(
            Number("a record", ours, "ms a ticket"),
            Number("tokens", theirs, "ms a ticket"),
            Number("median of the tickets", median(map(len, documents)) / 1e3, "kB"),
        ),
    )


def main() -> int:
    """Measure generated tickets, or files that are given."""
    options = parser(__doc__)
    options.add_argument("files", nargs="*", type=Path, help="tickets to read instead of generated ones")
    given = options.parse_args()
    documents = [file.read_bytes() for file in given.files]
    return show([compare(documents, ROUNDS[given.size])] if documents else measure(given.size), given)


if __name__ == "__main__":
    sys.exit(main())
