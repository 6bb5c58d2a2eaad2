"""Files are created all together, never over others, also by many at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from finding_tickets.ground.files import create


def test_nothing_is_left_behind_where_one_file_exists(tmp_path: Path) -> None:
    """The files created before the one that is in the way are removed, that one is kept."""
    (tmp_path / "b").write_text("mine")
    with pytest.raises(FileExistsError):
        create(tmp_path, {"folder/a": "x", "b": "y"})
    assert ([], "mine") == (list((tmp_path / "folder").iterdir()), (tmp_path / "b").read_text())


def test_of_many_at_once_one_succeeds(tmp_path: Path) -> None:
    """Whoever creates a file first has it; all others are told."""

    def attempt(number: int) -> bool:
        try:
            create(tmp_path, {"ticket": str(number)})
        except FileExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(attempt, range(32)))
    assert 1 == sum(won)
    assert str(won.index(True)) == (tmp_path / "ticket").read_text()


def test_no_link_leads_out(tmp_path: Path) -> None:
    """Behind a folder that is a link to elsewhere nothing is created, and nothing before it stays."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (root / "link").symlink_to(outside)
    with pytest.raises(OSError, match="the link leaves the repository"):
        create(root, {"first": "x", "link/folder/second": "y"})
    assert (["link"], []) == ([each.name for each in root.iterdir()], list(outside.iterdir()))
