"""## What it does
Reports a KV cache that is used after a `crop` that may have raised was swallowed by `except` or `suppress`.

## Why is this bad
A cache is cropped layer by layer. Where a sliding layer raises, the layers in front of it are shorter already. Going
on with the cache mixes the two lengths: nothing raises, and what the model says next is wrong.

## Example
```python
from transformers import DynamicCache

def retry(model, ids, draft):
    cache = DynamicCache(config=model.config)
    model(ids, past_key_values=cache)
    try:
        cache.crop(-2)
    except Exception:
        pass
    model(draft, past_key_values=cache)
```

## Use instead
```python
from transformers import DynamicCache

def retry(model, ids, draft):
    cache = DynamicCache(config=model.config)
    model(ids, past_key_values=cache)
    try:
        cache.crop(-2)
    except Exception:
        cache = DynamicCache(config=model.config)
        model(ids[:, :-2], past_key_values=cache)
    model(draft, past_key_values=cache)
```

## Fix safety
There is no automatic fix: the handler has to build a cache anew.

## References
- <https://github.com/huggingface/transformers/pull/47447> (a crop that raises, by layer)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import crop as contract
from cachelint.contracts.releases import describe
from cachelint.flow.events import Event, UsedAfterFailure
from cachelint.rule import CROP_CALL, Finding, Rewrite, Rule


class CropFailureSwallowed(Rule):
    """KV106."""

    code = "KV106"
    name = "crop-failure-swallowed"
    words = ("crop",)
    triggers = CROP_CALL
    judges = (UsedAfterFailure,)
    facts = (
        ("full and sliding layers, window full", "crop", "full and sliding/negative/above/no"),
        ("the same, swallowed, then used", "behaviour", "swallowed_failure"),
    )

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where layers of both kinds can be in the cache, so that a failure leaves it half cropped."""
        assert isinstance(event, UsedAfterFailure)
        if not event.cache.may_slide() or "full" not in event.cache.layers:
            return
        pieces = contract.crop("sliding", "negative", releases)
        raising = contract.mask_of(pieces, "raises")
        if not raising:
            return
        shown = contract.as_corrupting(pieces, "half of the layers are cropped")
        yield Finding(
            "warning",
            "the KV cache is used after a `crop` that may have failed half way: layers of two lengths "
            f"on transformers {describe(raising)}",
            shown,
            Rewrite("display", "Build a new cache in the handler, or let the exception out"),
        )
