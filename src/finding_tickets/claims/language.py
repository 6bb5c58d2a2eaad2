"""The claims' language: `4*params + 2`, `<= 5*largest`, `1..2`, `O(largest)`.

    condition  = [relation] sum | sum ".." sum | "O" "(" sum ")"
    sum        = product { ("+" | "-") product }
    product    = factor { ("*" | "/" | "//" | "%") factor }
    factor     = "-" factor | number | variable | function "(" sum { "," sum } ")" | "(" sum ")"

Inside ``O(...)`` only what grows with its variables is allowed: not ``-``, ``/``, ``//``, ``%``, ``min``
or zero. Nothing is evaluated by Python, and a text can neither nest deeply nor name huge numbers.

Values are exact (integers and fractions); only ``log2`` of what is no power of two is rounded.
"""

from __future__ import annotations

import difflib
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NoReturn

from finding_tickets.errors import BadDataError
from finding_tickets.ground.tokens import DEEPEST_NESTING, END, Tokens

LONGEST_TEXT = 400
LARGEST_NUMBER = 10**18

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d[\d_]*(?:\.\d[\d_]*)?)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<symbol>\.\.|//|==|!=|<=|>=|[-+*/%(),<>]))"
)
_GROWTH = re.compile(r"\s*O\s*(?=\()")
# The operators, those that bind least first.
_LEVELS = (("+", "-"), ("*", "/", "//", "%"))
_ONE_ARGUMENT = {"ceil", "log2"}
_NOT_IN_GROWTH = {"-", "/", "//", "%", "min"}
# What to write in place of a common mistake.
_HINTS = {
    "**": "there are no powers: write n*n",
    "^": "there are no powers: write n*n",
    "=>": "write >=",
    "=<": "write <=",
    "=": "equality is written ==",
    "≤": "write <=",
    "≥": "write >=",
    ".": "a decimal has digits on both sides, as 0.5; a range is written 1..2",
}


class ExpressionError(BadDataError):
    """An expression that cannot be read or evaluated; the message names the column of its text, from 1."""


@dataclass(frozen=True, slots=True)
class Number:
    """An integer; a decimal is read as one divided by a power of ten."""

    value: int


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the sweep, and where it stands in the text."""

    name: str
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Binary:
    """Two operands joined by ``+ - * / //`` or ``%``; ``-n`` is read as ``-1*n``."""

    symbol: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Call:
    """``max``, ``min``, ``ceil`` or ``log2`` of its arguments."""

    function: str
    arguments: tuple[Expression, ...]


Expression = Number | Variable | Binary | Call


@dataclass(frozen=True, slots=True)
class Comparison:
    """A metric stands in the relation ``symbol`` to an expression."""

    symbol: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Range:
    """A metric lies between two expressions, both included."""

    low: Expression
    high: Expression


@dataclass(frozen=True, slots=True)
class Growth:
    """A metric grows at most like an expression; ``check.undominated`` says what that means."""

    expression: Expression


Condition = Comparison | Range | Growth


def _log2(values: Sequence[Fraction]) -> Fraction:
    """Exact for powers of two; otherwise strictly between the powers around it, so that ``ceil`` is right."""
    (value,) = values
    if value <= 0:
        raise ExpressionError(f"log2 of {value}, which is not positive")
    below = value.numerator.bit_length() - value.denominator.bit_length()
    below -= Fraction(2) ** below > value
    if value == Fraction(2) ** below:
        return Fraction(below)
    fraction = math.log2(value / Fraction(2) ** below)
    return below + Fraction(min(max(fraction, 2.0**-50), 1 - 2.0**-50))


