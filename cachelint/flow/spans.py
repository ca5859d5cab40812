"""Spans of source text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A piece of a file: rows from 1, columns in characters from 0, the end exclusive."""

    row: int
    column: int
    end_row: int
    end_column: int
