"""Fitting a law against searching for it with least squares, and how fitting grows.

The values are a law of three terms, such as ``4*a + 7*a*b + 2``, at the points of a sweep. The peer tries
every sum of one to three of the same terms with ``numpy.linalg.lstsq`` and keeps those that fit, which is how
somebody would look for a law without this package. It neither knows whether the sweep determines what it
finds nor takes the larger of two laws. One least squares over all terms at once stands beside it, which gives
numbers that no claim could state; and fitting where there is no law, which tries everything.

Growth is that of the time against that of the work: linear in points, and quadratic in the number of terms
that so many variables make, for of three terms the search tries two.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random
from statistics import median

import numpy as np

from benchmarks.command import main
from benchmarks.result import Bound, Number, Result, Size
from finding_tickets.claims.laws import Column, directions, identify

ROUNDS = {Size.FULL: 9, Size.QUICK: 3, Size.LEAST: 1}
PEER, POINTS, VARIABLES = Bound(0.1), Bound(1.5), Bound(1.5)
FEW, MANY = 8, 64
"""Points."""
TWO, FOUR = 2, 4
"""Variables."""
LONGEST = 3
LARGEST = 2000
CLOSE = 1e-6
Point = dict[str, int]


@dataclass(frozen=True)
class Law:
    """Points of a sweep, the values of a law there, and the law, which is empty where there is none."""

    points: Sequence[Point]
    values: Sequence[int]
    text: str

    @property
    def known(self) -> list[Column]:
        """The values of the terms that it may be made of."""
        return list(directions(tuple(tuple(point.items()) for point in self.points)))


def law(points: int, variables: int, number: int) -> Law:
    """A law of its own for each number, so that nothing is known from the one before."""
    chance = Random(f"{points}-{variables}-{number}")  # noqa: S311 - chance, not secrecy
    names = "abcd"[:variables]
    sweep = [{name: chance.randrange(1, LARGEST) for name in names} for _ in range(points)]
    first, last, constant = (chance.randrange(2, 9) for _ in range(LONGEST))
    left, right = names[0], names[-1]
    values = [first * at[left] + last * at[left] * at[right] + constant for at in sweep]
    return Law(sweep, values, f"{first}*{left} + {last}*{left}*{right} + {constant}")


def none(points: int, variables: int, number: int) -> Law:
    """Values by chance."""
    sweep = law(points, variables, number).points
    chance = Random(f"none-{number}")  # noqa: S311 - chance, not secrecy
    return Law(sweep, [chance.randrange(1, LARGEST) for _ in sweep], "")


def fitted(given: Law) -> float:
    """Seconds until the law is found, and no other.

    Raises:
        RuntimeError: It is not.
    """
    start = time.perf_counter()
    found = identify(given.points, given.values)
    taken = time.perf_counter() - start
    if found != ((given.text,) if given.text else ()):
        raise RuntimeError(f"{given.text or 'no law'} was taken for {found}")
    return taken


def searched(given: Law) -> float:
    """Seconds until all sums of up to three terms are tried, of which one at least must fit."""
    start = time.perf_counter()
    columns = np.array(given.known, dtype=float)
    values = np.array(given.values, dtype=float)
    sums = (chosen for size in range(1, LONGEST + 1) for chosen in combinations(range(len(columns)), size))
    fitting = [chosen for chosen in sums if _fits(columns[list(chosen)].T, values)]
    taken = time.perf_counter() - start
    if not fitting:
        raise RuntimeError(f"nothing fits {given.text}")
    return taken


def _fits(columns: np.ndarray, values: np.ndarray) -> bool:
    coefficients, *_ = np.linalg.lstsq(columns, values, rcond=None)
    return bool(np.abs(columns @ coefficients - values).max() < CLOSE * np.abs(values).max())


def at_once(given: Law) -> float:
    """Seconds for one least squares over all terms."""
    start = time.perf_counter()
    columns = np.array(given.known, dtype=float)
    np.linalg.lstsq(columns.T, np.array(given.values, dtype=float), rcond=None)
    return time.perf_counter() - start


def measure(size: Size) -> Iterator[Result]:
    """The same laws by all ways in turn; then laws of more points, and of more variables."""
    rounds = [one_round(number) for number in range(1 + ROUNDS[size])][1:]
    took = {step: median(each[step] for each in rounds) * 1e3 for step in rounds[0]}
    yield Result(
        name="laws",
        what="a law of three terms fitted / searched with numpy.linalg.lstsq",
        value=median(each["fitted"] / each["searched"] for each in rounds),
        bound=PEER,
        beside=tuple(
            Number(what, took[step], "ms")
            for step, what in {
                "fitted": f"fitted, {FEW} points of {TWO} variables",
                "searched": "searched",
                "at once": "one least squares over all terms",
                "none": "fitted, no law",
            }.items()
        ),
    )
    yield Result(
        name="laws-points",
        what=f"fitting {MANY} points / {FEW} points, by the number of points",
        value=median(each["many"] / each["fitted"] for each in rounds) * FEW / MANY,
        bound=POINTS,
        beside=(Number(f"{MANY} points", took["many"], "ms"), Number(f"{FEW} points", took["fitted"], "ms")),
    )
    few, many = (median(each[name] for each in rounds) for name in ("few terms", "many terms"))
    yield Result(
        name="laws-variables",
        what=f"fitting {FOUR} variables / {TWO}, by the square of the number of terms",
        value=median(each["four"] / each["fitted"] for each in rounds) * (few / many) ** 2,
        bound=VARIABLES,
        beside=(
            Number(f"{FOUR} variables", took["four"], "ms"),
            Number(f"{TWO} variables", took["fitted"], "ms"),
            Number("terms", many, f"and {few:.0f}"),
        ),
    )


def one_round(number: int) -> dict[str, float]:
    """Seconds of every way, for laws that no other round has, and how many terms there were."""
    plain, wide = law(FEW, TWO, number), law(FEW, FOUR, number)
    return {
        "fitted": fitted(plain),
        "searched": searched(plain),
        "at once": at_once(plain),
        "none": fitted(none(FEW, TWO, number)),
        "many": fitted(law(MANY, TWO, number)),
        "four": fitted(wide),
        "few terms": len(plain.known),
        "many terms": len(wide.known),
    }


if __name__ == "__main__":
    sys.exit(main(measure, __doc__))