OPERATORS: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": lambda left, right: Fraction(left // right),
    "%": operator.mod,
}
RELATIONS: dict[str, Callable[[Fraction, Fraction], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
}
FUNCTIONS: dict[str, Callable[[Sequence[Fraction]], Fraction]] = {
    "max": max,
    "min": min,
    "ceil": lambda values: Fraction(math.ceil(values[0])),
    "log2": _log2,
}


def parse_expression(text: str) -> Expression:
    """The expression that ``text`` states; raises ``ExpressionError``."""
    parser = _ExpressionParser(text)
    expression = parser.expression()
    parser.expect_end()
    return expression


def parse_condition(text: str) -> Condition:
    """The condition that a claim's value states; without a relation in front it is ``==``.

    Raises:
        ExpressionError: It cannot be read; for a common mistake the hint says what to write.
    """
    parser = _ExpressionParser(text)
    condition = parser.condition()
    parser.expect_end()
    return condition


def evaluate(expression: Expression, at: Mapping[str, int]) -> Fraction:
    """The value of an expression at a point of the sweep.

    Raises:
        ExpressionError: A variable is unknown, a divisor is 0, or ``log2`` gets what is not positive.
    """
    match expression:
        case Number(value):
            return Fraction(value)
        case Variable(name):
            check_variables(expression, at)
            return Fraction(at[name])
        case Binary(symbol, left, right):
            # Fractions keep `n/2` exact, whatever n is.
            first, second = evaluate(left, at), evaluate(right, at)
            if symbol in {"/", "//", "%"} and second == 0:
                raise ExpressionError(f"division by zero in {first} {symbol} {second}")
            return OPERATORS[symbol](first, second)
        case Call(function, arguments):
            return FUNCTIONS[function]([evaluate(argument, at) for argument in arguments])


def satisfied(condition: Comparison | Range, measured: int | Fraction, at: Mapping[str, int]) -> bool:
    """Whether a measured value meets a condition at a point; raises what ``evaluate`` raises."""
    value = Fraction(measured)
    if isinstance(condition, Range):
        return evaluate(condition.low, at) <= value <= evaluate(condition.high, at)
    return RELATIONS[condition.symbol](value, evaluate(condition.expression, at))


def variables(node: Expression | Condition) -> Iterator[Variable]:
    """Every variable of an expression or a condition, in the order of its text."""
    match node:
        case Variable():
            yield node
        case Comparison(_, part) | Growth(part):
            yield from variables(part)
        case Binary(_, left, right) | Range(left, right):
            yield from variables(left)
            yield from variables(right)
        case Call(_, arguments):
            for argument in arguments:
                yield from variables(argument)


def check_variables(node: Expression | Condition, known: Iterable[str]) -> None:
    """Raise ``ExpressionError`` for the first variable that the sweep does not have."""
    names = list(known)
    for variable in variables(node):
        if variable.name not in names:
            message = f"unknown variable '{variable.name}' at column {variable.position + 1}"
            raise ExpressionError(message, hint=suggest(variable.name, names))


def suggest(word: str, known: Sequence[str]) -> str:
    """What a misspelt word may have meant, and what is known."""
    close = difflib.get_close_matches(word, known, n=1)
    question = f"did you mean '{close[0]}'? " if close else ""
    return f"{question}known: {', '.join(known) or 'none'}"


class _ExpressionParser:
    """Recursive descent over the tokens of one text."""

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST_TEXT:
            raise ExpressionError(f"an expression of {len(text)} characters; at most {LONGEST_TEXT} are read")
        # Tokens come one by one, so that a mistake is named where the reader meets it.
        self._text = text
        self._tokens = Tokens(text, _TOKEN)
        self._depth = 0

    def condition(self) -> Condition:
        if _GROWTH.match(self._text):
            self._tokens.take()
            return self._growth()
        if relation := self._tokens.accept(*RELATIONS):
            return Comparison(relation.text, self.expression())
        expression = self.expression()
        if self._tokens.accept(".."):
            return Range(expression, self.expression())
        return Comparison("==", expression)

    def _growth(self) -> Growth:
        start = self._tokens.at
        growth = Growth(self._factor())
        # The tokens are read once more: of a tree, the place of an operator is not known.
        inside = Tokens(self._text[: self._tokens.at], _TOKEN)
        inside.at = start
        while (token := inside.take()).kind != END:
            number = token.text if token.kind == "number" else "1"
            if token.text in _NOT_IN_GROWTH or "." in number or int(number) == 0:
                message = (
                    f"'{token.text}' at column {token.position + 1} of '{self._text}' has no place in O(...)"
                )
                hint = "a class is made of sums, products, max, ceil, log2, variables and positive integers"
                raise ExpressionError(message, hint=hint)
        return growth

    def expression(self, level: int = 0) -> Expression:
        if level == len(_LEVELS):
            return self._factor()
        left = self.expression(level + 1)
        while symbol := self._tokens.accept(*_LEVELS[level]):
            left = Binary(symbol.text, left, self.expression(level + 1))
        return left

    def _factor(self) -> Expression:
        # Recursion ends here and not where Python's stack does.
        self._depth += 1
        if self._depth > DEEPEST_NESTING:
            raise ExpressionError(f"'{self._text}' nests more than {DEEPEST_NESTING} levels deep")
        if self._tokens.accept("-"):
            factor: Expression = Binary("*", Number(-1), self._factor())
        elif self._tokens.accept("("):
            factor = self.expression()
            self._expect(")")
        else:
            factor = self._atom()
        self._depth -= 1
        return factor

    def _atom(self) -> Expression:
        token = self._tokens.peek()
        if token.kind not in {"number", "name"}:
            self._fail()
        self._tokens.take()
        column = token.position + 1
        if token.kind == "number":
            # A decimal is a fraction: 0.1 has no exact float.
            whole, _, decimals = token.text.replace("_", "").partition(".")
            value, unit = int(whole + decimals), 10 ** len(decimals)
            if max(value, unit) > LARGEST_NUMBER:
                excess = "has too many digits" if decimals else f"is larger than {LARGEST_NUMBER}"
                raise ExpressionError(f"the number at column {column} {excess}")
            return Binary("/", Number(value), Number(unit)) if decimals else Number(value)
        if self._tokens.peek().text != "(":
            return Variable(token.text, token.position)
        if token.text not in FUNCTIONS:
            message = f"unknown function '{token.text}' at column {column} of '{self._text}'"
            raise ExpressionError(message, hint=suggest(token.text, list(FUNCTIONS)))
        self._expect("(")
        arguments = [self.expression()]
        while token.text not in _ONE_ARGUMENT and self._tokens.accept(","):
            arguments.append(self.expression())
        self._expect(")")
        return Call(token.text, tuple(arguments))

    def expect_end(self) -> None:
        if self._tokens.peek().kind != END:
            self._fail()

    def _expect(self, text: str) -> None:
        if not self._tokens.accept(text):
            self._fail()

    def _fail(self) -> NoReturn:
        """Say what stands where something else was expected."""
        text, start = self._text, self._tokens.peek().position
        if text[start - 1 : start + 1] == "**":
            start -= 1
        word = re.match(r"\w+|", text[start:])
        written = next((wrong for wrong in _HINTS if text.startswith(wrong, start)), None)
        shown = written or (word and word[0]) or text[start : start + 1]
        what = f"'{shown}'" if shown else "end"
        message = f"unexpected {what} at column {start + 1} of '{text}'"
        raise ExpressionError(message, hint=_HINTS.get(shown))
