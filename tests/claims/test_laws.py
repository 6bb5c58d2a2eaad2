"""Finding exact laws, and refusing to invent them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil
from random import Random

import pytest

from finding_tickets.claims.language import evaluate, parse_expression
from finding_tickets.claims.laws import CountedRun, Fit, Place, fit, fit_metrics, fit_sites, identify

Sizes = Mapping[str, int]

# Counts and sizes vary independently, with points on both sides of 110 and of 770 and one with nothing.
SWEEP: list[Sizes] = [
    {"n": n, "largest": largest, "total": total, "devices": devices}
    for n, largest, total, devices in [
        (0, 0, 9, 1),
        (4, 1024, 1100, 1),
        (6, 999, 3100, 2),
        (10, 4096, 12344, 3),
        (28, 65536, 65800, 2),
        (109, 64, 400, 2),
        (111, 70, 5001, 1),
        (200, 8, 300, 2),
        (300, 90000, 300123, 1),
        (771, 10, 6000, 1),
        (1600, 2, 1700, 1),
    ]
]
OTHER: list[Sizes] = [
    {"n": n, "largest": n * n % 97 + 1, "total": 3 * n + n * n % 41, "devices": n % 3 + 1}
    for n in (0, 2, 5, 30, 109, 115, 225, 769, 775, 2000)
]


def measured(law: Callable[[Sizes], int], sweep: list[Sizes]) -> tuple[str, ...]:
    """What is identified where the metric follows ``law``."""
    return identify(sweep, [law(point) for point in sweep])


LAWS: list[tuple[str, Callable[[Sizes], int]]] = [
    ("7", lambda _: 7),
    ("0", lambda _: 0),
    ("n", lambda p: p["n"]),
    ("4*n + 2", lambda p: 4 * p["n"] + 2),
    ("n - 1", lambda p: p["n"] - 1),
    ("3/2*total", lambda p: 3 * p["total"] // 2),
    ("64*n + 5*largest + 512", lambda p: 64 * p["n"] + 5 * p["largest"] + 512),
    ("n*devices + 1", lambda p: p["n"] * p["devices"] + 1),
    ("n*n", lambda p: p["n"] ** 2),
    ("ceil(n/110) + 2", lambda p: ceil(p["n"] / 110) + 2),
    ("max(8*largest, total)", lambda p: max(8 * p["largest"], p["total"])),
    ("max(2*n*n, 6*largest + 512)", lambda p: max(2 * p["n"] ** 2, 6 * p["largest"] + 512)),
]


@pytest.mark.parametrize(("text", "law"), [law for law in LAWS if law[0] != "3/2*total"])
def test_a_law_is_found_exactly(text: str, law: Callable[[Sizes], int]) -> None:
    """Values that follow a law over a sweep yield that law and no other."""
    assert (text,) == measured(law, SWEEP)


@pytest.mark.parametrize(("text", "law"), LAWS)
def test_other_points_give_the_same_values(text: str, law: Callable[[Sizes], int]) -> None:
    """What is identified on one sweep predicts another sweep without a miss."""
    even = [point for point in SWEEP if point["total"] % 2 == 0] if "/2" in text else SWEEP
    (found,) = measured(law, even)
    fresh = [point for point in OTHER if point["total"] % 2 == 0] if "/2" in text else OTHER
    assert [law(p) for p in fresh] == [evaluate(parse_expression(found), p) for p in fresh]


PLANE = [{"n": n, "w": w} for n, w in [(1, 90), (2, 40), (3, 700), (7, 20), (12, 333), (25, 8)]]


@pytest.mark.parametrize(
    ("law", "points", "values"),
    [
        ("5", [{"n": 1}, {"n": 2}, {"n": 3}], [5, 5, 5]),
        ("4*n + 2", [{"n": n} for n in (1, 2, 3, 5)], [6, 10, 14, 22]),
        ("64*n + 5*w + 512", PLANE, [64 * point["n"] + 5 * point["w"] + 512 for point in PLANE]),
    ],
)
def test_two_points_more_than_coefficients_are_needed(
    law: str, points: list[Sizes], values: list[int]
) -> None:
    """One point less fits as well and proves nothing; the same point twice counts once."""
    assert (law,) == identify(points, values)
    assert () == identify(points[:-1], values[:-1])
    assert () == identify([*points[:-1], points[0]], [*values[:-1], values[0]])


def test_one_point_beyond_a_step_does_not_determine_it() -> None:
    """A single point above 110 could be any height: left out, nothing predicts it."""
    few = [{"n": n} for n in (4, 40, 80, 109, 111)]
    assert () == identify(few, [ceil(point["n"] / 110) + 2 for point in few])


def test_steps_that_the_sweep_cannot_tell_apart_are_rivals() -> None:
    """Between 113 and 127 nothing decides whether the step is at 110 or at 128 minus something."""
    # ceil(n/110) and ceil(n/128) agree at 4 and 100 (1) and at 200 and 210 (2).
    # So do they at 300 (3), and 0 is on no step.
    points = [{"n": n} for n in (0, 100, 200, 210, 300)]
    assert ("ceil(n/110)", "ceil(n/128)") == identify(points, [0, 1, 2, 2, 3])


def test_one_step_is_no_law_of_steps() -> None:
    """A jump from 1 to 3 somewhere above 100 is no ``2*ceil(w/770) - 1``."""
    points = [{"w": w} for w in (4, 8, 16, 32, 64, 1000, 1200, 1500)]
    assert () == identify(points, [1 if point["w"] <= 100 else 3 for point in points])


def test_two_values_of_a_variable_prove_no_slope() -> None:
    """With 5 and 7 devices only, ``2*devices`` is one of many; a flag has no other values than 0 and 1."""
    points = [{"n": n, "devices": 5 + 2 * (n % 2)} for n in (1, 2, 4, 7, 8, 9)]
    assert () == identify(points, [2 * point["devices"] for point in points])
    flagged = [{"n": n, "flag": n % 2} for n in (1, 2, 4, 7, 8, 9)]
    assert ("2*flag",) == identify(flagged, [2 * point["flag"] for point in flagged])


def test_proportional_sizes_are_rivals() -> None:
    """Where a size is always 64 times the count, neither is preferred."""
    points = [{"n": n, "total": 64 * n} for n in (1, 2, 3, 7)]
    assert ("256*n", "4*total") == identify(points, [256 * point["n"] for point in points])


def test_a_branch_of_a_maximum_is_the_only_law_of_its_points() -> None:
    """Where all large points have two sides, ``2*sides*largest`` and ``4*largest`` are the same."""
    points = [
        {"sides": sides, "largest": largest}
        for sides, largest in [(0, 8), (1, 8), (2, 8), (2, 1 << 20), (2, 100_000), (2, 5000), (2, 70_000)]
    ]
    values = [max(32 * min(1, p["sides"]), 4 * p["largest"] * min(1, p["sides"])) for p in points]
    assert () == identify(points, values)


def test_a_maximum_needs_three_points_on_each_branch() -> None:
    """A branch of one coefficient needs two points to spare that it touches alone."""
    points = [{"a": a, "b": b} for a, b in [(10, 1), (20, 7), (35, 2), (3, 50)]]
    assert () == identify(points, [max(p["a"] * 4, p["b"] * 3) for p in points])
    points.append({"a": 11, "b": 90})
    assert () == identify(points, [max(p["a"] * 4, p["b"] * 3) for p in points])
    points.append({"a": 17, "b": 61})
    assert ("max(4*a, 3*b)",) == identify(points, [max(p["a"] * 4, p["b"] * 3) for p in points])


def test_a_point_off_the_law_leaves_no_law() -> None:
    """A law holds at every point, and in both of two runs of the same point, or is none."""
    values = [4 * point["n"] + 2 for point in SWEEP]
    assert () == identify([*SWEEP, SWEEP[5]], [*values, values[5] + 1])
    values[5] += 1
    assert () == identify(SWEEP, values)


NAMES = ("n", "largest", "devices", "flag")


def random_sweep(random: Random) -> list[Sizes]:
    """Six to fourteen points at sizes that sweeps typically have."""
    sizes = ((0, 1, 2, 5, 8, 12, 100, 300), (8, 64, 1000, 70000), (1, 2, 3), (0, 1))
    return [dict(zip(NAMES, map(random.choice, sizes), strict=True)) for _ in range(random.randint(6, 14))]


@pytest.mark.parametrize("seed", range(60))
def test_random_values_have_no_law(seed: int) -> None:
    """Numbers without a pattern are not explained, however many terms there are to choose from."""
    random = Random(seed)  # noqa: S311 - the same numbers on every run
    for points in (SWEEP, random_sweep(random)):
        assert () == identify(points, [random.randrange(6) for _ in points])


@pytest.mark.parametrize(
    "law",
    [
        # Steps only ever add whole launches or blocks; a difference of steps explains any few small numbers.
        lambda n: 2 * ceil(n / 64) - ceil(n / 30),
        # No code costs the ninth part of a wait for each of its tensors.
        lambda n: n // 9,
    ],
)
def test_a_formula_that_no_code_causes_is_a_coincidence(law: Callable[[int], int]) -> None:
    """Negative steps and odd fractions fit, and are no law."""
    points = [{"n": 9 * n} for n in (1, 3, 5, 7, 8, 11, 14, 22, 30)]
    assert () == identify(points, [law(point["n"]) for point in points])


def test_none_of_many_rivals_is_reported() -> None:
    """Where more laws fit than anyone would read, there is none."""
    points = [dict.fromkeys("abcd", n) for n in (1, 2, 3, 5)]
    assert () == identify(points, [3, 6, 9, 15])


SIZES = (1, 2, 3, 5, 8)


def run(
    at: Sizes, error: str | None = None, sites: Mapping[Place, int] | None = None, **metrics: int
) -> CountedRun:
    """A run at a point that counted ``metrics``."""
    return CountedRun(at, {**metrics, "raised": int(error is not None)}, sites or {}, error)


def test_every_metric_gets_its_law() -> None:
    """Metrics are fitted one by one over all runs that measured them."""
    fits = fit_metrics([run({"n": n}, syncs=4 * n, launches=7) for n in SIZES])
    assert {"syncs": Fit("4*n", None), "launches": Fit("7", None), "raised": Fit("0", None)} == fits


def test_runs_that_raised_take_no_part() -> None:
    """What was counted up to an exception would bend the law of the whole."""
    runs = [run({"n": n}, syncs=4 * n) for n in SIZES] + [run({"n": 13}, "RuntimeError: no", syncs=1)]
    assert "4*n" == fit_metrics(runs)["syncs"].law


def test_how_a_run_ended_is_fitted_over_all_runs() -> None:
    """Whether a variant raises may itself follow a law: here it does so where the flag is set."""
    runs = [run({"n": n, "odd": n % 2}, "RuntimeError: no" if n % 2 else None) for n in SIZES]
    assert Fit("odd", None) == fit_metrics(runs)["raised"]


def test_how_a_run_ended_is_never_more_than_once() -> None:
    """One and two devices do not prove ``devices - 1``; two flags that were never both set are not added."""
    devices = [run({"n": n, "devices": 1 + n % 2}, "RuntimeError: no" if n % 2 else None) for n in SIZES]
    flags = [run({"n": n, "a": int(n < 3), "b": int(n > 4)}, None if n == 3 else "E: no") for n in SIZES]
    expected = Fit(None, "no law, 0..1")
    assert [expected, expected] == [fit_metrics(runs)["raised"] for runs in (devices, flags)]


def test_a_count_is_no_flag_because_other_runs_raised() -> None:
    """Where runs on two devices raised, none and one of them are left and prove no slope."""
    runs = [
        run({"n": n, "devices": n % 3}, "E: no" if n % 3 == 2 else None, syncs=2 * (n % 3)) for n in range(12)
    ]
    assert Fit(None, "no law, 0..2") == fit_metrics(runs)["syncs"]


def test_a_metric_measured_at_some_points_is_fitted_over_those() -> None:
    """Graph breaks are counted on one device only."""
    runs = [run({"n": n, "devices": 1}, graph_breaks=2) for n in SIZES] + [run({"n": 3, "devices": 2})]
    assert Fit("2", None) == fit_metrics(runs)["graph_breaks"]


def test_rivals_are_shown_and_are_no_law() -> None:
    """Where the sweep cannot tell two laws apart, both are named and neither is stated."""
    runs = [run({"n": n, "total": 64 * n}, d2h_bytes=256 * n) for n in SIZES]
    assert Fit(None, "256*n or 4*total") == fit_metrics(runs)["d2h_bytes"]


def test_a_site_counts_zero_where_it_is_absent() -> None:
    """A line that waits once a tensor beyond the first is not there at all with a single tensor."""
    loop, end = (("fixes/x/found.py", line, "check", "stream_syncs") for line in (7, 9))
    runs = [run({"n": n}, sites={end: 1, **({loop: n - 1} if n > 1 else {})}) for n in SIZES]
    expected = {loop: Fit("n - 1", None), end: Fit("1", None)}
    assert expected == fit_sites(runs)


def test_only_what_is_cached_may_differ_between_runs() -> None:
    """Runs of the same work that ask the driver for other memory are alike; one more wait is a difference."""
    first, later = (CountedRun({"n": 1}, {"syncs": 1, "implicit_syncs": n}, {}, None) for n in (0, 1))
    assert first.difference(later) is None
    waits = CountedRun({"n": 1}, {"syncs": 2, "implicit_syncs": 1}, {}, None)
    assert "syncs 1, then 2" == first.difference(waits)


THREE_BY_THREE: list[Sizes] = [
    {"batch": batch, "width": width} for batch in (1, 2, 3) for width in (5, 7, 16)
]


def test_three_sizes_prove_no_quadratic() -> None:
    """0, 1, 1 at sizes 1, 2, 3 lie on a parabola, as any three numbers do; a second variable adds nothing."""
    values = [min(point["batch"] - 1, 1) for point in THREE_BY_THREE]
    assert () == identify(THREE_BY_THREE, values)
    squares = [{"n": n, "w": w} for n in (1, 2, 4, 7) for w in (5, 7, 16)]
    assert ("n*n",) == identify(squares, [point["n"] ** 2 for point in squares])


def test_a_law_must_predict_a_size_that_is_left_out() -> None:
    """Only where a is 9 do the variables differ: without it, ``a + b`` is any ``k*a + (2 - k)*b``."""
    points = [{"a": n, "b": n} for n in (1, 2, 3, 5)] + [{"a": 9, "b": b} for b in (1, 2, 3)]
    assert () == identify(points, [point["a"] + point["b"] for point in points])
    points += [{"a": 7, "b": 4}]
    assert ("a + b",) == identify(points, [point["a"] + point["b"] for point in points])


@pytest.mark.parametrize(
    ("sizes", "special", "value"), [((0, 2, 3, 5), 0, 7), ((1, 2, 3, 5), 1, 0)], ids=["none", "one"]
)
def test_a_special_case_is_named_and_not_fitted(sizes: tuple[int, ...], special: int, value: int) -> None:
    """Two waits for any size but one: three points prove the constant, and the other is named."""
    points = [{"n": n} for n in sizes]
    found = fit(points, [value if n == special else 2 for n in sizes], points)
    assert Fit(None, f"2, but {value} at n={special}", "2") == found
