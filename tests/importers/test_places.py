"""Where results are: paths within the repository, whatever the log calls the files."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finding_tickets.importers.sarif import read_log

HERE = "/home/me/project"


def path(place: object, bases: object = {}, *roots: str) -> str | None:
    """The path of a place in a run with these bases, below ``HERE``."""
    result = {"locations": [{"physicalLocation": {"artifactLocation": place}}]}
    log = {"version": "2.1.0", "runs": [{"originalUriBaseIds": bases, "results": [result]}]}
    (found,) = read_log(json.dumps(log).encode(), "a.sarif", [HERE, *roots])
    (spot,) = found.spots
    return spot.path if spot.uri else "no file"


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("src/a.py", "src/a.py"),
        ("./src/../src//a.py", "src/a.py"),
        ("src/with%20space/%C3%BC.py", "src/with space/ü.py"),
        ("src\\win\\a.py", "src/win/a.py"),
        ("file:///home/me/project/src/a.py", "src/a.py"),
        ("file:/home/me/project/a.py", "a.py"),
        ("/home/me/project/a.py", "a.py"),
        ("file:///ci/project/a.py", None),
        ("file:///home/me/project2/a.py", None),
        ("../a.py", None),
        ("src/%2e%2e/%2e%2e/a.py", None),
        ("file:///home/me/project/../a.py", None),
        ("/etc/passwd", None),
        ("C:\\other\\a.py", None),
        ("https://example.com/a.py", None),
        ("file://server/share/a.py", None),
        ("a%0Ab.py", None),
        ("a\u202eb.py", None),
        ("", "no file"),
    ],
)
def test_a_uri_without_a_base(uri: str, expected: str | None) -> None:
    """Relative ones are relative to the repository; absolute ones count where they are below it."""
    assert expected == path({"uri": uri})


BASES = {
    "REPO": {"description": {"text": "not told"}},
    "SRC": {"uri": "src/", "uriBaseId": "REPO"},
    "%SRCROOT%": {"uri": "file:///ci/project/"},
    "GEN": {"uri": "file:///ci/project/gen"},
    "LOGS": {"uri": "file:///C:/logs/"},
}


@pytest.mark.parametrize(
    ("place", "bases", "expected"),
    [
        ({"uri": "a.py", "uriBaseId": "%SRCROOT%"}, {}, "a.py"),
        ({"uri": "a.py", "uriBaseId": "%SRCROOT%"}, BASES, "a.py"),
        ({"uri": "a.py", "uriBaseId": "GEN"}, BASES, None),
        ({"uri": "a.py", "uriBaseId": "LOGS"}, BASES, None),
        ({"uri": "a.py", "uriBaseId": "SRC"}, {name: BASES[name] for name in ("REPO", "SRC")}, "src/a.py"),
        ({"uri": "a.py", "uriBaseId": "ROOTPATH"}, {"ROOTPATH": {"uri": "file:///"}}, "a.py"),
        ({"uri": "a.py", "uriBaseId": "SRCROOT"}, {"SRCROOT": {"uri": f"file://{HERE}/src/"}}, "src/a.py"),
        ({"uri": "../a.py", "uriBaseId": "SRC"}, {name: BASES[name] for name in ("REPO", "SRC")}, "a.py"),
    ],
)
def test_a_uri_with_a_base(place: object, bases: object, expected: str | None) -> None:
    """A base may be the root, or a folder below it; others are elsewhere."""
    assert expected == path(place, bases)


def test_the_root_may_have_been_elsewhere() -> None:
    """The user may say where the tool saw the repository, as a path or a URI."""
    for root, uri in [
        ("/ci/project", "file:///ci/project/a.py"),
        ("file:///ci/project/", "/ci/project/a.py"),
    ]:
        assert "a.py" == path({"uri": uri}, {}, root)
    assert "gen/a.py" == path({"uri": "a.py", "uriBaseId": "GEN"}, BASES, "/ci/project")


@given(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.sampled_from(["", "%SRCROOT%", "SRC", "GEN", "LOGS"]),
)
def test_no_path_leads_out_of_the_repository(uri: str, base: str) -> None:
    """Whatever a URI is, its path is relative, without detours, and on one line."""
    found = path({"uri": uri, "uriBaseId": base}, BASES)
    if found and found != "no file":
        assert found.isprintable()
        assert not found.startswith("/")
        assert {"", ".", ".."}.isdisjoint(found.split("/"))
