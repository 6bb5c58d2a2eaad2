"""Fingerprints: the same for the same finding wherever its lines are, and another one for another."""

from __future__ import annotations

from finding_tickets.importers.identity import Identity, Traits, fingerprints, parts_of

TRAITS = Traits(tool="t", rule="R1", path="a.py", symbol="f", text="too long (90 > 88)", code="x = 1")


def test_a_tools_own_fingerprint_stands_for_the_result_in_any_file() -> None:
    """With a whole fingerprint nothing but the tool and the rule counts beside it."""
    own = {"v1": "abc"}
    moved = TRAITS._replace(path="b.py", text="else", code="else", symbol="g")
    assert parts_of(TRAITS, own, {"p": "q"}) == parts_of(moved, own, None)
    for other in (TRAITS._replace(tool="u"), TRAITS._replace(rule="R2")):
        assert parts_of(TRAITS, own, None) != parts_of(other, own, None)


def test_a_partial_fingerprint_needs_its_file() -> None:
    """The hash of some lines is the same in every copy of them."""
    own = {"primaryLocationLineHash": "abc:1"}
    assert parts_of(TRAITS, None, own) == parts_of(TRAITS._replace(text="else", code="else"), {}, own)
    assert parts_of(TRAITS, None, own) != parts_of(TRAITS._replace(path="b.py"), None, own)
    assert parts_of(TRAITS, None, own) != parts_of(TRAITS, None, {"primaryLocationLineHash": "abc:2"})


def test_a_sentence_is_no_fingerprint() -> None:
    """Some tools write in its place that the user has to log in, for every result."""
    assert parts_of(TRAITS, None, None) == parts_of(TRAITS, {"v1": "requires login"}, {"v2": ""})


def test_without_fingerprints_numbers_do_not_count() -> None:
    """Numbers in a message count lines, characters or columns; those within names are part of the names."""
    same = [TRAITS._replace(text="too long (91 > 88)"), TRAITS._replace(code="x  =\n1")]
    other = [TRAITS._replace(**{name: "f1"}) for name in ("tool", "rule", "path", "symbol", "text", "code")]
    assert {parts_of(TRAITS, None, None)} == {parts_of(each, None, None) for each in same}
    assert 7 == len({parts_of(each, None, None) for each in [TRAITS, *other]})
    # Digits without end take time in proportion to their number, not to its square.
    assert parts_of(TRAITS._replace(text="1" * 10**6 + "a"), None, None)
    assert parts_of(TRAITS._replace(text="f1"), None, None) != parts_of(
        TRAITS._replace(text="f2"), None, None
    )


def test_equal_results_are_told_apart_by_their_order_in_the_file() -> None:
    """The first of two stays the first one, whichever the log has first and however far both move."""
    first, second = Identity(("x",), (3, 1)), Identity(("x",), (9, 1))
    one, two = fingerprints([first, second])
    assert one != two
    assert [two, one] == fingerprints([second, first])
    assert [one, two] == fingerprints([Identity(("x",), (13, 1)), Identity(("x",), (19, 5))])


def test_a_result_that_is_there_twice_is_one() -> None:
    """Equal results at the same place have the same fingerprint."""
    assert 1 == len(set(fingerprints([Identity(("x",), (3, 1))] * 2)))
