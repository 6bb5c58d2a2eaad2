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
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any

from finding_tickets.ground.tokens import DEEPEST_NESTING, END, Token, Tokens
from finding_tickets.register.index import Row
from finding_tickets.register.query.facts import Facts, folded
from finding_tickets.register.query.keys import (
    EVERYTHING,
    KEYS,
    OF_TEXT,
    SORT,
    SORTS,
    SYNONYMS,
    Query,
    QueryError,
    QueryValue,
    RowCondition,
    close_words,
    combined,
    is_pattern,
)

__all__ = ["Facts", "Query", "QueryError", "parse", "select"]

LONGEST_QUERY = 10_000

_QUOTED = r'(?P<quoted>"(?:[^"\\]|\\.)*")|(?P<unclosed>")'
# Where a term may begin: an operator is a whole word, and a minus only negates in front of one.
_TERM = re.compile(
    r'\s*(?:(?P<OR>OR(?![^\s()"]))|(?P<AND>AND(?![^\s()"]))|(?P<NOT>NOT(?![^\s()"]))'
    rf"|(?P<minus>-)|(?P<opening>\()|(?P<closing>\))|(?P<key>[A-Za-z][A-Za-z_-]*:)|{_QUOTED}"
    r'|(?P<word>[^\s()"]+))',
    re.DOTALL,
)
# Within a condition white space ends it: nothing here passes over any.
_SIGN = re.compile(r"(?P<sign>>=|<=|[<>=,-])")
_WORD = re.compile(rf'{_QUOTED}|(?P<word>[^\s()",=]*)', re.DOTALL)
_NEGATED = re.compile(r"[^\s-]")
_END_OF_CONDITION = re.compile(r"[\s)]|\Z")
_ESCAPE = re.compile(r'\\(["\\])')
# What people write who know another tool's queries; it is named with the right form, and not searched for.
_COMPARISON = re.compile(
    r"(?P<key>[a-z][a-z_-]*)(?P<sign>!=|==?|[<>]=?)(?P<value>.*)", re.IGNORECASE | re.DOTALL
)
_SIGNS = {":", "=", "==", "!=", ">", "<", ">=", "<="}


def select(text: str, facts: Facts) -> list[Row]:
    """The rows of a register that a query means today, or the error of ``parse``."""
    return parse(text, facts).choose(facts.rows)


def parse(text: str, facts: Facts) -> Query:
    """The query that ``text`` states; without any word it means every document.

    Raises:
        QueryError: It cannot be read, or has a key or a value that does not exist.
    """
    if len(text) > LONGEST_QUERY:
        raise QueryError(f"more than {LONGEST_QUERY} characters", f"{text[:40]}...", LONGEST_QUERY)
    parser = _QueryParser(text, facts)
    condition = EVERYTHING if parser.tokens.peek().kind == END else parser.either()
    if parser.tokens.peek().kind != END:
        raise parser.wrong("a parenthesis without its partner", parser.tokens.peek().position)
    return Query(condition, tuple(parser.sorting))


