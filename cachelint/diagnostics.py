"""What the linter says: diagnostics, their fixes, their releases and their evidence, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Severity = Literal["error", "warning"]
Applicability = Literal["safe", "unsafe", "display"]
Effect = Literal["raises", "wipes", "corrupts", "warns", "changes", "unsupported", "slow"]


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A place in a file: row and column, both from 1, the column in characters."""

    row: int
    column: int


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the text between two places (the end exclusive) by `content`."""

    content: str
    location: Location
    end_location: Location


@dataclass(frozen=True, slots=True)
class Fix:
    """A rewrite: `safe` keeps the meaning on the whole range, `unsafe` wants a look, `display` is a sketch."""

    applicability: Applicability
    message: str
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True)
class ReleaseEffect:
    """What happens on a part of the supported range. `mask` is the same part as a set of known releases."""

    range: str
    effect: Effect
    detail: str
    mask: int


@dataclass(frozen=True, slots=True)
class FlowStep:
    """One step of the evidence."""

    path: Path
    location: Location
    message: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding.

    path: absolute. cell: the notebook cell, from 1, else None. noqa_row: the row on which a suppression
    counts. releases: what happens where, oldest first. flow: how it came to that, origin first.
    """

    code: str
    name: str
    severity: Severity
    message: str
    path: Path
    location: Location
    end_location: Location
    fix: Fix | None = None
    releases: tuple[ReleaseEffect, ...] = ()
    flow: tuple[FlowStep, ...] = ()
    noqa_row: int = 0
    cell: int | None = None
    url: str | None = None

    @property
    def sort_key(self) -> tuple[str, int, int, str]:
        """The order of reports: by file, place and code."""
        return str(self.path), self.location.row, self.location.column, self.code

    @property
    def effects(self) -> dict[str, int]:
        """The releases of each effect, what is not there at all left out."""
        found: dict[str, int] = {}
        for effect in self.releases:
            if effect.effect != "unsupported":
                found[effect.effect] = found.get(effect.effect, 0) | effect.mask
        return found
