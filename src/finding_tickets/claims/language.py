"""The claims' language: `4*params + 2`, `<= 5*largest`, `1..2`, `O(largest)`.

    condition  = [relation] sum | sum ".." sum | "O" "(" sum ")"
    sum        = product { ("+" | "-") product }
    product    = factor { ("*" | "/" | "//" | "%") factor }
    factor     = "-" factor | number | variable | function "(" sum { "," sum } ")" | "(" sum ")"

Inside ``O(...)`` only what grows with its variables is allowed: not ``-``, ``/``, ``//``, ``%``, ``min``
or zero. Nothing is evaluated by Python, and a text can neither nest deeply nor name huge numbers.

Values are exact fractions; only ``log2`` of other numbers than powers of two is rounded.
"""

from __future__ import annotations

import difflib
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple, NoReturn

from finding_tickets.errors import BadDataError

LONGEST_TEXT = 400
LARGEST_NUMBER = 10**18
# Brackets within brackets that the parser follows: Python's own stack has to hold them.
DEEPEST_NESTING = 40
RANGE, GROWTH = "..", "O"

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
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d[\d_]*(?:\.\d[\d_]*)?)|(?P<name>[A-Za-z_]\w*)"
    # Mistakes are tokens too, so that an error can name the whole of one.
    rf"|(?P<symbol>\.\.|//|==|!=|<=|>=|{'|'.join(map(re.escape, _HINTS))}|[-+*/%(),<>])"
    r"|(?P<unknown>\S)|(?P<end>\Z))"
)
_GROWTH = re.compile(r"\s*O\s*(?=\()")
# The operators; the ones that bind least come first.
_LEVELS = (("+", "-"), ("*", "/", "//", "%"))
_ONE_ARGUMENT = {"ceil", "log2"}
_NOT_IN_GROWTH = {"-", "/", "//", "%", "min"}


class ExpressionError(BadDataError):
    """An expression that cannot be read or evaluated; the message names the column of its text, from 1."""


@dataclass(frozen=True, slots=True)
class Number:
    """An integer or a decimal."""

    value: Fraction


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the sweep, and where it stands in the text."""

    name: str
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """An operator or a function of ``CALLS`` with its arguments; ``-n`` is read as ``-1*n``."""

    name: str
    arguments: tuple[Expression, ...]


Expression = Number | Variable | Call


@dataclass(frozen=True, slots=True)
class ClaimCondition:
    """The statement of a claim about a metric.

    It stands in a ``relation`` of ``RELATIONS`` to the only side, or lies in the ``RANGE`` between two, both
    included. Or it grows at most like the side (``GROWTH``); ``check.undominated`` says what that means.
    """

    relation: str
    sides: tuple[Expression, ...]


def _log2(value: Fraction) -> Fraction:
    """Exact for powers of two; otherwise strictly between the powers around it, so that ``ceil`` is right."""
    if value <= 0:
        raise ExpressionError(f"log2 of {value}, which is not positive")
    below = value.numerator.bit_length() - value.denominator.bit_length()
    below -= Fraction(2) ** below > value
    if value == Fraction(2) ** below:
        return Fraction(below)
    fraction = math.log2(value / Fraction(2) ** below)
    return below + Fraction(min(max(fraction, 2.0**-50), 1 - 2.0**-50))


FUNCTIONS: dict[str, Callable[..., Fraction | int]] = {
    "max": lambda *values: max(values),
    "min": lambda *values: min(values),
    "ceil": math.ceil,
    "log2": _log2,
}
CALLS: dict[str, Callable[..., Fraction | int]] = {
    **FUNCTIONS,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
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


def parse_expression(text: str) -> Expression:
    """The expression that ``text`` states; raises ``ExpressionError``."""
    parser = _Parser(text)
    expression = parser.expression()
    parser.finish()
    return expression


def parse_condition(text: str) -> ClaimCondition:
    """The condition that a claim's value states; without a relation in front it is ``==``.

    Raises:
        ExpressionError: It cannot be read; for a common mistake the hint says what to write.
    """
    parser = _Parser(text)
    condition = parser.condition()
    parser.finish()
    return condition


def evaluate(expression: Expression, at: Mapping[str, int]) -> Fraction:
    """The value of an expression at a point of the sweep.

    Raises:
        ExpressionError: A variable is unknown, a divisor is 0, or ``log2`` gets what is not positive.
    """
    match expression:
        case Number(value):
            return value
        case Variable(name):
            check_variables(expression, at)
            return Fraction(at[name])
        case Call(name, arguments):
            values = [evaluate(argument, at) for argument in arguments]
            try:
                return Fraction(CALLS[name](*values))
            except ZeroDivisionError:
                raise ExpressionError(
                    f"division by zero in {values[0]} {name} 0"
                ) from None


def satisfied(
    condition: ClaimCondition, measured: int | Fraction, at: Mapping[str, int]
) -> bool:
    """Return True if a value meets a condition at a point; raises like ``evaluate``. No growth classes."""
    value, sides = Fraction(measured), [evaluate(side, at) for side in condition.sides]
    if condition.relation == RANGE:
        return sides[0] <= value <= sides[1]
    return RELATIONS[condition.relation](value, sides[0])


def variables(node: Expression | ClaimCondition) -> Iterator[Variable]:
    """Every variable of an expression or a condition, in the order of its text."""
    match node:
        case Variable():
            yield node
        case Call(_, parts) | ClaimCondition(_, parts):
            for part in parts:
                yield from variables(part)


def check_variables(node: Expression | ClaimCondition, known: Iterable[str]) -> None:
    """Raise ``ExpressionError`` for the first variable that the sweep does not have."""
    names = list(known)
    for variable in variables(node):
        if variable.name not in names:
            message = (
                f"unknown variable '{variable.name}' at column {variable.position + 1}"
            )
            raise ExpressionError(message, hint=suggest(variable.name, names))


def suggest(word: str, known: Sequence[str]) -> str:
    """A hint for a misspelt word: the closest known word, and all of them."""
    # How alike two words are takes the square of their length.
    close = difflib.get_close_matches(word[:LONGEST_TEXT], known, n=1)
    question = f"did you mean '{close[0]}'? " if close else ""
    return f"{question}known: {', '.join(known) or 'none'}"


class Token(NamedTuple):
    """A piece of a text; ``kind`` is a group of the pattern, and ``position`` counts characters from 0."""

    kind: str
    text: str
    position: int


class _Parser:
    """Reads one text by recursive descent over its tokens."""

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST_TEXT:
            raise ExpressionError(
                f"an expression of {len(text)} characters; at most {LONGEST_TEXT} are read"
            )
        self._text = text
        # The last one is the end.
        self._tokens = []
        for match in _TOKEN.finditer(text):
            kind = str(match.lastgroup)
            self._tokens.append(Token(kind, match[kind], match.start(kind)))
        self._depth = 0
        self._in_growth = False

    def condition(self) -> ClaimCondition:
        if _GROWTH.match(self._text):
            self._tokens.pop(0)
            self._in_growth = True
            return ClaimCondition(GROWTH, (self._factor(),))
        if relation := self._accept(*RELATIONS):
            return ClaimCondition(relation.text, (self.expression(),))
        expression = self.expression()
        if self._accept(RANGE):
            return ClaimCondition(RANGE, (expression, self.expression()))
        return ClaimCondition("==", (expression,))

    def expression(self, level: int = 0) -> Expression:
        if level == len(_LEVELS):
            return self._factor()
        left = self.expression(level + 1)
        while symbol := self._accept(*_LEVELS[level]):
            left = Call(symbol.text, (left, self.expression(level + 1)))
        return left

    def _factor(self) -> Expression:
        # Recursion ends here and not where Python's stack does.
        self._depth += 1
        if self._depth > DEEPEST_NESTING:
            raise ExpressionError(
                f"'{self._text}' nests more than {DEEPEST_NESTING} levels deep"
            )
        if self._accept("-"):
            factor: Expression = Call("*", (Number(Fraction(-1)), self._factor()))
        elif self._accept("("):
            factor = self.expression()
            self._expect(")")
        else:
            factor = self._atom()
        self._depth -= 1
        return factor

    def _atom(self) -> Expression:
        token = self._tokens[0]
        if token.kind not in {"number", "name"}:
            self._fail()
        self._accept(token.text)
        column = token.position + 1
        if token.kind == "number":
            # Never by way of a float, which 0.1 is not exactly.
            value = Fraction(token.text.replace("_", ""))
            if max(value.numerator, value.denominator) > LARGEST_NUMBER:
                raise ExpressionError(
                    f"the number at column {column} has too many digits"
                )
            return Number(value)
        if self._tokens[0].text != "(":
            return Variable(token.text, token.position)
        if token.text not in FUNCTIONS:
            message = (
                f"unknown function '{token.text}' at column {column} of '{self._text}'"
            )
            raise ExpressionError(message, hint=suggest(token.text, list(FUNCTIONS)))
        self._expect("(")
        arguments = [self.expression()]
        while token.text not in _ONE_ARGUMENT and self._accept(","):
            arguments.append(self.expression())
        self._expect(")")
        return Call(token.text, tuple(arguments))

    def _accept(self, *texts: str) -> Token | None:
        """Take the next token if it is one of these; what could shrink a growth class is refused there."""
        token = self._tokens[0]
        if token.text not in texts:
            return None
        self._tokens.pop(0)
        if self._in_growth:
            is_no_size = token.kind == "number" and (
                "." in token.text or not token.text.strip("0_")
            )
            if is_no_size or token.text in _NOT_IN_GROWTH:
                where = f"at column {token.position + 1} of '{self._text}'"
                message = f"'{token.text}' {where} has no place in O(...)"
                hint = "a class is made of sums, products, max, ceil, log2, variables and positive integers"
                raise ExpressionError(message, hint=hint)
        return token

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            self._fail()

    def finish(self) -> None:
        if self._tokens[0].kind != "end":
            self._fail()

    def _fail(self) -> NoReturn:
        """Say what stands where something else was expected."""
        token = self._tokens[0]
        what = f"'{token.text}'" if token.text else "end"
        message = f"unexpected {what} at column {token.position + 1} of '{self._text}'"
        raise ExpressionError(message, hint=_HINTS.get(token.text))
