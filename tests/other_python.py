"""A Python beside the tests' own: it sees the same packages but for those that measuring does without.

No test can rely on a second torch. Where one is needed, the same torch says that it is another version: a
stand-in, which only the name of what was measured depends on.
"""

from __future__ import annotations

import venv
from importlib.util import find_spec
from pathlib import Path

LEFT_OUT = ("pydantic", "typer", "jinja2", "yaml", "__editable__", "finding_tickets", "simcuda")
"""How the names begin of what the tool needs and measuring does not, and of the tool itself."""
STAND_IN = """
import sys
import types

version = types.ModuleType("torch.version")
with open({file!r}) as real:
    exec(real.read(), vars(version))
version.__version__ = "{version}+standin"
sys.modules["torch.version"] = version
"""


def other_python(folder: Path, version: str | None = None, *, torch: bool = True) -> Path:
    """The interpreter of a new environment in ``folder``, whose torch says that it is ``version``."""
    venv.create(folder, with_pip=False, symlinks=True)
    (own,) = folder.glob("lib/python*/site-packages")
    packages = folder / "packages"
    packages.mkdir()
    (own / "packages.pth").write_text(f"{packages}\n")
    spec = find_spec("torch")
    assert spec is not None
    assert spec.origin is not None
    for package in Path(spec.origin).parents[1].iterdir():
        if (
            not package.name.startswith(LEFT_OUT)
            and package.suffix != ".pth"
            and (torch or package.name != "torch")
        ):
            (packages / package.name).symlink_to(package)
    if version:
        file = str(Path(spec.origin).with_name("version.py"))
        (own / "stand_in.py").write_text(STAND_IN.format(file=file, version=version))
        (own / "stand_in.pth").write_text("import stand_in\n")
    return folder / "bin/python"
