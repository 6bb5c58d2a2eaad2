"""Reading the claims' language: `4*params + 2`, `<= 5*largest`, `1..2`, `O(largest)`.

    condition  = [relation] sum | sum ".." sum | "O" "(" sum ")"
    sum        = product { ("+" | "-") product }
    product    = factor { ("*" | "/" | "//" | "%") factor }
    factor     = "-" factor | number | variable | function "(" sum { "," sum } ")" | "(" sum ")"

Inside ``O(...)`` only what grows with its variables is allowed: not ``-``, ``/``, ``//``, ``%``, ``min``
or zero.

Nothing here is evaluated by Python, and a text can neither nest deeply nor name huge numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from finding_tickets.claims.expressions import (
    FUNCTIONS,
    RELATIONS,
    Binary,
    Call,
    Comparison,
    Condition,
    Expression,
    ExpressionError,
    Growth,
    Negative,
    Number,
    Range,
    Variable,
    suggest,
)

LONGEST_TEXT = 400
LARGEST_NUMBER = 10**18
DEEPEST_NESTING = 40

TOKEN = re.compile(
    r"\s*(?:(?P<number>\d[\d_]*(?:\.\d[\d_]*)?)|(?P<name>[A-Za-z_]\w*)|(?P<symbol>\.\.|//|==|!=|<=|>=|[-+*/%(),<>])|(?P<bad>\S)|$)"
)
HINTS = {
    "**": "there are no powers: write n*n",
    "^": "there are no powers: write n*n",
    "=>": "write >=",
    "=<": "write <=",
    "=": "equality is written ==",
    "≤": "write <=",
    "≥": "write >=",
    ".": "a decimal has digits on both sides, as 0.5; a range is written 1..2",
}
ONE_ARGUMENT = {"ceil", "log2"}
NOT_IN_GROWTH = {"-", "/", "//", "%", "min"}


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text; ``kind`` is ``number``, ``name``, ``symbol`` or ``end``."""

    kind: str
    text: str
    position: int


def parse_expression(text: str) -> Expression:
    """The expression that ``text`` states; raises ``ExpressionError`` with the position."""
    parser = _Parser(text)
    expression = parser.sum()
    parser.end()
    return expression


def parse_condition(text: str) -> Condition:
    """The condition that a claim's value states; without a relation in front it is ``==``."""
    parser = _Parser(text)
    condition = parser.condition()
    parser.end()
    return condition


def _tokens(text: str) -> list[Token]:
    if len(text) > LONGEST_TEXT:
        raise ExpressionError(f"an expression of {len(text)} characters; at most {LONGEST_TEXT} are read")
    tokens = []
    for match in TOKEN.finditer(text):
        kind = match.lastgroup or "end"
        position = match.start(kind) if match.lastgroup else len(text)
        if kind == "bad":
            raise _unexpected(text, position)
        tokens.append(Token(kind, match.group(kind) if match.lastgroup else "", position))
        if kind == "end":
            break
    return tokens


def _may_grow(number: str) -> bool:
    """Whether a number has a place in a growth class: a positive integer."""
    return "." not in number and int(number) > 0


def _unexpected(text: str, position: int) -> ExpressionError:
    start = position - 1 if text[position - 1 : position + 1] == "**" else position
    word = re.match(r"\w+|", text[start:])
    written = next((wrong for wrong in HINTS if text.startswith(wrong, start)), None)
    shown = written or (word and word[0]) or text[start : start + 1]
    what = f"'{shown}'" if shown else "end"
    message = f"unexpected {what} at column {start + 1} of '{text}'"
    return ExpressionError(message, position=start, hint=HINTS.get(shown))


class _Parser:
    """Recursive descent over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._next = 0
        self._depth = 0

    def condition(self) -> Condition:
        if self._ahead("O") and self._tokens[self._next + 1].text == "(":
            return self._growth()
        if relation := self._accept(*RELATIONS):
            return Comparison(relation.text, self.sum())
        expression = self.sum()
        return Range(expression, self.sum()) if self._accept("..") else Comparison("==", expression)

    def _growth(self) -> Growth:
        self._next += 1
        start = self._next
        growth = Growth(self._group())
        for token in self._tokens[start : self._next]:
            if token.text in NOT_IN_GROWTH or (token.kind == "number" and not _may_grow(token.text)):
                message = (
                    f"'{token.text}' at column {token.position + 1} of '{self._text}' has no place in O(...)"
                )
                hint = "a class is made of sums, products, max, ceil, log2, variables and positive integers"
                raise ExpressionError(message, position=token.position, hint=hint)
        return growth

    def sum(self) -> Expression:
        left = self._product()
        while symbol := self._accept("+", "-"):
            left = Binary(symbol.text, left, self._product())
        return left

    def end(self) -> None:
        if self._tokens[self._next].kind != "end":
            self._fail()

    def _product(self) -> Expression:
        left = self._factor()
        while symbol := self._accept("*", "/", "//", "%"):
            left = Binary(symbol.text, left, self._factor())
        return left

    def _factor(self) -> Expression:
        self._depth += 1
        if self._depth > DEEPEST_NESTING:
            raise ExpressionError(f"'{self._text}' nests more than {DEEPEST_NESTING} levels deep")
        factor = Negative(self._factor()) if self._accept("-") else self._atom()
        self._depth -= 1
        return factor

    def _atom(self) -> Expression:
        token = self._tokens[self._next]
        if token.text == "(":
            return self._group()
        if token.kind not in {"number", "name"}:
            self._fail()
        self._next += 1
        if token.kind == "number":
            return self._number(token)
        return self._call(token) if self._ahead("(") else Variable(token.text, token.position)

    def _number(self, token: Token) -> Expression:
        """An integer; a decimal is the fraction that it stands for."""
        whole, _, decimals = token.text.replace("_", "").partition(".")
        value, unit = int(whole + decimals), 10 ** len(decimals)
        if max(value, unit) > LARGEST_NUMBER:
            message = f"the number at column {token.position + 1} is larger than {LARGEST_NUMBER}"
            if decimals:
                message = f"the number at column {token.position + 1} has too many digits"
            raise ExpressionError(message, position=token.position)
        return Binary("/", Number(value), Number(unit)) if decimals else Number(value)

    def _call(self, name: Token) -> Call:
        if name.text not in FUNCTIONS:
            message = f"unknown function '{name.text}' at column {name.position + 1} of '{self._text}'"
            raise ExpressionError(message, position=name.position, hint=suggest(name.text, list(FUNCTIONS)))
        self._expect("(")
        arguments = [self.sum()]
        while name.text not in ONE_ARGUMENT and self._accept(","):
            arguments.append(self.sum())
        self._expect(")")
        return Call(name.text, tuple(arguments))

    def _group(self) -> Expression:
        self._expect("(")
        expression = self.sum()
        self._expect(")")
        return expression

    def _ahead(self, *texts: str) -> bool:
        return self._tokens[self._next].text in texts

    def _accept(self, *texts: str) -> Token | None:
        if not self._ahead(*texts):
            return None
        self._next += 1
        return self._tokens[self._next - 1]

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            self._fail()

    def _fail(self) -> NoReturn:
        raise _unexpected(self._text, self._tokens[self._next].position)
