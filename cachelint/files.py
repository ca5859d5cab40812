"""Files of cachelint's own, written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Put `text` into a file: a temporary one beside it is renamed over it. Raises OSError; nothing is left behind."""
    handle, temporary = tempfile.mkstemp(prefix=".cachelint-", dir=path.absolute().parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
