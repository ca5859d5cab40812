"""## What it does
Reports a store to `key_cache`, `value_cache` or `_seen_tokens` of a KV cache.

## Why is this bad
From 4.56 on the store makes a plain attribute that nobody reads: no error, and the cache is as it was. In 4.54 and 4.55
storing the lists is an `AttributeError`.

## Example
```python
from transformers import DynamicCache

def shorten(model, ids):
    cache = DynamicCache()
    model(ids, past_key_values=cache)
    cache.key_cache = [keys[:, :, :-1] for keys in cache.key_cache]
```

## Use instead
```python
from transformers import DynamicCache

def shorten(model, ids):
    cache = DynamicCache()
    model(ids, past_key_values=cache)
    cache.crop(-1)
```

## Fix safety
There is no automatic fix: what the store was to do decides what takes its place.

## References
- <https://github.com/huggingface/transformers/pull/39106> (4.54: caches of layers)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import surface
from cachelint.contracts.crop import mask_of
from cachelint.contracts.releases import describe
from cachelint.flow.events import Event, Member
from cachelint.rule import Finding, Rewrite, Rule


class DeadAttributeWrite(Rule):
    """KV310."""

    code = "KV310"
    name = "dead-attribute-write"
    words = (
        "key_cache",
        "value_cache",
        "seen_tokens",
    )
    triggers = (r"\.(?:key_cache|value_cache|_seen_tokens|seen_tokens)\b",)
    judges = (Member,)
    facts = (("six tokens, `key_cache` cut to three", "behaviour", "store_key_cache"),)

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where the store has no effect on some release."""
        assert isinstance(event, Member)
        if not event.stored or event.name not in ("key_cache", "value_cache", "_seen_tokens", "seen_tokens"):
            return
        pieces = surface.dead_store(event.name, releases)
        if not pieces:
            return
        ignored, raising = mask_of(pieces, "corrupts"), mask_of(pieces, "raises")
        parts = [f"is ignored on transformers {describe(ignored)}"] if ignored else []
        parts += [f"raises on {describe(raising)}"] if raising else []
        yield Finding(
            "error",
            f"storing to `{event.name}` of a KV cache {' and '.join(parts)}",
            pieces,
            Rewrite("display", "Change the cache by its methods: `crop`, `batch_select_indices`, `copy.deepcopy` …"),
        )
