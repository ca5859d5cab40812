"""A rule's documentation in the terminal."""

from __future__ import annotations

import io

from rich.console import Console
from rich.markdown import Markdown

from cachelint.contracts.data import history
from cachelint.contracts.releases import describe
from cachelint.rule import Rule


def measured(rule: Rule, releases: int) -> str:
    """What the rule rests on, as it was measured on the releases: a line for each stretch."""
    if not rule.facts:
        return "\nNothing was measured for this rule.\n"
    lines = [f"\nMeasured on {describe(releases)}:"]
    for label, part, key in rule.facts:
        lines.append(f"  {label}")
        for told in history(part, key):
            if told.mask & releases and told.outcome is not None:
                lines.append(f"    {describe(told.mask & releases):<14} {told.outcome}")
    return "\n".join(lines) + "\n"


def render(rule: Rule, *, colour: bool, width: int) -> str:
    """The page of a rule: plain Markdown where there are no colours, else set for the terminal."""
    text = f"# {rule.name} ({rule.code})\n\n{rule.documentation()}\n"
    if not colour:
        return text
    stream = io.StringIO()
    Console(file=stream, force_terminal=True, width=min(width, 100)).print(Markdown(text))
    return stream.getvalue()
