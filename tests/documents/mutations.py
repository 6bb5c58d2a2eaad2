"""Broken documents, made from sound ones: each has a number, from which it can be made again."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from random import Random

ROOT = Path(__file__).parents[2]
FILES = [*ROOT.glob("tickets/**/*.md"), *ROOT.glob("tests/contract/data/forms/*.md")]
SEEDS = [file.read_bytes() for file in sorted(FILES)]
"""Findings and a review, with measurements, in several dialects."""

_WORDS = (
    b"Severity;Status;Ticket ID;Verdict;Resolution;Location;Cross-Review;Domain;P0;fixed;OBJECT;duplicate"
    b";None.;N/A;A-1;B1-PT-02;~50;10-5;L3;999999999999999999999999999999;1e999;-0;a.py:1-2,3;/abs/a.py;../up"
    b";(;&a *a;!!x"
)
WORDS = _WORDS.split(b";")
_MARKUP = (
    rb"|;\|;`;``;**;*;_;~~;[;](;<!--;-->;<b>;&#0;\;# ;###### ;=====;---;- ;- [x] ;1. ;> ;    "
    b";\t;```;~~~;````;|---|---|;|:-:;: ;{;};[[;- - - ;[a]: b;**Verdict:** ;**x:**"
)
MARKUP = _MARKUP.split(b";")
_ODD: list[str | bytes] = [
    *b"\0;\xff;\xc3;\xed\xa0\x80;\xc0\xaf;\xef\xbb\xbf;\x1b[0m;\x0b;\x0c;\x85".split(b";"),
    *"\u2028\u0085\u00a0\u200d\u202e\u0130\u00df\u00b2\u0663\uff21\u2013\U0001f525\ufeff\u3000\ufb01",
]
ODD = [each.encode() if isinstance(each, str) else each for each in [*_ODD, "e\u0301"]]
CONFLICT = (b"<<<<<<< HEAD\n", b"=======\n", b">>>>>>> other\n")

Mutation = Callable[[Random, bytes], bytes]


def document(number: int) -> bytes:
    """The broken document of this number."""
    chance = Random(number)  # noqa: S311 - reproducible, not secret
    data = chance.choice(SEEDS)
    for _ in range(chance.choice((1, 1, 2, 2, 3, 5))):
        data = chance.choice(MUTATIONS)(chance, data)
    return data


def _spot(chance: Random, data: bytes) -> int:
    return chance.randrange(len(data) + 1)


def _at(data: bytes, start: int, end: int, new: bytes) -> bytes:
    return data[:start] + new + data[end:]


def _lines(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True) or [b""]


def _blocks(data: bytes) -> list[bytes]:
    return re.split(rb"(?<=\n)(?=\n)", data)


def change_bytes(chance: Random, data: bytes) -> bytes:
    """Another byte in the place of one."""
    at = _spot(chance, data)
    return _at(data, at, at + 1, bytes([chance.randrange(256)]))


def cut_bytes(chance: Random, data: bytes) -> bytes:
    """Some bytes less, anywhere: at times the better part of the file."""
    at = _spot(chance, data)
    return _at(data, at, at + chance.choice((1, 2, 5, 30, 300)), b"")


def truncate(chance: Random, data: bytes) -> bytes:
    """A file whose end was never written."""
    return data[: _spot(chance, data)]


def insert_word(chance: Random, data: bytes) -> bytes:
    """A word of the dialect where it does not belong."""
    at = _spot(chance, data)
    return _at(data, at, at, chance.choice(WORDS))


def replace_word(chance: Random, data: bytes) -> bytes:
    """One word in the place of another."""
    words = list(re.finditer(rb"[\w.-]+", data))
    if not words:
        return data
    word = chance.choice(words)
    return _at(data, *word.span(), chance.choice(WORDS + ODD))


def insert_markup(chance: Random, data: bytes) -> bytes:
    """Markup that opens, closes or means nothing here."""
    at = _spot(chance, data)
    return _at(data, at, at, chance.choice(MARKUP))


def insert_odd(chance: Random, data: bytes) -> bytes:
    """Bytes that are no text, or characters that are seldom thought of."""
    at = _spot(chance, data)
    return _at(data, at, at, chance.choice(ODD))


def swap_lines(chance: Random, data: bytes) -> bytes:
    """Two lines, each in the place of the other."""
    return _swapped(chance, _lines(data))


def swap_blocks(chance: Random, data: bytes) -> bytes:
    """Two blocks, each in the place of the other."""
    return _swapped(chance, _blocks(data))


def _swapped(chance: Random, pieces: list[bytes]) -> bytes:
    one, other = chance.randrange(len(pieces)), chance.randrange(len(pieces))
    pieces[one], pieces[other] = pieces[other], pieces[one]
    return b"".join(pieces)


def repeat_line(chance: Random, data: bytes) -> bytes:
    """A line, several times."""
    return _repeated(chance, _lines(data))


def repeat_block(chance: Random, data: bytes) -> bytes:
    """A block, several times."""
    return _repeated(chance, _blocks(data))


def _repeated(chance: Random, pieces: list[bytes]) -> bytes:
    at = chance.randrange(len(pieces))
    pieces[at] *= chance.choice((2, 2, 3, 8))
    return b"".join(pieces)


def drop_line(chance: Random, data: bytes) -> bytes:
    """A line less."""
    lines = _lines(data)
    del lines[chance.randrange(len(lines))]
    return b"".join(lines)


def borrow_block(chance: Random, data: bytes) -> bytes:
    """A block of another kind of document."""
    blocks = _blocks(data)
    blocks.insert(chance.randrange(len(blocks) + 1), chance.choice(_blocks(chance.choice(SEEDS))))
    return b"".join(blocks)


def indent_lines(chance: Random, data: bytes) -> bytes:
    """Some lines deeper: in a quote, in a list, in a code block."""
    lines = _lines(data)
    first = chance.randrange(len(lines))
    prefix = chance.choice((b"> ", b"- ", b"    ", b"\t", b"  ", b"1. "))
    for at in range(first, min(first + chance.choice((1, 3, 99)), len(lines))):
        lines[at] = prefix + lines[at]
    return b"".join(lines)


def nest(chance: Random, data: bytes) -> bytes:
    """A line as deep as nobody writes."""
    lines = _lines(data)
    at = chance.randrange(len(lines))
    mark = chance.choice(
        (b"> ", b">", b"- ", b"1. ", b"[", b"![", b"**", b"*", b"`", b"<", b"(", b"{", b"  - ")
    )
    lines[at] = mark * chance.choice((3, 10, 40, 200)) + lines[at]
    return b"".join(lines)


def break_table(chance: Random, data: bytes) -> bytes:
    """A pipe less or more, escaped, or a row of many cells."""
    pipes = [match.start() for match in re.finditer(rb"\|", data)]
    if not pipes:
        return data
    at = chance.choice(pipes)
    return _at(data, at, at + 1, chance.choice((b"", b"||", b"\\|", b"`|", b"|\n", b"\n|", b"| a " * 60)))


def drop_delimiters(chance: Random, data: bytes) -> bytes:
    """A table without the row of dashes, or with that of another."""
    rows = [match.span() for match in re.finditer(rb"(?m)^\|[-|]+\|\r?\n", data)]
    if not rows:
        return data
    return _at(data, *chance.choice(rows), chance.choice((b"", b"\n", b"|---|\n", b"|---|---|---|---|\n")))


def open_fence(chance: Random, data: bytes) -> bytes:
    """A fence, a comment or an HTML block that opens and may never close."""
    lines = _lines(data)
    marks = b"```;~~~~;``` yaml;- ```;> ```;<!--;<details>;<script>".split(b";")
    lines.insert(chance.randrange(len(lines) + 1), chance.choice(marks) + b"\n")
    return b"".join(lines)


def change_line_ends(chance: Random, data: bytes) -> bytes:
    """The line ends of another system, everywhere or here and there."""
    ends, often = chance.choice((b"\r\n", b"\r", b"\n\r", b" \n", b"\n\n")), chance.choice((1.0, 0.3))
    return re.sub(rb"\r?\n", lambda match: ends if chance.random() < often else match[0], data)


def conflict(chance: Random, data: bytes) -> bytes:
    """Both sides of a merge that nobody finished, or what is left of the marks."""
    blocks = _blocks(data)
    at = chance.randrange(len(blocks))
    ours, between, theirs = CONFLICT
    blocks[at] = ours + blocks[at] + between + blocks[at] + theirs
    if chance.random() < 0.3:
        return b"".join(blocks).replace(chance.choice(CONFLICT), b"")
    return b"".join(blocks)


MUTATIONS: tuple[Mutation, ...] = (
    *(change_bytes, cut_bytes, truncate, insert_word, replace_word, insert_markup, insert_odd),
    *(swap_lines, swap_blocks, repeat_line, repeat_block, drop_line, borrow_block, indent_lines, nest),
    *(break_table, drop_delimiters, open_fence, change_line_ends, conflict),
)
