"""A baseline: findings that were there when it was written stay quiet, new ones do not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cachelint.config import ConfigError
from cachelint.diagnostics import Diagnostic
from cachelint.files import write_whole
from cachelint.report.places import Texts, fingerprints, relative

VERSION = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """One known finding: where and what it was, for people, and its fingerprint."""

    path: str
    code: str
    message: str
    fingerprint: str


def entries(diagnostics: Sequence[Diagnostic], folder: Path) -> list[Entry]:
    """The entries of findings; paths are relative to the folder of the baseline."""
    marks = fingerprints(diagnostics, Texts(), folder)
    return [
        Entry(relative(d.path, folder), d.code, d.message, mark) for d, mark in zip(diagnostics, marks, strict=True)
    ]


def write(path: Path, found: Sequence[Entry]) -> None:
    """Write a baseline whole. Raises OSError."""
    listed = [{"path": e.path, "code": e.code, "message": e.message, "fingerprint": e.fingerprint} for e in found]
    text = json.dumps({"version": VERSION, "findings": listed}, indent=2) + "\n"
    write_whole(path, text)


def read(path: Path) -> list[Entry]:
    """The entries of a baseline.

    Raises:
        ConfigError: the file cannot be read, or is no baseline.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["version"] != VERSION:
            raise ConfigError(f"{path}: a baseline of version {data['version']}, which this cachelint does not know")
        return [Entry(e["path"], e["code"], e["message"], e["fingerprint"]) for e in data["findings"]]
    except OSError as error:
        hint = f"write it with `cachelint baseline --baseline {path}`"
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}; {hint}") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ConfigError(f"{path}: is no baseline of cachelint") from None


def split(
    diagnostics: Sequence[Diagnostic], known: Sequence[Entry], folder: Path
) -> tuple[list[Diagnostic], list[Entry]]:
    """The findings that are new, and the entries that no longer occur."""
    marks = {entry.fingerprint for entry in known}
    now = entries(diagnostics, folder)
    new = [d for d, entry in zip(diagnostics, now, strict=True) if entry.fingerprint not in marks]
    still = {entry.fingerprint for entry in now}
    return new, [entry for entry in known if entry.fingerprint not in still]
