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

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby

from finding_tickets.ground.tokens import DEEPEST_NESTING, Tokens
from finding_tickets.register.query.facts import Lexicon
from finding_tickets.register.query.keys import KEYS, SORTS, is_pattern
from finding_tickets.register.query.tree import (
    All,
    Any,
    Condition,
    Node,
    Not,
    Query,
    QueryError,
    Sort,
    TextSearch,
    Written,
    close_words,
    folded,
)

LONGEST_QUERY = 10_000
SORT = "sort"
EVERYTHING = All(())

# White space ends a condition, so that it is a token of its own.
_SPACE = re.compile(r"(?P<space>\s+)")
_MARK = re.compile(r"(?P<mark>[-(),])")
_OPERATOR = re.compile(r'(?P<operator>(?:AND|OR|NOT)(?![^\s()"]))')
_KEY = re.compile(r"(?P<key>[A-Za-z][A-Za-z_-]*:)")
_RELATION = re.compile(r"(?P<relation>>=|<=|>|<|=)")
_QUOTED = r'"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<open>")'
_WORD = re.compile(rf'{_QUOTED}|(?P<word>[^\s()"]+)', re.DOTALL)
_VALUE = re.compile(rf'{_QUOTED}|(?P<word>[^\s()",=]+)', re.DOTALL)
_ESCAPE = re.compile(r'\\(["\\])')


def parse(text: str, lexicon: Lexicon) -> Query:
    """The query that ``text`` states; without any word it means every document.

    Raises:
        QueryError: It cannot be read, or has a key or a value that does not exist.
    """
    if len(text) > LONGEST_QUERY:
        raise QueryError(f"more than {LONGEST_QUERY} characters", f"{text[:40]}...", LONGEST_QUERY)
    parser = _QueryParser(text, lexicon)
    tree = parser.query()
    # The IDs that a query consists of, if it has nothing else.
    parts = tree.parts if isinstance(tree, Any) else (tree,)
    ids = [part.value.casefold() for part in parts if isinstance(part, Condition) and _is_exact_id(part)]
    return Query(tree, tuple(parser.sorting), tuple(ids) if len(ids) == len(parts) else ())


