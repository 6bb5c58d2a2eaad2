"""A ticket from its bytes to a record and its problems, against what markdown-it-py takes to tokenise it.

markdown-it-py is set to what tickets need, CommonMark and tables. Tokenising is the first step of any reader
that is built on it; it does not tell yet what a ticket says. The claim is a ratio of at most 0.5 on generated
tickets; with files of a register, the same is measured on them, and nothing is claimed.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from generated import tickets
from markdown_it import MarkdownIt

from finding_tickets.markdown.reading import read_document
from finding_tickets.model.vocabulary import Vocabulary

BOUND = 0.5
TICKETS = 200


def seconds(read: Callable[[bytes], object], documents: list[bytes]) -> float:
    """Processor time of reading all documents once."""
    gc.collect()
    start = time.process_time()
    for document in documents:
        read(document)
    return time.process_time() - start


def main() -> int:
    """Interleave both, print medians and the median of their ratios; 1 where the bound is exceeded."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("files", nargs="*", type=Path, help="tickets to read instead of generated ones")
    given = parser.parse_args()
    documents = [file.read_bytes() for file in given.files] or [text.encode() for _, text in tickets(TICKETS)]
    markdown, words = MarkdownIt("commonmark").enable("table"), Vocabulary()
    readers: dict[str, Callable[[bytes], object]] = {
        "markdown-it-py, tokens": lambda document: markdown.parse(document.decode()),
        "finding-tickets, record": lambda document: read_document(document, "ticket.md", words),
    }
    times: list[list[float]] = [
        [seconds(read, documents) for read in readers.values()] for _ in range(1 + given.rounds)
    ][1:]
    print(f"{len(documents)} tickets of {median(map(len, documents)) / 1000:.1f} kB in the median")
    for name, taken in zip(readers, zip(*times, strict=True), strict=True):
        print(f"{name:24}{median(taken) / len(documents) * 1000:7.2f} ms a ticket")
    ratio = median(ours / theirs for theirs, ours in times)
    print(f"{'ratio':24}{ratio:7.2f}" + ("" if given.files else f" (at most {BOUND})"))
    return int(ratio > BOUND and not given.files)


if __name__ == "__main__":
    sys.exit(main())
