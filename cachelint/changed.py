"""The lines that were changed since a git revision."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from cachelint.config import ConfigError
from cachelint.diagnostics import Diagnostic

_HUNK = re.compile(rb"^@@ -\S+ \+(\d+)(?:,(\d+))? @@")


def on_changed_lines(diagnostics: Iterable[Diagnostic], revision: str) -> list[Diagnostic]:
    """The findings that stand on a line which is new or other than at `revision`, files that git does not know whole.

    Raises:
        ConfigError: git cannot tell, as where there is no such revision.
    """
    rows: dict[Path, set[int] | None] = {}
    found = []
    for diagnostic in diagnostics:
        if diagnostic.path not in rows:
            rows[diagnostic.path] = _changed(diagnostic.path, revision)
        changed = rows[diagnostic.path]
        touched = range(diagnostic.location.row, diagnostic.end_location.row + 1)
        if changed is None or any(row in changed for row in touched):
            found.append(diagnostic)
    return found


def uncommitted(paths: Iterable[Path]) -> list[Path]:
    """Those of the files that lie in a git repository and are not as they were committed last."""
    found = []
    for path in paths:
        try:
            if _git(path.parent, "status", "--porcelain", "--", path.name).strip():
                found.append(path)
        except ConfigError:
            # No repository, or no git: there is nothing to compare with.
            continue
    return found


def _changed(path: Path, revision: str) -> set[int] | None:
    """The changed rows of a file, None where all of it is new."""
    if not _git(path.parent, "ls-files", "--", path.name).strip():
        return None
    rows: set[int] = set()
    for line in _git(path.parent, "diff", "--no-color", "--no-ext-diff", "-U0", revision, "--", path.name).splitlines():
        match = _HUNK.match(line)
        if match:
            first, count = int(match[1]), int(match[2] or 1)
            rows.update(range(first, first + count))
    return rows


def _git(folder: Path, *arguments: str) -> bytes:
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, check=False)
    except OSError as error:
        raise ConfigError(f"git cannot be run: {error.strerror or error}") from None
    if done.returncode:
        raise ConfigError(f"{folder}: git: {done.stderr.decode('utf-8', 'replace').strip().splitlines()[-1]}")
    return done.stdout
