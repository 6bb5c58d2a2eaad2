r"""Reading a query: `status:open severity:>=P1 (domain:simic OR no:verifier) -"flaky" sort:-updated`.

    query      = [ either ]
    either     = every { "OR" every }
    every      = term { [ "AND" ] term }
    term       = ( "NOT" | "-" ) term | "(" either ")" | condition | sort | id | text
    condition  = key ":" value { "," value }
    value      = [ ">=" | "<=" | ">" | "<" | "=" ] word [ "=" word ]
    sort       = "sort:" [ "-" ] name { "," [ "-" ] name }
    id         = a word that is the ID of a document or the path of its file, or has the form of an ID
    text       = word
    word       = '"' anything, with \ before a " or \ '"' | characters other than white space, " ( and )

Without quotes, the words of a condition have no comma and no `=`. IDs side by side are alternatives, for no
document has two. What sorts stands outside of any parentheses and does not say which documents are meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from finding_tickets.register.query.facts import Lexicon
from finding_tickets.register.query.keys import KEYS, is_pattern
from finding_tickets.register.query.scanner import KEY, OPERATOR, RELATION, VALUE, WORD, Scanner
from finding_tickets.register.query.sorting import SORTS
from finding_tickets.register.query.tree import (
    All,
    Any,
    Condition,
    Node,
    Not,
    Query,
    QueryError,
    Sort,
    Text,
    Written,
    close_words,
    folded,
)

LONGEST_QUERY = 10_000
DEEPEST_NESTING = 40
SORT = "sort"
EVERYTHING = All(())


def parse(text: str, lexicon: Lexicon) -> Query:
    """The query that ``text`` states; without any word it means every document.

    Raises:
        QueryError: It cannot be read, or has a key or a value that does not exist.
    """
    if len(text) > LONGEST_QUERY:
        raise QueryError(f"more than {LONGEST_QUERY} characters", f"{text[:40]}...", LONGEST_QUERY)
    parser = _Parser(text, lexicon)
    tree = parser.query()
    return Query(tree, tuple(parser.sorting), _named(tree))


class _Parser:
    """One method for each rule of the grammar; each leaves off where the next word begins."""

    def __init__(self, text: str, lexicon: Lexicon) -> None:
        self.scan = Scanner(text)
        self.lexicon = lexicon
        self.depth = 0
        self.sorting: list[Sort] = []

    def query(self) -> Node:
        if not self.scan.next:
            return EVERYTHING
        tree = self.either()
        if self.scan.next:
            raise self.scan.wrong("a parenthesis without its partner")
        return tree

    def either(self) -> Node:
        parts = [self.every()]
        while self.operator("OR"):
            parts.append(self.every())
        if len(parts) > 1 and EVERYTHING in parts:
            raise self.scan.wrong("a condition is missing on one side of OR")
        return Any(_cheapest_first(parts)) if len(parts) > 1 else parts[0]

    def every(self) -> Node:
        runs = [[self.term()]]
        while self.scan.next not in {"", ")"} and self.scan.peek(OPERATOR) != "OR":
            if self.operator("AND"):
                runs.append([])
            runs[-1].append(self.term())
        parts = [part for run in runs for part in _with_alternatives(run)]
        return parts[0] if len(parts) == 1 else All(_cheapest_first(parts))

    def term(self) -> Node:
        if self.operator("NOT"):
            return Not(self.deeper(self.term))
        start = self.scan.at
        if self.scan.take("-"):
            if self.scan.next in {"", "-"} or self.scan.next.isspace():
                raise self.scan.wrong("nothing to negate after '-'", start)
            return Not(self.deeper(self.term))
        if self.scan.take("("):
            self.scan.skip()
            node = self.deeper(self.either)
            if not self.scan.take(")"):
                raise self.scan.wrong("a parenthesis without its partner", start)
        else:
            node = self.plain()
        self.scan.skip()
        return node

    def plain(self) -> Node:
        if self.scan.next in {"", ")"} or self.scan.peek(OPERATOR):
            raise self.scan.wrong("a condition is missing")
        key = self.scan.peek(KEY)
        if key:
            name = key[:-1].lower().replace("_", "-")
            return self.sort(key) if name == SORT else self.condition(name, key)
        return self.id_or_text()

    def condition(self, name: str, key: str) -> Node:
        if name not in KEYS:
            hint = close_words(name, [*KEYS, SORT], "quote what is not a key")
            raise self.scan.wrong(f"no such key as {name!r}", hint=hint)
        self.scan.take(key)
        conditions = [self.value(name)]
        while self.scan.take(","):
            conditions.append(self.value(name))
        self.separated()
        return conditions[0] if len(conditions) == 1 else Any(tuple(conditions))

    def value(self, name: str) -> Condition:
        key = KEYS[name]
        relation = self.scan.peek(RELATION)
        if relation not in {"", "="} and not key.ordered:
            raise self.scan.wrong(f"{name} has no order that {relation!r} could mean")
        self.scan.take(relation)
        written = self.written(name, relation)
        if self.scan.next == "=":
            if not key.detailed:
                raise self.scan.wrong(
                    f"{name} takes one value, without '='", hint="quote a value that has one"
                )
            self.scan.take("=")
            written = replace(written, detail=self.written(name, ""))
        return self.tested(written)

    def written(self, name: str, relation: str) -> Written:
        start = self.scan.at
        word = self.scan.word(VALUE).strip()
        if not word:
            raise self.scan.wrong(f"{name} has no value", start)
        return Written(name, relation, word, start, self.scan.text)

    def tested(self, written: Written) -> Condition:
        key = KEYS[written.key]
        test = key.read(written, self.lexicon)
        detail = written.detail.text if written.detail else None
        return Condition(written.key, written.relation, written.text, detail, test, key.cost)

    def sort(self, key: str) -> Node:
        if self.depth:
            raise self.scan.wrong("sort: is about the whole list and stands outside of any condition")
        self.scan.take(key)
        while True:
            backwards, start = self.scan.take("-"), self.scan.at
            name = self.scan.word(VALUE).lower()
            if name not in SORTS:
                raise self.scan.wrong(f"nothing is sorted by {name!r}", start, close_words(name, SORTS))
            self.sorting.append(Sort(name, backwards))
            if not self.scan.take(","):
                break
        self.separated()
        return EVERYTHING

    def id_or_text(self) -> Node:
        start, quoted = self.scan.at, self.scan.next == '"'
        word = self.scan.word(WORD)
        if quoted and not word.strip():
            raise self.scan.wrong("nothing to search for", start)
        if not quoted and word in {"and", "or", "not"}:
            hint = f"write {word.upper()}, or quote the word to search for it"
            raise self.scan.wrong(f"{word!r} is no operator", start, hint)
        # A shell completes the names of files.
        document = self.lexicon.paths.get(word.removeprefix("./"), word)
        if not quoted and self.lexicon.is_id(document):
            return self.tested(Written("id", "", document, start, self.scan.text))
        wanted, facts = folded(word), self.lexicon.facts
        return Text(word, lambda row: wanted in facts.text(row))

    def deeper(self, read: Callable[[], Node]) -> Node:
        self.depth += 1
        if self.depth > DEEPEST_NESTING:
            raise self.scan.wrong("nested too deeply")
        node = read()
        self.depth -= 1
        return node

    def operator(self, word: str) -> bool:
        """Pass over an operator and the space after it if it comes next."""
        found = self.scan.peek(OPERATOR) == word and self.scan.take(word)
        self.scan.skip()
        return found

    def separated(self) -> None:
        """A condition ends where a space, a parenthesis that closes or nothing follows."""
        if not (self.scan.next in {"", ")"} or self.scan.next.isspace()):
            raise self.scan.wrong(f"unexpected {self.scan.next!r}", hint="quote a value that has one")


def _with_alternatives(terms: Sequence[Node]) -> Iterator[Node]:
    """Terms that all must hold, with IDs side by side made alternatives; what only sorts is left out."""
    conditions = (term for term in terms if term != EVERYTHING)
    for exact, run in groupby(conditions, key=_is_exact_id):
        nodes = tuple(run)
        yield from (Any(nodes),) if exact and len(nodes) > 1 else nodes


def _is_exact_id(node: Node) -> bool:
    return isinstance(node, Condition) and node.key == "id" and not is_pattern(node.value)


def _named(tree: Node) -> tuple[str, ...]:
    """The IDs that a tree consists of, in lower case, if it has nothing else."""
    parts = tree.parts if isinstance(tree, Any) else (tree,)
    ids = [part.value.casefold() for part in parts if isinstance(part, Condition) and _is_exact_id(part)]
    return tuple(ids) if len(ids) == len(parts) else ()


def _cheapest_first(parts: Sequence[Node]) -> tuple[Node, ...]:
    return tuple(sorted(parts, key=lambda part: part.cost))
