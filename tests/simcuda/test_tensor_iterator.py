from simcuda.costs.launches import parts


def test_an_iteration_fits_up_to_the_largest_offset() -> None:
    """The last byte offset may be 2^31 - 2: 2^29 elements of 4 bytes fit, one more does not."""
    assert [(2**29,)] == list(parts((2**29,), [(4,)]))
    assert [(2**28,), (2**28 + 1,)] == list(parts((2**29 + 1,), [(4,)]))


def test_the_widest_operand_decides() -> None:
    """A result of 1 byte an element does not help an operand of 4 bytes."""
    assert [(2**29,), (2**29,)] == list(parts((2**30,), [(1,), (4,)]))


def test_elements_are_counted_too() -> None:
    """An expanded operand has no offsets, but 2^31 elements cannot be numbered."""
    assert [(2**31 - 1,)] == list(parts((2**31 - 1,), [(0,)]))
    assert [(2**30,), (2**30,)] == list(parts((2**31,), [(0,)]))


def test_what_fits_stays_whole() -> None:
    """A small iteration is one part, whatever its shape."""
    assert [(3, 5)] == list(parts((3, 5), [(20, 4)]))


def test_the_dimension_that_reaches_furthest_is_halved() -> None:
    """2^30 + 1 elements of 4 bytes: halves of 2^29 and 2^29 + 1; the second is halved again."""
    assert [(2**29,), (2**28,), (2**28 + 1,)] == list(parts((2**30 + 1,), [(4,)]))


def test_of_equal_dimensions_the_last_is_halved_first() -> None:
    """Two dimensions that reach equally far: the last is split first, then the other."""
    far = 2**31
    assert [(1, 1)] * 4 == list(parts((2, 2), [(far, far)]))
    assert [(2, 1), (2, 1)] == list(parts((2, 2), [(2**30, 2**30)]))
