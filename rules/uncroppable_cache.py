"""## What it does
Reports `crop` on a static or quantised cache that does not support it.

## Why is this bad
Up to 5.23 the layers of a static cache have no `crop`: an `AttributeError`. In 5.24 they have, but on a sliding one
that ran past its window it only moves the counter, and what the model says next is silently wrong. A cache quantised
to fp8 raises an `IndexError`.

## Example
```python
from transformers import StaticCache

def retry(model, ids):
    cache = StaticCache(config=model.config, max_cache_len=512)
    model(ids, past_key_values=cache)
    cache.crop(-2)
```

## Use instead
```python
from transformers import DynamicCache

def retry(model, ids):
    cache = DynamicCache()
    model(ids, past_key_values=cache)
    cache.crop(-2)
```

## Fix safety
There is no automatic fix: another cache class, or `reset()` and a new prefill, is the author's choice.

## References
- <https://github.com/huggingface/transformers/issues/45745> (a static cache cannot be cropped)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import crop as contract
from cachelint.contracts.releases import describe
from cachelint.flow.events import Crop, Event
from cachelint.rule import CROP_CALL, Finding, Rewrite, Rule


class UncroppableCache(Rule):
    """KV108."""

    code = "KV108"
    name = "uncroppable-cache"
    words = ("crop",)
    triggers = CROP_CALL
    judges = (Crop,)
    facts = (
        ("static layers", "crop", "static full/negative/above/no"),
        ("static sliding layers past the window", "crop", "static sliding/negative/above/no"),
        ("quantised layers (fp8)", "crop", "quantised/negative/above/no"),
    )

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where every layer is of a kind that no value crops."""
        assert isinstance(event, Crop)
        if event.layer == "full" or not event.cache.classes:
            return
        pieces = contract.crop(event.layer, "negative", releases)
        raising = contract.mask_of(pieces, "raises")
        corrupting = contract.mask_of(pieces, "corrupts")
        if not raising and not corrupting:
            return
        parts = [f"raises on transformers {describe(raising)}"] if raising else []
        parts += [f"is silently wrong past a sliding window on {describe(corrupting)}"] if corrupting else []
        yield Finding(
            "error" if raising and event.cache.seen else "warning",
            f"`crop` on a {'quantised' if event.layer == 'quantised' else 'static'} cache {' and '.join(parts)}",
            pieces,
            Rewrite("display", "Use a `DynamicCache`, or `reset()` the cache and prefill it again"),
        )