class _QueryParser:
    """One method for each rule of the grammar."""

    def __init__(self, text: str, facts: Facts) -> None:
        self.tokens = Tokens(text, _TERM)
        self.facts = facts
        self.paths = {row.path: row.id for row in facts.rows}
        self.depth = 0
        self.sorting: list[tuple[Callable[[Row], Any], bool]] = []

    def either(self) -> RowCondition:
        parts = [self.every()]
        while self.comes("OR"):
            parts.append(self.every())
        if len(parts) > 1 and EVERYTHING in parts:
            raise self.wrong("a condition is missing on one side of OR", self.tokens.at)
        return combined(any, parts)

    def every(self) -> RowCondition:
        runs = [[self.term()]]
        while self.tokens.peek().kind not in {END, "OR", "closing"}:
            if self.comes("AND"):
                runs.append([])
            runs[-1].append(self.term())
        parts: list[RowCondition] = []
        for run in runs:
            # IDs side by side are alternatives; what only sorts is left out.
            terms = (term for term in run if term != EVERYTHING)
            for is_id, together in groupby(terms, key=lambda term: len(term.ids) == 1):
                conditions = [*together]
                parts += [combined(any, conditions)] if is_id else conditions
        return combined(all, parts)

    def term(self) -> RowCondition:
        token = self.tokens.take()
        # Parentheses and negations nest through here alone.
        self.depth += 1
        if self.depth > DEEPEST_NESTING + 1:
            raise self.wrong("nested too deeply", token.position)
        if token.kind == "minus" and not _NEGATED.match(self.tokens.text, self.tokens.at):
            raise self.wrong("nothing to negate after '-'", token.position)
        if token.kind in {"NOT", "minus"}:
            part = self.term()
            condition = RowCondition(lambda row: not part.holds(row), part.cost)
        elif token.kind == "opening":
            condition = self.either()
            if not self.comes("closing"):
                raise self.wrong("a parenthesis without its partner", token.position)
        elif token.kind == "key":
            condition = self.condition(token)
        elif token.kind in {"quoted", "unclosed", "word"}:
            condition = self.id_or_text(token)
        else:
            raise self.wrong("a condition is missing", token.position)
        self.depth -= 1
        return condition

    def condition(self, token: Token) -> RowCondition:
        name = token.text[:-1].lower().replace("_", "-")
        if name == SORT:
            if self.depth > 1:
                message = "sort: is about the whole list and stands outside of any condition"
                raise self.wrong(message, token.position)
            read = self.sort
        elif name in KEYS:
            read = partial(self.value, name)
        else:
            keys = [*KEYS, SORT]
            hint = close_words(name, keys, f"one of {', '.join(keys)}; quote what is not a key")
            if name in SYNONYMS:
                rest = self.tokens.text[self.tokens.at :].split(maxsplit=1) or ["VALUE"]
                hint = f"write {SYNONYMS[name]}:{rest[0]}"
            raise self.wrong(f"no such key as {name!r}", token.position, hint)
        parts = [read()]
        while self.tokens.accept(",", pattern=_SIGN):
            parts.append(read())
        text, at = self.tokens.text, self.tokens.at
        if not _END_OF_CONDITION.match(text, at):
            raise self.wrong(f"unexpected {text[at]!r}", at, "quote a value that has one")
        return combined(any, parts) if name != SORT else EVERYTHING

    def value(self, name: str) -> RowCondition:
        key = KEYS[name]
        relation = self.tokens.accept(">=", "<=", ">", "<", "=", pattern=_SIGN)
        if relation and relation.text != "=" and not key.ordered:
            raise self.wrong(f"{name} has no order that {relation.text!r} could mean", relation.position)
        value = self.written(name, relation.text if relation else "")
        equals = self.tokens.accept("=", pattern=_SIGN)
        if equals and not key.detailed:
            hint = "quote a value that has one"
            raise self.wrong(f"{name} takes one value, without '='", equals.position, hint)
        return self.tested(replace(value, detail=self.written(name, "")) if equals else value)

    def written(self, name: str, relation: str) -> QueryValue:
        token = self.tokens.take(_WORD)
        text = self.plain(token).strip()
        if not text:
            hint = f"write {name}:VALUE without a space"
            raise self.wrong(f"{name} has no value", token.position, hint)
        return QueryValue(name, relation, text, token.position, self.tokens.text)

    def tested(self, value: QueryValue) -> RowCondition:
        key, is_id = KEYS[value.key], value.key == "id" and not is_pattern(value.text)
        passes, facts = key.read(value, self.facts), self.facts
        return RowCondition(
            lambda row: any(map(passes, key.values(row, facts))),
            key.cost,
            (value.text.casefold(),) if is_id else (),
        )

    def sort(self) -> RowCondition:
        backwards = self.tokens.accept("-", pattern=_SIGN) is not None
        token = self.tokens.take(_WORD)
        name = self.plain(token).lower()
        if name not in SORTS:
            raise self.wrong(f"nothing is sorted by {name!r}", token.position, close_words(name, SORTS))
        key, facts = SORTS[name], self.facts
        self.sorting.append((lambda row: key(row, facts), backwards))
        return EVERYTHING

    def id_or_text(self, token: Token) -> RowCondition:
        word, facts = self.plain(token), self.facts
        if token.kind == "word":
            if word in {"and", "or", "not"}:
                hint = f"write {word.upper()}, or quote the word to search for it"
                raise self.wrong(f"{word!r} is no operator", token.position, hint)
            if word in _SIGNS:
                hint = "write a condition without spaces, such as severity:>=P1"
                raise self.wrong(f"{word!r} stands alone", token.position, hint)
            compared = _COMPARISON.fullmatch(word)
            key = compared["key"].lower().replace("_", "-") if compared else ""
            key = SYNONYMS.get(key, key)
            if compared and key in KEYS:
                sign = compared["sign"].strip("=!") and compared["sign"]
                right = f"{'-' if compared['sign'] == '!=' else ''}{key}:{sign}{compared['value'] or 'VALUE'}"
                raise self.wrong(f"{word!r} is no condition", token.position, f"write {right}")
            # A shell completes the names of files.
            document = self.paths.get(word.removeprefix("./"), word)
            if facts.is_id(document):
                return self.tested(QueryValue("id", "", document, token.position, self.tokens.text))
        wanted = folded(word)
        if not wanted:
            raise self.wrong("nothing to search for", token.position)
        return RowCondition(lambda row: wanted in facts.text(row), OF_TEXT)

    def plain(self, token: Token) -> str:
        """The text of a word, without its quotation marks."""
        if token.kind == "unclosed":
            raise self.wrong("a quotation mark without its partner", token.position)
        return _ESCAPE.sub(r"\1", token.text[1:-1]) if token.kind == "quoted" else token.text

    def comes(self, kind: str) -> bool:
        """Pass over the next token if it is one of this kind."""
        if self.tokens.peek().kind != kind:
            return False
        self.tokens.take()
        return True

    def wrong(self, message: str, position: int, hint: str | None = None) -> QueryError:
        """The error that something is wrong at a place of the query."""
        return QueryError(message, self.tokens.text, position, hint)
