"""The recipes of docs/bisect.md find the commit that they look for, word for word as the page has them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import Git, Repository
from tests.verify.conftest import FEW_POINTS, FIX, FOUND

PAGE = Path(__file__).parents[1] / "docs/bisect.md"
RECIPES = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
REMEDIATION = """\
## Remediation

```yaml
verifier: verifiers/sums.py
variants: {{found: {found}{fix}}}
claims: {claims}
```
"""
# What is found of T-01 does not change; its fix, and what is found of T-02, are the code of each commit.
UNDONE = REMEDIATION.format(
    found="fixes/t_01/found.py:check",
    fix=", fix: src/pkg/norms.py:check",
    claims="{found: {syncs: tensors}, fix: {syncs: 1}}",
)
INTRODUCED = REMEDIATION.format(found="src/pkg/norms.py:check", fix="", claims="{found: {syncs: tensors}}")


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES, ids=["undid a fix", "introduced a defect"])
def test_a_recipe_finds_the_commit(
    repository: Repository, git: Git, tmp_path_factory: pytest.TempPathFactory, recipe: str
) -> None:
    """Of five commits the fourth brings the waits; the second cannot be imported, and is skipped."""
    place = tmp_path_factory.mktemp("around") / "repository"
    program = tmp_path_factory.mktemp("bin") / "tickets"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m finding_tickets "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    texts = {
        "begun": FIX,
        "broken": "import gone\n",
        "mended": f"{FIX}# mended\n",
        "waits": FOUND,
        "filed": f"{FOUND}# filed\n",
    }
    for name, text in texts.items():
        repository.write("src/pkg/norms.py", text)
        if name == "filed":
            repository.ticket("T-01", more=UNDONE)
            repository.ticket("T-02", more=INTRODUCED)
            repository.write("fixes/t_01/found.py", FOUND)
            repository.write("verifiers/sums.py", FEW_POINTS.format(ticket="T-01"))
        git("add", "--all")
        git("commit", "--quiet", "-m", name)
        if name == "begun":
            git("tag", "v1.0")
    # The recipe makes a folder beside the repository.
    git("clone", "--quiet", str(repository.root), str(place))
    ran = subprocess.run(
        ["sh", "-e", "-c", recipe],
        cwd=place,
        env={**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == ran.returncode, ran.stdout + ran.stderr
    culprit = git("rev-parse", "HEAD~1").strip()
    assert f"{culprit} is the first bad commit" in ran.stdout
    for folder in (place, place.parent / "bisect"):
        assert "" == git("-C", str(folder), "status", "--porcelain")
