"""Importing verifiers and variants from a repository, and naming places in it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import Repository

import finding_tickets
from finding_tickets.measure.loading import imported_files, load_function, load_workload
from finding_tickets.measure.tasks import CannotMeasureError, FunctionPath, describe, portable
from simcuda.ledger import Ledger

VERIFIER = """
from finding_tickets.workload import Point, Workload
workload = Workload(ticket="X", build=lambda point, device, generator: (), sweep=[{sweep}])
"""


@pytest.fixture(autouse=True)
def clean_modules() -> Iterator[None]:
    """Modules and paths that a test imports are forgotten after it."""
    modules, path = set(sys.modules), list(sys.path)
    yield
    for name in set(sys.modules) - modules:
        del sys.modules[name]
    sys.path[:] = path


def test_a_verifier_is_a_file_with_a_workload(repository: Repository) -> None:
    """The variable is called ``workload``."""
    repository.write("verifiers/x.py", VERIFIER.format(sweep="Point(n=1)"))
    assert "X" == load_workload("verifiers/x.py", repository.root).ticket


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("workload = 3", "verifiers/x.py: defines no 'workload'"),
        (VERIFIER.format(sweep=""), "verifiers/x.py: the sweep is empty"),
        (
            VERIFIER.format(sweep="Point(n=1), Point(m=1)"),
            r"Point\(m=1\) has other variables than Point\(n=1\)",
        ),
    ],
)
def test_what_is_no_workload_is_refused(repository: Repository, text: str, message: str) -> None:
    """A run that would measure nothing does not start."""
    repository.write("verifiers/x.py", text)
    with pytest.raises(CannotMeasureError, match=message):
        load_workload("verifiers/x.py", repository.root)


def test_code_that_a_verifier_imports_replaces_nothing(repository: Repository) -> None:
    """What replaces the counting at its import is found out though no variant is the first to import it."""
    repository.write("src/pkg/__init__.py", "from simcuda.ledger import Ledger\nLedger.count = print\n")
    repository.write("verifiers/x.py", "import pkg\n" + VERIFIER.format(sweep="Point(n=1)"))
    before = Ledger.count
    with pytest.raises(CannotMeasureError, match=r"^verifiers/x.py: replaces simcuda\.ledger\.Ledger"):
        load_workload("verifiers/x.py", repository.root)
    assert before is Ledger.count


def test_functions_come_from_files_and_from_modules(repository: Repository) -> None:
    """A file may import its neighbours by their path from the root; a method of a class is a function too."""
    repository.write("fixes/x/helper.py", "VALUE = 5\n")
    repository.write("fixes/x/found.py", "from fixes.x.helper import VALUE\ndef check(): return VALUE\n")
    repository.write("src/package/core.py", "class Part:\n    @staticmethod\n    def check(): return 6\n")
    found = load_function(FunctionPath("fixes/x/found.py", "check"), repository.root)
    other = load_function(FunctionPath("package.core", "Part.check"), repository.root)
    assert (5, 6) == (found(), other())
    expected = ("fixes/x/found.py", "fixes/x/helper.py", "src/package/core.py")
    assert expected == imported_files(repository.root)


@pytest.mark.parametrize(
    "source", [FunctionPath("fixes/x/found.py", "gone"), FunctionPath("fixes/x/gone.py", "check")]
)
def test_what_is_not_there_is_named(repository: Repository, source: FunctionPath) -> None:
    """A missing function and a missing file are told by the file's name."""
    repository.write("fixes/x/found.py", "def check(): ...\n")
    with pytest.raises(CannotMeasureError, match=source.module):
        load_function(source, repository.root)


def test_a_missing_module_is_told_from_one_that_it_imports(repository: Repository) -> None:
    """The first is a wrong name in the ticket, the second an error of the code."""
    repository.write("src/tiny/__init__.py", "")
    repository.write("src/tiny/history.py", "import gone\n")
    with pytest.raises(CannotMeasureError, match=r"^there is no module tiny\.histroy$"):
        load_function(FunctionPath("tiny.histroy", "f"), repository.root)
    with pytest.raises(ModuleNotFoundError, match="No module named 'gone'"):
        load_function(FunctionPath("tiny.history", "f"), repository.root)


def test_an_error_is_described_where_the_repository_caused_it(repository: Repository) -> None:
    """The innermost line of the repository's own code is named, not one of the library it called."""
    repository.write("fixes/x/found.py", "import json\n\ndef check():\n    return json.loads('{')\n")
    function = load_function(FunctionPath("fixes/x/found.py", "check"), repository.root)
    with pytest.raises(ValueError, match="Expecting") as caught:
        function()
    assert describe(caught.value, repository.root).startswith(
        "fixes/x/found.py:4: JSONDecodeError: Expecting"
    )


def test_paths_are_the_same_on_every_machine(tmp_path: Path) -> None:
    """Files are named from the root, installed ones from where they are installed, also below the root."""
    site = tmp_path / ".venv/lib/site-packages"
    sys.path.insert(0, str(site))
    assert "fixes/x.py" == portable(str(tmp_path / "fixes/x.py"), tmp_path)
    assert "numpy/core.py" == portable(str(site / "numpy/core.py"), tmp_path)
    assert "finding_tickets/__init__.py" == portable(str(finding_tickets.__file__), tmp_path)
    assert "lost.py" == portable("/nowhere/lost.py", tmp_path)


def test_what_stands_beside_a_verifier_comes_with_it(repository: Repository) -> None:
    """Code of another root is found there first, but the verifier's own helpers are those of its folder."""
    repository.write("here/verifiers/sizes.py", "SIZE = 1\n")
    repository.write("there/verifiers/sizes.py", "SIZE = 2\n")
    repository.write("here/made.py", "NAME = 'here'\n")
    repository.write("there/made.py", "NAME = 'there'\n")
    importing = "from made import NAME\nfrom verifiers.sizes import SIZE\n"
    verifier = VERIFIER.replace('"X"', "NAME").format(sweep="Point(n=SIZE)")
    repository.write("here/verifiers/x.py", importing + verifier)
    loaded = load_workload("verifiers/x.py", repository.root / "here", repository.root / "there")
    assert ("there", 1) == (loaded.ticket, loaded.sweep[0].n)
