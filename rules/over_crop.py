"""## What it does
Reports two crops of a recorded sliding window with no forward between, and a `crop` of more tokens than there are.

## Why is this bad
The first `crop` cuts the recording back to the window less one. A second one right behind it finds too few states:
the next forward fails on a shape. Removing more than there are from a recorded window makes the length negative.

## Example
```python
from transformers import DynamicCache

def retry(model, prompt, draft):
    cache = DynamicCache(config=model.config)
    model(prompt, past_key_values=cache)
    cache.activate_past_recording()
    model(draft, past_key_values=cache)
    cache.crop(-2)
    cache.crop(-1)
```

## Use instead
```python
from transformers import DynamicCache

def retry(model, prompt, draft):
    cache = DynamicCache(config=model.config)
    model(prompt, past_key_values=cache)
    cache.activate_past_recording()
    model(draft, past_key_values=cache)
    cache.crop(-3)
```

## Fix safety
There is no automatic fix: the two amounts may depend on what happens between them.

## References
- <https://github.com/huggingface/transformers/pull/47977> (removing more than there is)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import crop as contract
from cachelint.contracts.releases import describe
from cachelint.flow.events import Crop, Event
from cachelint.rule import CROP_CALL, Finding, Rewrite, Rule


class OverCrop(Rule):
    """KV112."""

    code = "KV112"
    name = "over-crop"
    words = ("crop",)
    triggers = CROP_CALL
    judges = (Crop,)
    facts = (
        ("two crops of a recorded full window", "behaviour", "two_crops"),
        ("more than there are, recorded", "crop", "sliding/over/above/before"),
        ("more than there are, full layers", "crop", "plain/over/above/no"),
    )

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding for a second crop in a row of a recorded window, or one that takes too much."""
        assert isinstance(event, Crop)
        amount = event.amount
        if amount is None or amount.is_zero or event.recorded != "before" or not event.may_meet_full_window:
            return
        over = contract.crop("sliding", "over", releases, recording="before")
        harmful = tuple(piece for piece in over if piece.effect == "corrupts")
        least = event.length.hi is not None and amount.range.hi is not None and -amount.range.hi > event.length.hi
        if not harmful or not (event.cache.compacted or least):
            return
        where = describe(contract.mask_of(harmful))
        if least:
            message = f"`crop` removes more tokens than the cache holds: its length turns negative on {where}"
        else:
            message = f"a second `crop` with no forward since the first leaves a sliding window too short on {where}"
        yield Finding("warning", message, harmful, Rewrite("display", "Remove the sum of both in one `crop`"))
