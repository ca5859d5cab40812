"""## What it does
Reports `crop` with its argument passed by a keyword that a supported release does not have.

## Why is this bad
The parameter was `max_length` (`maximum_length` on `EncoderDecoderCache`) and is `tokens_to_remove` since 5.15.
The old keyword of `Cache.crop` went without a time of grace: from 5.15 on it is a `TypeError`. The new one is a
`TypeError` before.

## Example
```python
from transformers import DynamicCache

def shorten(model, ids):
    cache = DynamicCache()
    model(ids, past_key_values=cache)
    cache.crop(max_length=-1)
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
Safe: every release takes the argument by position. What the value means is judged by KV101 and KV105.

## References
- <https://github.com/huggingface/transformers/pull/47447> (5.15: `tokens_to_remove`)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import crop as contract
from cachelint.contracts.releases import describe
from cachelint.flow.events import Crop, Event
from cachelint.rule import CROP_CALL, Finding, Rewrite, Rule


class CropKeyword(Rule):
    """KV107."""

    code = "KV107"
    name = "crop-keyword"
    words = ("crop",)
    triggers = CROP_CALL
    judges = (Crop,)
    facts = (
        ("crop(max_length=…)", "keywords", "Cache/max_length"),
        ("crop(tokens_to_remove=…)", "keywords", "Cache/tokens_to_remove"),
        ("crop(maximum_length=…) of an EncoderDecoderCache", "keywords", "EncoderDecoderCache/maximum_length"),
    )

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where some release does not take the keyword."""
        assert isinstance(event, Crop)
        if event.keyword is None or event.keyword not in contract.keywords():
            return
        pieces = contract.keyword(event.keyword, event.cache.classes, releases)
        raising, warning = contract.mask_of(pieces, "raises"), contract.mask_of(pieces, "warns")
        if not raising and not warning:
            return
        what = f"raises a TypeError on transformers {describe(raising)}" if raising else ""
        if not raising:
            what = f"is deprecated on transformers {describe(warning)}"
        yield Finding(
            "error" if raising else "warning",
            f"`crop({event.keyword}=…)`: the keyword {what}",
            pieces,
            self._rewrite(event),
        )

    @staticmethod
    def _rewrite(event: Crop) -> Rewrite | None:
        from cachelint.rewrites import positional

        return positional(event)
