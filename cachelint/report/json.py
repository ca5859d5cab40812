"""`json`: a list of objects with the keys that ruff's JSON has, and a few more."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from cachelint.diagnostics import Diagnostic, Fix, Location


def render(diagnostics: Iterable[Diagnostic]) -> str:
    """The report as one JSON list, indented by two, with a newline at its end."""
    return json.dumps([as_object(diagnostic) for diagnostic in diagnostics], indent=2) + "\n"


def render_lines(diagnostics: Iterable[Diagnostic]) -> str:
    """The same objects, each as one line of JSON."""
    return "".join(json.dumps(as_object(diagnostic)) + "\n" for diagnostic in diagnostics)


def as_object(diagnostic: Diagnostic) -> dict[str, Any]:
    """One diagnostic as JSON has it; rows and columns from 1, filenames absolute."""
    return {
        "cell": diagnostic.cell,
        "code": diagnostic.code,
        "end_location": _place(diagnostic.end_location),
        "filename": str(diagnostic.path),
        "fix": _fix(diagnostic.fix),
        "flow": [
            {"filename": str(step.path), "location": _place(step.location), "message": step.message}
            for step in diagnostic.flow
        ],
        "location": _place(diagnostic.location),
        "message": diagnostic.message,
        "name": diagnostic.name,
        "noqa_row": diagnostic.noqa_row,
        "releases": [{"range": e.range, "effect": e.effect, "detail": e.detail} for e in diagnostic.releases],
        "severity": diagnostic.severity,
        "url": diagnostic.url,
    }


def _place(location: Location) -> dict[str, int]:
    return {"row": location.row, "column": location.column}


def _fix(fix: Fix | None) -> dict[str, Any] | None:
    if fix is None:
        return None
    edits = [
        {"content": e.content, "location": _place(e.location), "end_location": _place(e.end_location)}
        for e in fix.edits
    ]
    return {"applicability": fix.applicability, "message": fix.message, "edits": edits}
