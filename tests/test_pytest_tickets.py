"""The pytest plugin for tickets, as somebody's test suite meets it."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

# Loaded by a test of its own, these would be taken down with it.
import yaml  # noqa: F401
from tests.conftest import Repository
from tests.verify.conftest import CLAIMS
from tests.verify.conftest import add_with_few_points as add

import finding_tickets.gate.check
import finding_tickets.report.text
import finding_tickets.verify.verify  # noqa: F401

pytest_plugins = ["pytester"]

PLUGIN = ("-p", "pytest_tickets")


@pytest.fixture
def suite(pytester: pytest.Pytester) -> Repository:
    """A repository with a test, a ticket that is verified, one that is not as it says, and one unmeasured."""
    repository = Repository(pytester.path)
    repository.write("tests/test_other.py", "def test_passes(): ...\n")
    repository.write("pytest.ini", "[pytest]\ntestpaths = tests\n")
    add(repository, "A-1")
    add(repository, "B-1", claims=CLAIMS.replace("syncs: 1", "syncs: 0"))
    repository.ticket("C-1")
    return repository


def test_the_package_brings_the_plugin() -> None:
    """Its metadata names it for pytest to find; metadata of an older checkout may not."""
    project = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    assert 'pytest_tickets = "pytest_tickets"' in project
    found = {entry.name: entry.value for entry in entry_points(group="pytest11")}
    assert found.get("pytest_tickets") in {"pytest_tickets", None}


@pytest.mark.slow
@pytest.mark.usefixtures("suite")
def test_each_verifier_is_a_test_of_its_id(pytester: pytest.Pytester) -> None:
    """What holds passes, what does not fails with its report, and no evidence is written.

    pytest's own option writes all of that as JUnit XML.
    """
    options = ("--tickets", "-v", "-p", "no:cacheprovider", "--junit-xml", "junit.xml")
    result = pytester.runpytest(*PLUGIN, *options)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        [
            "tests/test_other.py::test_passes PASSED*",
            "tickets/A-1.md::A-1 PASSED*",
            "tickets/B-1.md::B-1 FAILED*",
            "B-1  failed: 1 of 2 claims about fix is false",
            "*fix.syncs: claimed 0; measured 1 at tensors=1, size=7 and at 1 more point (NOT AS EXPECTED)",
        ]
    )
    assert not (pytester.path / "evidence").exists()
    written = ET.parse(pytester.path / "junit.xml")  # noqa: S314 - pytest's own
    cases = {case.get("name"): case for case in written.iter("testcase")}
    assert {"test_passes", "A-1", "B-1"} == set(cases)
    assert cases["A-1"].find("failure") is None
    failure = cases["B-1"].find("failure")
    assert failure is not None
    assert "fix.syncs: claimed 0; measured 1" in (failure.text or "")


@pytest.mark.slow
@pytest.mark.usefixtures("suite")
def test_tickets_are_chosen_as_tests_are(pytester: pytest.Pytester) -> None:
    """By ``-k``, among all others."""
    result = pytester.runpytest(*PLUGIN, "--tickets", "-k", "A-1", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, deselected=2)


@pytest.mark.slow
def test_what_cannot_be_measured_fails(pytester: pytest.Pytester, suite: Repository) -> None:
    """A claim that does not parse, a key that is none and a verifier that raises say why."""
    add(suite, "A-1", claims="claims: {found: {syncs: 'tensors +'}}")
    add(suite, "D-1", claims="clams: {}")
    add(suite, "B-1", verifier="raise RuntimeError('no')\n")
    result = pytester.runpytest(*PLUGIN, "--tickets", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=3)
    result.stdout.fnmatch_lines(
        [
            "*claim found.syncs: unexpected end*",
            "B-1  inconclusive: verifiers/b_1.py:1: RuntimeError: no",
            "tickets/D-1.md:*: the Remediation block has no 'clams'*",
        ]
    )


@pytest.mark.usefixtures("suite")
def test_without_the_option_nothing_is_read(pytester: pytest.Pytester) -> None:
    """Neither is a ticket a test, nor is anything of the tool imported."""
    pytester.makeconftest(
        "import sys\n\ndef pytest_unconfigure():\n"
        "    print([name for name in sys.modules if name.startswith('finding_tickets')])\n"
    )
    result = pytester.runpytest_subprocess(*PLUGIN, "-p", "no:cacheprovider", "-p", "no:pytest_simcuda")
    result.assert_outcomes(passed=1)
    assert "[]" == result.outlines[-1]


def test_a_folder_without_a_register_is_wrong_usage(pytester: pytest.Pytester) -> None:
    """The message is the tool's, with what to do about it."""
    result = pytester.runpytest(*PLUGIN, "--tickets", "--tickets-root", "nowhere")
    assert pytest.ExitCode.USAGE_ERROR == result.ret
    result.stderr.fnmatch_lines(["*--tickets: --root nowhere: no such folder*"])
