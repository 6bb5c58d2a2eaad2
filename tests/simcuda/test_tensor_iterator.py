import pytest

from simcuda.costs.launches import parts

FAR = 2**31
PARTS = [
    # The last byte offset may be 2^31 - 2: 2^29 elements of 4 bytes fit, one more does not.
    ((2**29,), [(4,)], [(2**29,)]),
    ((2**29 + 1,), [(4,)], [(2**28,), (2**28 + 1,)]),
    # A result of 1 byte an element does not help an operand of 4 bytes.
    ((2**30,), [(1,), (4,)], [(2**29,), (2**29,)]),
    # An expanded operand has no offsets, but 2^31 elements cannot be numbered.
    ((2**31 - 1,), [(0,)], [(2**31 - 1,)]),
    ((2**31,), [(0,)], [(2**30,), (2**30,)]),
    ((3, 5), [(20, 4)], [(3, 5)]),
    # Halves of 2^29 and 2^29 + 1; the second is halved again.
    ((2**30 + 1,), [(4,)], [(2**29,), (2**28,), (2**28 + 1,)]),
    # Of two dimensions that reach equally far the last is halved first, then the other.
    ((2, 2), [(FAR, FAR)], [(1, 1)] * 4),
    ((2, 2), [(2**30, 2**30)], [(2, 1), (2, 1)]),
]


@pytest.mark.parametrize(("shape", "strides", "expected"), PARTS)
def test_an_iteration_is_halved_until_its_parts_fit(
    shape: tuple[int, ...], strides: list[tuple[int, ...]], expected: list[tuple[int, ...]]
) -> None:
    """By the dimension that reaches furthest."""
    assert expected == list(parts(shape, strides))
