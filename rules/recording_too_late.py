"""## What it does
Reports a `crop` of tokens that came before `activate_past_recording()` was called.

## Why is this bad
Recording keeps what comes after it. A full window has dropped older states for good, so that the `crop` passes and
leaves fewer states than the mask expects: the next forward fails on a shape, or goes on with wrong states.

## Example
```python
from transformers import DynamicCache

def retry(model, prompt):
    cache = DynamicCache(config=model.config)
    model(prompt, past_key_values=cache)
    cache.activate_past_recording()
    cache.crop(-3)
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
There is no automatic fix: only the author knows between which two forwards recording belongs.

## References
- <https://github.com/huggingface/transformers/pull/47447> (5.15: roll-back of sliding layers)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import crop as contract
from cachelint.contracts.releases import describe
from cachelint.flow.events import Crop, Event
from cachelint.rule import CROP_CALL, Finding, Rewrite, Rule


class RecordingTooLate(Rule):
    """KV103."""

    code = "KV103"
    name = "recording-too-late"
    words = ("crop",)
    triggers = CROP_CALL
    judges = (Crop,)
    facts = (
        ("sliding layers, window full, recording after the tokens", "crop", "sliding/negative/above/late"),
        ("recording between prefill and the removed tokens", "crop", "sliding/negative/above/between"),
        ("convolution layers, recording after the tokens", "crop", "convolution/negative/above/late"),
    )

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where recording certainly began after the last tokens."""
        assert isinstance(event, Crop)
        amount = event.amount
        if event.recorded != "late" or not event.may_meet_full_window or (amount and amount.is_zero):
            return
        pieces = contract.crop("sliding", "negative", releases, recording="late")
        harmful = tuple(piece for piece in pieces if piece.effect == "corrupts")
        if not harmful:
            return
        yield Finding(
            "error" if event.surely_full_window else "warning",
            "`crop` of tokens that came before `activate_past_recording()`: a full sliding window is left too short "
            f"on transformers {describe(contract.mask_of(harmful))}",
            harmful,
            Rewrite("display", "Call `activate_past_recording()` before the forward whose tokens are removed"),
        )
