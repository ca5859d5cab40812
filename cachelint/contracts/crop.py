"""What `crop` does, by layer kind, sign of its argument, recording and release, as measured."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from cachelint.contracts.data import history, keys
from cachelint.diagnostics import Effect

# The layer kinds that rules speak of, and how the probe calls the cache that stands for each.
_SUBJECTS = {
    "full": "plain",
    "sliding": "sliding",
    "chunked": "chunked",
    "linear": "linear",
    "convolution": "convolution",
    "static": "static full",
    "static sliding": "static sliding",
    "quantised": "quantised",
    "encoder-decoder": "encoder-decoder",
}
_WORDS = {
    "wipes": "removes every token",
    "wrong logits": "no error, but what the model says next is wrong",
    "right, deprecated": "works, and logs that it is deprecated",
}


@dataclass(frozen=True, slots=True)
class Piece:
    """What happens on a set of releases (a bit mask), in a few words."""

    mask: int
    effect: Effect
    detail: str


def crop(layer: str, value: str, releases: int, *, fill: str = "above", recording: str = "no") -> tuple[Piece, ...]:
    """What else than the plain removal a crop does on the releases; nothing where it does just that.

    layer: a key of `_SUBJECTS`. value: "positive" (fewer than there are), "beyond" (more), "negative", "over" (more
    than there are), "zero". fill: "empty", "below", "at", "above" the window. recording: "no", "before" the
    prefill, "between" prefill and the removed tokens, "late".
    """
    return _pieces(f"{_SUBJECTS[layer]}/{value}/{fill}/{recording}", value, releases, layer)


def _pieces(key: str, value: str, releases: int, layer: str) -> tuple[Piece, ...]:
    found: list[Piece] = []
    for told in history("crop", key):
        mask = told.mask & releases
        effect, detail = _meaning(told.outcome, value, layer) if told.outcome is not None else (None, "")
        if not mask or effect is None:
            continue
        if found and (found[-1].effect, found[-1].detail) == (effect, detail):
            found[-1] = replace(found[-1], mask=found[-1].mask | mask)
        else:
            found.append(Piece(mask, effect, detail))
    return tuple(found)


def _meaning(outcome: str, value: str, layer: str) -> tuple[Effect | None, str]:
    """The effect of what was measured, None for what a caller wants."""
    if outcome == "right":
        return None, ""
    if outcome == "right, deprecated":
        return "warns", _WORDS[outcome]
    if outcome == "wipes":
        return "wipes", _WORDS[outcome]
    if outcome.startswith("nothing"):
        return ("changes", "removes nothing") if value == "zero" else ("corrupts", "removes nothing, without an error")
    if outcome.startswith("raises"):
        missing = "has no attribute 'crop'" in outcome and layer == "full"
        return ("unsupported", "no cache has a `crop` yet") if missing else ("raises", outcome.removeprefix("raises "))
    return "corrupts", _WORDS.get(outcome, outcome)


def keyword(name: str, classes: frozenset[str], releases: int) -> tuple[Piece, ...]:
    """What passing the argument of `crop` by the keyword `name` does; nothing for a keyword of no release."""
    owner = "EncoderDecoderCache" if classes == {"EncoderDecoderCache"} else "Cache"
    found = []
    for told in history("keywords", f"{owner}/{name}"):
        mask = told.mask & releases
        if mask and told.outcome is not None and told.outcome != "right":
            effect, detail = _meaning(told.outcome, "negative", "full")
            if effect is not None and "module transformers has no attribute" not in detail:
                found.append(Piece(mask, effect, detail))
    return tuple(found)


def keywords() -> frozenset[str]:
    """The names that the argument of `crop` has or had."""
    return frozenset(key.split("/")[1] for key in keys("keywords"))


def never_on_a_full_window(releases: int) -> tuple[Piece, ...]:
    """The releases on which no recording lets even a negative `crop` work on a full sliding window."""
    recorded = [told.mask for told in history("crop", "sliding/negative/above/before") if told.outcome is not None]
    can_record = sum(recorded)
    found = (
        *crop("sliding", "negative", releases & ~can_record),
        *crop("sliding", "negative", releases & can_record, recording="before"),
    )
    return _joined(piece for piece in found if piece.effect == "raises")


def _joined(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """The pieces with those of one effect and detail made one."""
    found: dict[tuple[str, str], Piece] = {}
    for piece in pieces:
        other = found.get((piece.effect, piece.detail))
        found[piece.effect, piece.detail] = replace(piece, mask=piece.mask | other.mask) if other else piece
    return tuple(sorted(found.values(), key=lambda piece: piece.mask & -piece.mask))


def on_a_full_window(window: Iterable[Piece], always: int) -> tuple[Piece, ...]:
    """The pieces of a full window that add something to what happens `always`, said as such."""
    left = (replace(piece, mask=piece.mask & ~always) for piece in window)
    return tuple(replace(p, detail=f"on a full sliding window: {p.detail}") for p in left if p.mask)


def as_corrupting(pieces: Iterable[Piece], detail: str) -> tuple[Piece, ...]:
    """One piece for all releases on which something raises, for what that does to whoever goes on."""
    raising = mask_of(pieces, "raises")
    return (Piece(raising, "corrupts", detail),) if raising else ()


def without(pieces: Iterable[Piece], releases: int) -> tuple[Piece, ...]:
    """The pieces less some releases."""
    left = (replace(piece, mask=piece.mask & ~releases) for piece in pieces)
    return tuple(piece for piece in left if piece.mask)


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
