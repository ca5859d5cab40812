"""Findings under the name of their file."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from cachelint.diagnostics import Diagnostic
from cachelint.report.concise import said, shown, where


def render(diagnostics: Sequence[Diagnostic]) -> str:
    """Each file's name, and its findings below it."""
    lines = []
    for path, group in groupby(diagnostics, key=lambda each: each.path):
        lines.append(f"{shown(path)}:")
        lines += [f"  {where(each)} {said(each)}" for each in group]
        lines.append("")
    return "\n".join(lines) + "\n" if lines else ""
