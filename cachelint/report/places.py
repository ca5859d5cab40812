"""Places and names as reports need them: relative paths, columns in other units, fingerprints that outlive edits."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from cachelint.diagnostics import Diagnostic, Location
from cachelint.sources import SourceError, decode, split_lines


def relative(path: Path, folder: Path | None = None) -> str:
    """The path as seen from a folder (the current one), with `/`; absolute where it lies outside."""
    found = os.path.relpath(path, folder)
    return (str(path) if found.startswith("..") else found).replace(os.sep, "/")


class Texts:
    """The lines of the files that findings stand in; each file is read once."""

    def __init__(self) -> None:
        self._lines: dict[Path, list[str]] = {}

    def line(self, path: Path, row: int) -> str:
        """One line without its end; empty where the file cannot be read (it came by standard input)."""
        if path not in self._lines:
            try:
                self._lines[path] = split_lines(decode(path, path.read_bytes()).text)
            except (OSError, SourceError):
                self._lines[path] = []
        lines = self._lines[path]
        return lines[row - 1].rstrip("\r\n") if 0 < row <= len(lines) else ""

    def utf16_column(self, path: Path, place: Location) -> int:
        """The column, from 1, in units of UTF-16."""
        before = self.line(path, place.row)[: place.column - 1]
        return place.column + sum(ord(character) > 0xFFFF for character in before)

    def utf8_column(self, path: Path, place: Location) -> int:
        """The column, from 1, in bytes of UTF-8."""
        before = self.line(path, place.row)[: place.column - 1]
        return place.column + len(before.encode("utf-8", "replace")) - len(before)


def fingerprints(diagnostics: Iterable[Diagnostic], texts: Texts, folder: Path | None = None) -> list[str]:
    """One for each finding, in hexadecimal: of its file, code and line's text, and which of several such it is.

    What is edited above or below does not change it. folder: what paths are relative to, the current one by default.
    """
    seen: Counter[str] = Counter()
    found = []
    for diagnostic in diagnostics:
        text = " ".join(texts.line(diagnostic.path, diagnostic.location.row).split()) or diagnostic.message
        key = "\0".join((relative(diagnostic.path, folder), diagnostic.code, text))
        found.append(hashlib.sha256(f"{key}\0{seen[key]}".encode("utf-8", "surrogateescape")).hexdigest()[:32])
        seen[key] += 1
    return found
