"""Which members, classes and behaviours a release has, as measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cachelint.contracts.crop import Piece
from cachelint.contracts.data import history, keys
from cachelint.contracts.releases import all_mask
from cachelint.diagnostics import Effect

_OWNERS = ("DynamicCache", "StaticCache", "EncoderDecoderCache")


def member(owner: str, name: str, releases: int) -> tuple[Piece, ...]:
    """Where reading a member of a cache class raises or is deprecated; nothing for a member of no release.

    owner: the class; of one that was not measured, only what no class has is missing.
    """
    if owner not in _OWNERS:
        missing = gone(releases, with_member(name))
        return (Piece(missing, "raises", f"AttributeError: no `{name}`"),) if missing else ()
    key = f"member/{owner}.{name}"
    if key not in keys("surface"):
        return ()
    return tuple(_pieces(key, releases, f"AttributeError: no `{name}`"))


def gone(releases: int, there: int) -> int:
    """The releases that lack what those of `there` have.

    A range that goes back to the oldest known release has no lower bound that anybody has thought of: what came
    later than the oldest release is then no fault, only what went again.
    """
    if releases & 1 and there:
        first = there & -there
        releases &= ~(first - 1)
    return releases & ~there & all_mask()


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


_NOT_THERE = ("has no attribute", "cannot import", "is a required argument", "unexpected keyword argument")


def shown(name: str, releases: int, *wrong: str, effect: Effect = "corrupts", detail: str = "") -> tuple[Piece, ...]:
    """Where a measured program raises or shows one of `wrong`; where a release cannot run it, nothing is said.

    effect, detail: what showing one of `wrong` means; the detail is what was seen where none is given.
    """
    found = []
    for told in history("behaviour", name):
        mask, outcome = told.mask & releases, (told.outcome or "").removesuffix(", deprecated")
        if mask and outcome.startswith("raises ") and not any(words in outcome for words in _NOT_THERE):
            found.append(Piece(mask, "raises", outcome.removeprefix("raises ")))
        elif mask and outcome in wrong:
            found.append(Piece(mask, effect, detail or outcome))
        if len(found) > 1 and (found[-1].effect, found[-1].detail) == (found[-2].effect, found[-2].detail):
            last = found.pop()
            found[-1] = replace(last, mask=last.mask | found[-1].mask)
    return tuple(found)


def without_class(name: str, module: str, releases: int) -> int:
    """The releases on which a class of the library cannot be had from a module; none for a class of no release."""
    places = {"transformers": "transformers", "transformers.cache_utils": "cache_utils"}
    key = f"class/{name}"
    if module not in places or key not in keys("surface"):
        return 0
    there = sum(t.mask for t in history("surface", key) if t.outcome and places[module] in t.outcome.split(" and "))
    return gone(releases, there)


def with_class(names: frozenset[str]) -> int:
    """The releases that have one of the classes; all of them where one was not measured."""
    found = 0
    for name in names:
        told = history("surface", f"class/{name}")
        found |= sum(t.mask for t in told if t.outcome) if told else all_mask()
    return found


def parameters(owner: str) -> tuple[tuple[int, tuple[str, ...]], ...]:
    """The parameters of a cache class, without the receiver, with the releases that have them."""
    told = history("surface", f"parameters/{owner}")
    return tuple((t.mask, tuple(filter(None, t.outcome.split(", ")))) for t in told if t.outcome is not None)


def refusing(implementation: str, releases: int) -> int:
    """The releases that refuse a `cache_implementation`; all of them for one that was never measured."""
    told = history("surface", f"implementation/{implementation}")
    return sum(t.mask for t in told if t.outcome and t.outcome.startswith("raises ValueError")) & releases


def deprecated(name: str, releases: int) -> int:
    """The releases on which a measured program is told that something is deprecated."""
    return sum(t.mask for t in history("behaviour", name) if (t.outcome or "").endswith(", deprecated")) & releases


def refusing_arguments(name: str, releases: int) -> tuple[Piece, ...]:
    """Where a measured definition is passed arguments that it does not take."""
    found = []
    for told in history("behaviour", name):
        outcome = told.outcome or ""
        if told.mask & releases and outcome.startswith("raises TypeError"):
            words = outcome[outcome.index("got an") :] if "got an" in outcome else "unexpected arguments"
            found.append(Piece(told.mask & releases, "raises", f"TypeError: update() {words}"))
    return tuple(found)


def refusing_value(name: str, releases: int) -> tuple[Piece, ...]:
    """Where a measured program raises a ValueError."""
    return tuple(piece for piece in behaviour(name, releases) if piece.detail.startswith("ValueError"))


def abstract_methods() -> tuple[tuple[int, tuple[str, ...]], ...]:
    """The methods that a layer class of one's own must have, with the releases that demand them."""
    told = history("behaviour", "abstract_methods")
    return tuple(
        (t.mask, tuple(t.outcome.split(", "))) for t in told if t.outcome and not t.outcome.startswith("raises")
    )


def negative_maximum(releases: int) -> tuple[Piece, ...]:
    """Where the maximal length of a cache without one is -1."""
    found = []
    for told in history("behaviour", "no_maximum"):
        outcome = (told.outcome or "").removesuffix(", deprecated")
        if told.mask & releases and outcome.endswith(" -1"):
            found.append(Piece(told.mask & releases, "corrupts", f"`{outcome.split()[0]}()` gives -1"))
    return tuple(found)


def argument_names(of: str) -> tuple[tuple[int, str], ...]:
    """Under which name the cache is passed to an "attention" or a "model", with the releases that do."""
    return tuple((t.mask, t.outcome) for t in history("surface", f"argument/{of}") if t.outcome)


def is_encoder_decoder(model_type: str) -> bool:
    """Whether models of a type have an encoder and a decoder."""
    return any(t.outcome for t in history("surface", f"encoder-decoder/{model_type}"))


def dead_store(name: str, releases: int) -> tuple[Piece, ...]:
    """Where a store to a member is ignored or raises: by the measured store, or where the member is gone."""
    ignored = "makes a plain attribute that nobody reads"
    if name in ("key_cache", "value_cache"):
        return shown("store_key_cache", releases, "length 6", detail=ignored)
    missing = [piece for piece in member("DynamicCache", name, releases) if piece.effect == "raises"]
    return tuple(Piece(piece.mask, "corrupts", ignored) for piece in missing)


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
    if gone(releases, there):
        yield Piece(gone(releases, there), "raises", missing)
