"""## What it does
Reports `from_legacy_cache` and `to_legacy_cache` where a release lacks them, and `DynamicCache(data)` that drops it.

## Why is this bad
Both went in 5.0, with no deprecation before: an `AttributeError`.

## Example
```python
from transformers import DynamicCache

def load(pairs):
    return DynamicCache.from_legacy_cache(pairs)
```

## Use instead
```python
from transformers import DynamicCache

def load(pairs):
    cache = DynamicCache()
    for index, (keys, values) in enumerate(pairs):
        cache.update(keys, values, index)
    return cache
```

## Fix safety
`DynamicCache(data)` is right from 4.56 on; on some releases before it drops the data or adds an empty layer. The fix is
safe where every supported release takes it, else it is advice.

## References
- <https://github.com/huggingface/transformers/issues/48479> (reports)
- <https://github.com/huggingface/transformers/issues/39668> (`DynamicCache(data)` before 4.56)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import surface
from cachelint.contracts.crop import mask_of
from cachelint.contracts.releases import describe
from cachelint.flow.events import Event, Made, Member
from cachelint.rule import Finding, Rewrite, Rule


class LegacyConversion(Rule):
    """KV302."""

    code = "KV302"
    name = "legacy-conversion"
    words = ("_legacy_cache", "DynamicCache(")
    triggers = (r"\b(?:from|to)_legacy_cache\b", r"\bDynamicCache\(\s*(?!config\b|\))")
    judges = (Member, Made)
    facts = (
        ("DynamicCache.from_legacy_cache(four tokens)", "behaviour", "from_legacy"),
        ("DynamicCache(four tokens)", "behaviour", "data_by_position"),
        ("cache.to_legacy_cache()", "behaviour", "to_legacy"),
    )

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where some release lacks the conversion, or its constructor drops the data."""
        if isinstance(event, Made):
            yield from _constructed(event, releases)
            return
        assert isinstance(event, Member)
        if event.name not in ("from_legacy_cache", "to_legacy_cache") or event.stored:
            return
        pieces = surface.member(event.owner, event.name, releases)
        raising = mask_of(pieces, "raises")
        if not raising:
            return
        yield Finding(
            "error",
            f"`{event.name}` raises an AttributeError on transformers {describe(raising)}",
            pieces,
            self._rewrite(event, releases),
        )

    @staticmethod
    def _rewrite(event: Member, releases: int) -> Rewrite:
        from cachelint.rewrites import data_constructor

        if event.name == "to_legacy_cache":
            advice = "Build `tuple((layer.keys, layer.values) for layer in cache.layers)`, where there are `layers`"
            return Rewrite("display", advice)
        takes_data = not surface.behaviour("data_by_position", releases, "length 4")
        found = data_constructor(event) if takes_data else None
        return found or Rewrite("display", "`DynamicCache(data)` does the same, but not on every supported release")


def _constructed(event: Made, releases: int) -> Iterator[Finding]:
    """`DynamicCache(data)`, where some release puts the data nowhere or takes none."""
    by_name = "ddp_cache_data" in event.keywords
    if event.name != "DynamicCache" or not (by_name or event.by_position == "data"):
        return
    pieces = surface.behaviour("data_by_name" if by_name else "data_by_position", releases, "length 4")
    dropping = mask_of(tuple(piece for piece in pieces if piece.effect == "corrupts"))
    if dropping:
        message = f"`DynamicCache(data)` drops the data on transformers {describe(dropping)}"
        yield Finding("error", message, pieces, Rewrite("display", "Fill it with `cache.update(keys, values, index)`"))