class _QueryParser:
    """One method for each rule of the grammar; each leaves off where the next word begins."""

    def __init__(self, text: str, lexicon: Lexicon) -> None:
        self.tokens = Tokens(text, _MARK)
        self.lexicon = lexicon
        self.depth = 0
        self.sorting: list[Sort] = []
        self.skip()

    @property
    def next(self) -> str:
        """The character that comes next, or nothing at the end."""
        return self.tokens.text[self.tokens.at : self.tokens.at + 1]

    def query(self) -> Node:
        if not self.next:
            return EVERYTHING
        tree = self.either()
        if self.next:
            raise self.wrong("a parenthesis without its partner")
        return tree

    def either(self) -> Node:
        parts = [self.every()]
        while self.operator("OR"):
            parts.append(self.every())
        if len(parts) > 1 and EVERYTHING in parts:
            raise self.wrong("a condition is missing on one side of OR")
        return Any(_cheapest_first(parts)) if len(parts) > 1 else parts[0]

    def every(self) -> Node:
        runs = [[self.term()]]
        while self.next not in {"", ")"} and self.tokens.peek(_OPERATOR).text != "OR":
            if self.operator("AND"):
                runs.append([])
            runs[-1].append(self.term())
        parts: list[Node] = []
        for run in runs:
            # IDs side by side are alternatives; what only sorts is left out.
            conditions = (term for term in run if term != EVERYTHING)
            for exact, together in groupby(conditions, key=_is_exact_id):
                nodes = tuple(together)
                parts += (Any(nodes),) if exact and len(nodes) > 1 else nodes
        return parts[0] if len(parts) == 1 else All(_cheapest_first(parts))

    def term(self) -> Node:
        if self.operator("NOT"):
            return Not(self.deeper(self.term))
        start = self.tokens.at
        if self.tokens.accept("-"):
            if self.next in {"", "-"} or self.next.isspace():
                raise self.wrong("nothing to negate after '-'", start)
            return Not(self.deeper(self.term))
        if self.tokens.accept("("):
            self.skip()
            node = self.deeper(self.either)
            if not self.tokens.accept(")"):
                raise self.wrong("a parenthesis without its partner", start)
        elif self.next in {"", ")"} or self.tokens.peek(_OPERATOR).text in {"AND", "OR", "NOT"}:
            raise self.wrong("a condition is missing")
        elif (key := self.tokens.peek(_KEY)).kind == "key":
            name = key.text[:-1].lower().replace("_", "-")
            node = self.sort() if name == SORT else self.condition(name)
        else:
            node = self.id_or_text()
        self.skip()
        return node

    def condition(self, name: str) -> Node:
        if name not in KEYS:
            hint = close_words(name, [*KEYS, SORT], "quote what is not a key")
            raise self.wrong(f"no such key as {name!r}", hint=hint)
        self.tokens.take(_KEY)
        conditions = [self.value(name)]
        while self.tokens.accept(","):
            conditions.append(self.value(name))
        self.end_of_condition()
        return conditions[0] if len(conditions) == 1 else Any(tuple(conditions))

    def value(self, name: str) -> Condition:
        key = KEYS[name]
        relation = self.tokens.accept(">=", "<=", ">", "<", "=", pattern=_RELATION)
        sign = relation.text if relation else ""
        if relation and sign != "=" and not key.ordered:
            raise self.wrong(f"{name} has no order that {sign!r} could mean", relation.position)
        written = self.written(name, sign)
        if self.next == "=":
            if not key.detailed:
                raise self.wrong(f"{name} takes one value, without '='", hint="quote a value that has one")
            self.tokens.take(_RELATION)
            written = replace(written, detail=self.written(name, ""))
        return self.tested(written)

    def written(self, name: str, relation: str) -> Written:
        start = self.tokens.at
        word = self.word(_VALUE).strip()
        if not word:
            raise self.wrong(f"{name} has no value", start)
        return Written(name, relation, word, start, self.tokens.text)

    def tested(self, written: Written) -> Condition:
        key = KEYS[written.key]
        test = key.read(written, self.lexicon)
        detail = written.detail.text if written.detail else None
        return Condition(written.key, written.relation, written.text, detail, test, key.cost)

    def sort(self) -> Node:
        if self.depth:
            raise self.wrong("sort: is about the whole list and stands outside of any condition")
        self.tokens.take(_KEY)
        more = True
        while more:
            backwards, start = self.tokens.accept("-") is not None, self.tokens.at
            name = self.word(_VALUE).lower()
            if name not in SORTS:
                raise self.wrong(f"nothing is sorted by {name!r}", start, close_words(name, SORTS))
            self.sorting.append(Sort(name, backwards))
            more = self.tokens.accept(",") is not None
        self.end_of_condition()
        return EVERYTHING

    def id_or_text(self) -> Node:
        start, quoted = self.tokens.at, self.next == '"'
        word = self.word(_WORD)
        if quoted and not word.strip():
            raise self.wrong("nothing to search for", start)
        if not quoted and word in {"and", "or", "not"}:
            hint = f"write {word.upper()}, or quote the word to search for it"
            raise self.wrong(f"{word!r} is no operator", start, hint)
        # A shell completes the names of files.
        document = self.lexicon.paths.get(word.removeprefix("./"), word)
        if not quoted and self.lexicon.is_id(document):
            return self.tested(Written("id", "", document, start, self.tokens.text))
        wanted, facts = folded(word), self.lexicon.facts
        return TextSearch(word, lambda row: wanted in facts.text(row))

    def word(self, pattern: re.Pattern[str]) -> str:
        """The word that comes next, in quotation marks or without; nothing for no word."""
        token = self.tokens.take(pattern)
        if token.kind == "open":
            raise self.wrong("a quotation mark without its partner", token.position)
        if token.kind == "quoted":
            return _ESCAPE.sub(r"\1", token.text)
        return token.text if token.kind == "word" else ""

    def deeper(self, read: Callable[[], Node]) -> Node:
        self.depth += 1
        if self.depth > DEEPEST_NESTING:
            raise self.wrong("nested too deeply")
        node = read()
        self.depth -= 1
        return node

    def operator(self, word: str) -> bool:
        """Pass over an operator and the space after it if it comes next."""
        found = self.tokens.accept(word, pattern=_OPERATOR)
        self.skip()
        return found is not None

    def skip(self) -> None:
        """Pass over white space."""
        self.tokens.take(_SPACE)

    def end_of_condition(self) -> None:
        """A condition ends where a space, a parenthesis that closes or nothing follows."""
        if not (self.next in {"", ")"} or self.next.isspace()):
            raise self.wrong(f"unexpected {self.next!r}", hint="quote a value that has one")

    def wrong(self, message: str, at: int | None = None, hint: str | None = None) -> QueryError:
        """The error that something is wrong here, or at another place."""
        return QueryError(message, self.tokens.text, self.tokens.at if at is None else at, hint)


def _is_exact_id(node: Node) -> bool:
    return isinstance(node, Condition) and node.key == "id" and not is_pattern(node.value)


def _cheapest_first(parts: Sequence[Node]) -> tuple[Node, ...]:
    return tuple(sorted(parts, key=lambda part: part.cost))
