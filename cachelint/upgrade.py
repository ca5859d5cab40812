"""The upgrade map: what breaks, changes or warns at which release, call site by call site."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from cachelint.contracts.releases import describe, releases
from cachelint.diagnostics import Diagnostic
from cachelint.report.concise import printable, shown, where

# The worst first: where one call has several effects on a release, that one is shown.
_EFFECTS = ("raises", "wipes", "corrupts", "changes", "unsupported", "slow", "warns")
FINE = "-"


@dataclass(frozen=True, slots=True)
class Map:
    """Stretches of releases (bit masks, oldest first) and, for each finding, its effect on each stretch."""

    stretches: tuple[int, ...]
    rows: tuple[tuple[Diagnostic, tuple[str, ...]], ...]

    @property
    def titles(self) -> list[str]:
        """The stretches in words."""
        return [describe(mask) for mask in self.stretches]

    @property
    def totals(self) -> list[Counter[str]]:
        """How many findings have which effect, by stretch."""
        return [Counter(row[index] for _, row in self.rows) for index in range(len(self.stretches))]


def draw(diagnostics: Sequence[Diagnostic], mask: int) -> Map:
    """The map of findings over the releases of `mask`; a new stretch begins wherever an effect changes."""
    columns: list[tuple[int, tuple[str, ...]]] = []
    for bit in range(len(releases())):
        if not mask >> bit & 1:
            continue
        effects = tuple(_effect(diagnostic, bit) for diagnostic in diagnostics)
        if columns and columns[-1][1] == effects:
            columns[-1] = (columns[-1][0] | 1 << bit, effects)
        else:
            columns.append((1 << bit, effects))
    rows = [(d, tuple(effects[index] for _, effects in columns)) for index, d in enumerate(diagnostics)]
    return Map(tuple(stretch for stretch, _ in columns), tuple(rows))


def _effect(diagnostic: Diagnostic, bit: int) -> str:
    found = {effect.effect for effect in diagnostic.releases if effect.mask >> bit & 1}
    return next((effect for effect in _EFFECTS if effect in found), FINE)


def as_text(drawn: Map) -> str:
    """A table: a line for each call site, a column for each stretch, the sums below."""
    if not drawn.rows:
        return "Nothing breaks, changes or warns on any of these releases.\n"
    titles = drawn.titles
    names = [f"{shown(d.path)}:{where(d)} {d.code}" for d, _ in drawn.rows]
    first = max(map(len, (*names, "transformers")))
    widths = [max(len(title), 11) for title in titles]
    lines = ["  ".join(("transformers".ljust(first), *(t.ljust(w) for t, w in zip(titles, widths, strict=True))))]
    for name, (_, row) in zip(names, drawn.rows, strict=True):
        lines.append("  ".join((name.ljust(first), *(e.ljust(w) for e, w in zip(row, widths, strict=True)))))
    lines.append("")
    for title, total in zip(titles, drawn.totals, strict=True):
        counted = ", ".join(f"{total[effect]} {effect}" for effect in _EFFECTS if total[effect])
        lines.append(f"{title}: {counted or 'fine'}")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def as_json(drawn: Map) -> str:
    """The same as one object: `stretches`, and `findings` with an effect (or null) for each."""
    findings = [
        {
            "filename": str(d.path),
            "row": d.location.row,
            "column": d.location.column,
            "code": d.code,
            "message": d.message,
            "effects": [None if effect == FINE else effect for effect in row],
        }
        for d, row in drawn.rows
    ]
    return json.dumps({"stretches": drawn.titles, "findings": findings}, indent=2) + "\n"


def as_html(drawn: Map) -> str:
    """The same as one page, complete in itself."""
    from cachelint.report.html import page

    head = "".join(f"<th>{escape(title)}" for title in drawn.titles)
    body = "".join(
        f"<tr><td><code>{escape(shown(d.path))}:{where(d)}</code><td>{d.code} {escape(printable(d.message))}"
        + "".join(f'<td class="{"error" if e in _EFFECTS[:3] else "warning"}">{e}' for e in row)
        for d, row in drawn.rows
    )
    return page("cachelint: upgrade map", f"<table><tr><th>call<th>finding{head}{body}</table>")
