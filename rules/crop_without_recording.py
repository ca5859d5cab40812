"""## What it does
Reports `crop` of a sliding window that can be full, or of a linear layer, without `activate_past_recording()` first.

## Why is this bad
A full window has dropped the states that a roll-back would need, and a linear layer never keeps them. From 5.15 on
(5.14 for linear layers) such a layer raises a `RuntimeError` on every `crop`, unless it was told to record. Layers in
front of it are cropped already. `cache.is_croppable` is True all the same, so it is no guard.

## Example
```python
from transformers import DynamicCache

def retry(model, prompt, draft):
    cache = DynamicCache(config=model.config)
    model(prompt, past_key_values=cache)
    model(draft, past_key_values=cache)
    cache.crop(-2)
```

## Use instead
```python
from transformers import DynamicCache

def retry(model, prompt, draft):
    cache = DynamicCache(config=model.config)
    model(prompt, past_key_values=cache)
    cache.activate_past_recording()
    model(draft, past_key_values=cache)
    cache.crop(-2)
```

## Fix safety
There is no automatic fix: recording must be on before the tokens that go, and should be off during the prefill, whose
states it would all keep. On a linear layer even a recorded `crop` is wrong (KV111).

## References
- <https://github.com/huggingface/transformers/pull/47447> (5.15: roll-back of sliding layers)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import crop as contract
from cachelint.contracts.releases import describe
from cachelint.flow.events import Crop, Event
from cachelint.rule import CROP_CALL, Finding, Rewrite, Rule


class CropWithoutRecording(Rule):
    """KV102."""

    code = "KV102"
    name = "crop-without-recording"
    words = ("crop",)
    triggers = CROP_CALL
    judges = (Crop,)
    facts = (
        ("sliding layers, window full", "crop", "sliding/negative/above/no"),
        ("the same, recording before the prefill", "crop", "sliding/negative/above/before"),
        ("the same, recording between prefill and draft", "crop", "sliding/negative/above/between"),
        ("linear layers", "crop", "linear/negative/above/no"),
        ("full and sliding layers, window full", "crop", "full and sliding/negative/above/no"),
        ("what is_croppable says of a full window", "behaviour", "croppable_full_window"),
    )

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where nothing can have turned recording on, and a release would have let that help."""
        assert isinstance(event, Crop)
        if event.recorded != "no" or event.layer != "full":
            return
        linear = event.cache.known_linear()
        if not linear and not event.may_meet_full_window:
            return
        hopeless = contract.mask_of(contract.never_on_a_full_window(releases))
        kind = "linear" if linear else "sliding"
        pieces = contract.without(contract.crop(kind, "negative", releases), 0 if linear else hopeless)
        raising = tuple(piece for piece in pieces if piece.effect == "raises")
        if not raising:
            return
        certain = event.cache.sure if linear else event.surely_full_window
        what = "with a linear-attention layer" if linear else "whose sliding window can be full"
        yield Finding(
            "error" if certain else "warning",
            f"`crop` on a KV cache {what}, without recording: raises on transformers "
            f"{describe(contract.mask_of(raising))}",
            raising,
            Rewrite("display", "Call `activate_past_recording()` between the prefill and what is removed"),
        )
