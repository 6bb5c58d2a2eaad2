"""Writing a file so that whoever reads it finds the old content or the new one, whole."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def replace(file: Path, content: bytes, mode: int = 0o600) -> None:
    """Write ``content`` beside ``file``, then put it in its place in one step; a failure leaves nothing."""
    descriptor, aside = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        Path(aside).chmod(mode)
        Path(aside).replace(file)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise
