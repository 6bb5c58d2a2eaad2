"""What code would import of its repository, as far as its text says."""

from __future__ import annotations

from finding_tickets.ground.imports import reach

FILES = {
    "verifiers/a_1.py": "import torch\nfrom finding_tickets.workload import Point\nimport simcuda.real\n",
    "fixes/a_1/fix.py": "def check():\n    from pkg import fast, norm\n",
    "src/pkg/__init__.py": "from . import norm\n",
    "src/pkg/norm.py": "",
    "src/finding_tickets/workload.py": "import secret\n",
}


def read(path: str) -> bytes | None:
    """The text of a file."""
    return FILES[path].encode() if path in FILES else None


def test_what_is_there_and_what_is_not_is_reached() -> None:
    """Anywhere in the text, at every place where Python would look."""
    found = reach(read, ["fixes/a_1/fix.py"], [])
    assert {"fixes/a_1/fix.py", "src/pkg/__init__.py", "src/pkg/norm.py"} == FILES.keys() & set(found)
    for path in ("pkg.py", "pkg/fast.py", "src/pkg/fast.py", "src/pkg/fast/__init__.py"):
        assert path in found


def test_the_tool_is_no_code_of_a_repository() -> None:
    """Also in its own one: what measures is loaded already. Other packages could be anybody's."""
    found = reach(read, ["verifiers/a_1.py"], ["finding_tickets.workload"])
    assert {
        "verifiers/a_1.py",
        "torch.py",
        "torch/__init__.py",
        "src/torch.py",
        "src/torch/__init__.py",
    } == set(found)
