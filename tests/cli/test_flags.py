"""The options of every command are a promise: changing one is a decision, not an accident."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

FLAGS = {
    "init": "--dry-run --format --help --pyproject --root",
    "list": "--columns --format --help --no-index --root",
    "show": "--format --help --history --root",
    "new": "--agent --batch --category --domain --file --format --from --help --root --severity --summary "
    "--symbol --title --with-verifier",
    "import": "--agent --batch --dry-run --format --help --root --source-root",
    "set": "--dry-run --format --help --root",
    "close": "--as --dry-run --force --format --help --of --reason --root",
    "reopen": "--dry-run --format --help --reason --root",
    "relate": "--as --dry-run --format --help --note --root",
    "tick": "--dry-run --format --help --root --undo",
    "graph": "--format --help --root",
    "probe": "--agent --batch --devices --draft --format --help --meter --root --sandbox --severity --sweep "
    "--timeout --title --verifier",
    "lint": "--fix --format --help --ignore --root --rules --select",
    "history": "--all --format --help --meter --output --root --sandbox --since --timeout",
    "check": "--accept --base --format --help --meter --root --sandbox --summary --timeout",
    "verify": "--address --all --at --base --executor --format --head --help --matrix --meter --root "
    "--sandbox --stale --timeout",
    "report": "--format --help --output --profile --root --since --summary --template",
}


@pytest.mark.parametrize("command", FLAGS)
def test_the_flags_of_a_command(command: str) -> None:
    """`tickets COMMAND --help` names exactly these."""
    shown = subprocess.run(
        [sys.executable, "-m", "finding_tickets", command, "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    options = re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", shown.stdout, re.MULTILINE)
    assert FLAGS[command].split() == sorted(options)
