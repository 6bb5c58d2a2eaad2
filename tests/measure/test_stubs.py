"""Stand-ins for packages that are not installed; each test runs in a process of its own, for imports stay."""

from __future__ import annotations

import subprocess
import sys

import pytest

USES = {
    "a logger": "import tracker; log = tracker.init(project='x'); log.log({'loss': 1}); log.finish()",
    "a submodule": "from tracker.views.plots import Plot, draw; Plot(1).show(draw())",
    "a base class": (
        "import tracker\n"
        "class Callback(tracker.Callback):\n"
        "    def __init__(self, n): super().__init__(); self.n = n\n"
        "assert 3 == Callback(3).n"
    ),
    "two base classes": (
        "import tracker\n"
        "class Both(tracker.Callback, tracker.Hook): pass\n"
        "assert isinstance(Both(), tracker.Hook) and issubclass(Both, tracker.Callback)"
    ),
    "an annotation": "import tracker\ndef f(run: tracker.Run | None, or_none: None | tracker.Run): pass",
    "a decorator": "import tracker\n@tracker.timed\ndef f(): return 7\nassert 7 == f()",
    "a decorator with arguments": "import tracker\n@tracker.main(x=None)\ndef f(): return 7\nassert 7 == f()",
    "a context": "import tracker\nwith tracker.run() as run: run.note('x')\nassert not list(tracker.items())",
    "a question": "import tracker\nassert not tracker.is_active()",
    "whether there is a version": "import tracker\nassert not hasattr(tracker, '__version__')",
}


def run(code: str) -> subprocess.CompletedProcess[str]:
    """Run a program that stubs the package ``tracker`` first."""
    start = "from finding_tickets.workload import stub_imports\nstub_imports('tracker')\n"
    return subprocess.run([sys.executable, "-c", start + code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("code", USES.values(), ids=USES)
def test_a_missing_package_can_be_used_in_any_way(code: str) -> None:
    """It is imported, called, entered, derived from, and nothing comes of it."""
    done = run(code)
    assert (0, "") == (done.returncode, done.stderr)


def test_replacing_what_was_imported_before_is_refused() -> None:
    """The code that has it would go on with the real one."""
    code = "import colorsys; stub_imports('colorsys', missing_only=False)"
    assert "colorsys has been imported before it was stubbed" in run(code).stderr
