"""The output formats by name; each one's module is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Sequence

from cachelint.config import FORMATS
from cachelint.diagnostics import Diagnostic

# Those that a program reads: they are complete even without findings, and nothing is printed beside them.
FOR_PROGRAMS = frozenset(FORMATS) - {"full", "concise", "grouped"}


def render(name: str, diagnostics: Sequence[Diagnostic]) -> str:
    """The findings in any format but `full`, which needs to know the terminal."""
    if name in ("json", "json-lines"):
        from cachelint.report import json

        return json.render(diagnostics) if name == "json" else json.render_lines(diagnostics)
    if name in ("github", "gitlab", "junit", "rdjson"):
        from cachelint.report import services

        render_for = {
            "github": services.github,
            "gitlab": services.gitlab,
            "junit": services.junit,
            "rdjson": services.rdjson,
        }
        return render_for[name](diagnostics)
    if name == "sarif":
        from cachelint.report import sarif

        return sarif.render(diagnostics)
    if name == "html":
        from cachelint.report import html

        return html.render(diagnostics)
    if name == "grouped":
        from cachelint.report import grouped

        return grouped.render(diagnostics)
    from cachelint.report import concise

    return concise.render(diagnostics)
