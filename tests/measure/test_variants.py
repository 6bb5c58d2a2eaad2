"""Variants by convention: every file in ``fixes/<id>/`` and the public function that all of them share."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import Repository

from finding_tickets.errors import BadDataError
from finding_tickets.measure.tasks import FunctionPath, find_variants


def test_every_file_is_a_variant_of_its_name(repository: Repository) -> None:
    """``found`` comes first and ``fix`` last; helpers, private functions and hidden files do not count."""
    repository.write(
        "fixes/x/fix.py", "import helper\nclass Shapes: ...\ndef _own(): ...\ndef check(): ...\n"
    )
    repository.write("fixes/x/found.py", "def check(): ...\ndef used_here_only(): ...\n")
    repository.write("fixes/x/other.py", "async def unrelated(): ...\ndef check(): ...\n")
    repository.write("fixes/x/_shared.py", "raise SystemExit\n")
    expected = {name: FunctionPath(f"fixes/x/{name}.py", "check") for name in ("found", "other", "fix")}
    found = find_variants("fixes/x", repository.root)
    assert list(expected.items()) == list(found.items())


def test_there_may_be_none(tmp_path: Path) -> None:
    """A folder that does not exist holds no variant."""
    assert {} == find_variants("fixes/x", tmp_path)


@pytest.mark.parametrize(
    ("fix", "message"),
    [
        ("def other(): ...", "share no public function"),
        ("def check(): ...\ndef second(): ...", "share the functions check, second"),
        ("def check(:", "not Python"),
        (b"\xff\xfe\0", "not Python|cannot be read"),
    ],
)
def test_a_folder_without_one_common_function_is_refused(
    repository: Repository, fix: str | bytes, message: str
) -> None:
    """What cannot be decided is said, with the file, instead of guessed."""
    repository.write("fixes/x/found.py", "def check(): ...\ndef second(): ...\n")
    repository.write("fixes/x/fix.py", fix)
    with pytest.raises(BadDataError, match=message) as caught:
        find_variants("fixes/x", repository.root)
    assert str(caught.value.file).startswith("fixes/x")
