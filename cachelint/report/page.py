"""A rule's documentation in the terminal."""

from __future__ import annotations

import io

from rich.console import Console
from rich.markdown import Markdown

from cachelint.rule import Rule


def render(rule: Rule, *, colour: bool, width: int) -> str:
    """The page of a rule: plain Markdown where there are no colours, else set for the terminal."""
    text = f"# {rule.name} ({rule.code})\n\n{rule.documentation()}\n"
    if not colour:
        return text
    stream = io.StringIO()
    Console(file=stream, force_terminal=True, width=min(width, 100)).print(Markdown(text))
    return stream.getvalue()
