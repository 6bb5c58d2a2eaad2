"""The files of a ticket are where its ID says, whatever the ID is."""

from __future__ import annotations

from pathlib import Path

import pytest

from finding_tickets.ground.files import fixes_folder, safe_name, verifier_path


def test_an_id_names_files() -> None:
    """The usual IDs become names that Python can import; dots are kept."""
    assert ("verifiers/b7_pt_02.py", "fixes/b7_pt_02") == (
        verifier_path("B7-PT-02"),
        fixes_folder("B7-PT-02"),
    )
    assert ("B7-PT-02", "torch2.13.0-cu130") == (safe_name("B7-PT-02"), safe_name("torch2.13.0-cu130"))


@pytest.mark.parametrize(
    "ticket_id",
    [
        "../../ETC/PASSWD",
        "/etc/passwd",
        "..",
        ".",
        "",
        "A/B",
        "A\\B",
        "A\nB",
        "A:B",
        "9" * 5000,
        "\u0130" * 200,
        "\U0001f525",
    ],
)
def test_any_id_names_a_file_of_its_folder(tmp_path: Path, ticket_id: str) -> None:
    """The name has one part and can be looked up, and stays below its folder."""
    for folder, name in (
        ("verifiers", verifier_path(ticket_id)),
        ("fixes", f"{fixes_folder(ticket_id)}/fix.py"),
    ):
        assert (tmp_path / name).resolve().is_relative_to(tmp_path / folder)
        assert name.removeprefix(f"{folder}/").removesuffix("/fix.py").count("/") == 0
        assert not (tmp_path / name).is_file()
    assert len(f"{safe_name(ticket_id)}.json".encode()) <= 255
