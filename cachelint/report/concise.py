"""`concise`: a line a finding, as ruff prints it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from cachelint.diagnostics import Diagnostic


def render(diagnostics: Iterable[Diagnostic]) -> str:
    """A line a diagnostic: `path:row:column: CODE [*] message`; `[*]` where a safe fix is at hand."""
    return "".join(f"{line(diagnostic)}\n" for diagnostic in diagnostics)


def line(diagnostic: Diagnostic) -> str:
    """One diagnostic on one line."""
    return f"{shown(diagnostic.path)}:{where(diagnostic)}: {said(diagnostic)}"


def said(diagnostic: Diagnostic) -> str:
    """What is found, without where: `CODE [*] message`."""
    mark = "[*] " if diagnostic.fix and diagnostic.fix.applicability == "safe" and diagnostic.fix.edits else ""
    return f"{diagnostic.code} {mark}{printable(diagnostic.message)}"


def where(diagnostic: Diagnostic) -> str:
    """Row and column, behind the cell in a notebook."""
    place = f"{diagnostic.location.row}:{diagnostic.location.column}"
    return place if diagnostic.cell is None else f"cell {diagnostic.cell}:{place}"


def shown(path: Path) -> str:
    """The path relative to the working folder where it is below it, without characters that a terminal obeys."""
    try:
        relative = os.path.relpath(path)
    except ValueError:
        relative = str(path)
    return printable(str(path) if relative.startswith("..") else relative)


def printable(text: str) -> str:
    """The text with control characters and lone surrogates escaped."""
    safe = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in safe)
