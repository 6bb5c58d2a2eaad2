"""The script that compares two versions of PyTorch's sources names the rules to read again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from docs.pages import changed

from simcuda.costs.rules import RULES


def write(root: Path, files: Mapping[str, str]) -> Path:
    """Write files below a folder, and return it."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


@pytest.mark.parametrize("below", ["aten/src/ATen/native/cuda/", ""])
def test_rules_whose_file_changed_or_went_are_to_be_read_again(tmp_path: Path, below: str) -> None:
    """In checkouts, and in folders of single files; what is the same, or in neither, is not."""
    files = {f"{below}{name}": "1" for name in ("CUDAScalar.cu", "Equal.cpp", "Nonzero.cu", "Other.cu")}
    old = write(tmp_path / "old", files)
    new = write(tmp_path / "new", files | {f"{below}CUDAScalar.cu": "2", f"{below}Other.cu": "2"})
    (new / f"{below}Equal.cpp").unlink()
    again, unknown = changed.report(changed.compare(old, new))
    assert [
        "read-one-value: ATen/native/cuda/CUDAScalar.cu changed",
        "taken apart: equal: ATen/native/cuda/Equal.cpp gone",
    ] == sorted(again)
    # The rule of nonzero names one file, which is the same.
    unknown_rules = {line.partition(":")[0] for line in unknown}
    assert "nonzero" not in unknown_rules
    assert {"where", "one-kernel"} <= unknown_rules


def test_a_name_without_a_folder_is_any_file_of_that_name(tmp_path: Path) -> None:
    """A source names a folder once: a change of any file that it may mean counts."""
    files = {"native/Sort.cpp": "1", "native/cuda/Sort.cpp": "1"}
    old, new = write(tmp_path / "old", files), write(tmp_path / "new", files)
    assert [Path("native/Sort.cpp"), Path("native/cuda/Sort.cpp")] == changed.find(
        changed.read_folder(old), "Sort.cpp"
    )
    assert changed.compare(old, new)["cuda/Sort.cpp"] == "same"
    (new / "native/cuda/Sort.cpp").write_text("2", encoding="utf-8")
    assert changed.compare(old, new)["cuda/Sort.cpp"] == "changed"


def test_nearly_every_rule_names_a_file() -> None:
    """Two tables of single kernels name a folder: they are listed as not compared."""
    without = {rule.id for rule in RULES if not changed.FILE.findall(rule.source)}
    assert {"one-kernel", "fill-then-kernel"} == without
