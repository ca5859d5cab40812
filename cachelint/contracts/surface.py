"""Which members, classes and behaviours a release has, as measured."""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts.crop import Piece
from cachelint.contracts.data import history, keys
from cachelint.contracts.releases import all_mask

_OWNERS = ("DynamicCache", "StaticCache", "EncoderDecoderCache")


def member(owner: str, name: str, releases: int) -> tuple[Piece, ...]:
    """Where reading a member of a cache class raises or is deprecated; nothing for a member of no release.

    owner: the class; of one that was not measured, only what no class has is missing.
    """
    if owner not in _OWNERS:
        missing = releases & ~with_member(name)
        return (Piece(missing, "raises", f"AttributeError: no `{name}`"),) if missing else ()
    key = f"member/{owner}.{name}"
    if key not in keys("surface"):
        return ()
    return tuple(_pieces(key, releases, f"AttributeError: no `{name}`"))


def with_member(name: str) -> int:
    """The releases on which some cache class has a member; all of them for a name that was not measured."""
    told = [t for owner in _OWNERS for t in history("surface", f"member/{owner}.{name}")]
    found = 0
    for each in told:
        found |= each.mask if each.outcome is not None else 0
    return found if told else all_mask()


def behaviour(name: str, releases: int, *fine: str) -> tuple[Piece, ...]:
    """Where a measured program raises; what it shows where it does not is left to whoever asks, save for `fine`."""
    found = []
    for told in history("behaviour", name):
        mask = told.mask & releases
        if mask and told.outcome is not None and told.outcome.startswith("raises "):
            found.append(Piece(mask, "raises", told.outcome.removeprefix("raises ")))
        elif mask and told.outcome is not None and fine and told.outcome not in fine:
            found.append(Piece(mask, "corrupts", told.outcome))
    return tuple(found)


def dead_store(name: str, releases: int) -> tuple[Piece, ...]:
    """Where a store to a member is ignored or raises: by the measured store, or where the member is gone."""
    if name in ("key_cache", "value_cache"):
        found = []
        for told in history("behaviour", "store_key_cache"):
            mask = told.mask & releases
            if mask and told.outcome is not None and told.outcome.startswith("raises "):
                found.append(Piece(mask, "raises", told.outcome.removeprefix("raises ")))
            elif mask and told.outcome == "length 6":
                found.append(Piece(mask, "corrupts", "makes a plain attribute that nobody reads"))
        return tuple(found)
    missing = [piece for piece in member("DynamicCache", name, releases) if piece.effect == "raises"]
    return tuple(Piece(piece.mask, "corrupts", "makes a plain attribute that nobody reads") for piece in missing)


def refused(name: str, releases: int) -> int:
    """The releases on which a measured program could not even be set up, or raised."""
    there = sum(t.mask for t in history("behaviour", name) if t.outcome and not t.outcome.startswith("raises "))
    return releases & ~there


def _pieces(key: str, releases: int, missing: str) -> Iterator[Piece]:
    there = 0
    for told in history("surface", key):
        mask = told.mask & releases
        if told.outcome is not None:
            there |= told.mask
            if mask and told.outcome.endswith("deprecated"):
                yield Piece(mask, "warns", "deprecated")
    if releases & all_mask() & ~there:
        yield Piece(releases & all_mask() & ~there, "raises", missing)
