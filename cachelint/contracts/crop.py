"""What `crop` does, by layer kind, fill, recording, sign of its argument, and release."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any

from cachelint.contracts.releases import between
from cachelint.diagnostics import Effect


@dataclass(frozen=True, slots=True)
class Piece:
    """What happens on a set of releases (a bit mask), in a few words."""

    mask: int
    effect: Effect
    detail: str


@cache
def _data() -> dict[str, Any]:
    text = resources.files("cachelint.contracts").joinpath("crop.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


def _pieces(rows: Iterable[list[Any]], releases: int) -> tuple[Piece, ...]:
    found = (Piece(between(first, last) & releases, effect, detail) for first, last, effect, detail in rows)
    return tuple(piece for piece in found if piece.mask)


def crop(layer: str, value: str, releases: int, *, fill: str = "any", recording: str = "any") -> tuple[Piece, ...]:
    """What else than the plain removal a crop does on the releases.

    layer: "full", "sliding" or "static". value: "positive", "negative" or "zero". fill: "full" for a window
    that is filled, else "any". recording: "no" or "before" the removed tokens, where that matters.
    """
    for key in (f"{layer}/{fill}/{recording}/{value}", f"{layer}/{fill}/{recording}/any"):
        if key in _data()["crop"]:
            return _pieces(_data()["crop"][key], releases)
    raise KeyError(f"{layer}/{fill}/{recording}/{value}")


def keyword(name: str, classes: frozenset[str], releases: int) -> tuple[Piece, ...]:
    """What passing the argument of `crop` by the keyword `name` does; nothing for a keyword of no release."""
    known = _data()["keywords"].get(name, {})
    owner = next(iter(classes)) if len(classes) == 1 else ""
    return _pieces(known.get(owner, known.get("", ())), releases)


def keywords() -> frozenset[str]:
    """The names that the argument of `crop` has or had."""
    return frozenset(_data()["keywords"])


def never_on_a_full_window(releases: int) -> tuple[Piece, ...]:
    """The releases on which no argument and no recording lets `crop` work on a full sliding window."""
    recorded = crop("sliding", "negative", releases, fill="full", recording="before")
    return tuple(piece for piece in recorded if piece.effect == "raises")


def on_a_full_window(window: Iterable[Piece], always: int) -> tuple[Piece, ...]:
    """The pieces of a full window that add something to what happens `always`, said as such."""
    left = (replace(piece, mask=piece.mask & ~always) for piece in window)
    return tuple(replace(p, detail=f"on a full sliding window: {p.detail}") for p in left if p.mask)


def mask_of(pieces: Iterable[Piece], *effects: str) -> int:
    """The releases of the pieces that have one of the effects (of all pieces where none is named)."""
    found = 0
    for piece in pieces:
        if not effects or piece.effect in effects:
            found |= piece.mask
    return found


def overlay(base: Iterable[Piece], top: Iterable[Piece]) -> tuple[Piece, ...]:
    """The pieces of `top`, and those of `base` on the releases of which `top` says nothing; oldest first."""
    upper = tuple(top)
    taken = mask_of(upper)
    lower = (replace(piece, mask=piece.mask & ~taken) for piece in base)
    found = [piece for piece in (*upper, *lower) if piece.mask]
    return tuple(sorted(found, key=lambda piece: piece.mask & -piece.mask))
