"""Findings under the name of their file."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from cachelint.diagnostics import Diagnostic
from cachelint.report.concise import shown


def render(diagnostics: Sequence[Diagnostic]) -> str:
    """Each file's name, and its findings below it."""
    lines = []
    for path, group in groupby(diagnostics, key=lambda each: each.path):
        lines.append(f"{shown(path)}:")
        for each in group:
            mark = "[*] " if each.fix and each.fix.edits and each.fix.applicability == "safe" else ""
            cell = f"cell {each.cell}:" if each.cell is not None else ""
            lines.append(f"  {cell}{each.location.row}:{each.location.column} {each.code} {mark}{each.message}")
        lines.append("")
    return "\n".join(lines) + "\n" if lines else ""
