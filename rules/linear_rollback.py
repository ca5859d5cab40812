"""## What it does
Reports a recorded `crop` on a KV cache that holds linear-attention layers.

## Why is this bad
The `crop` returns normally and rolls back the convolution state of such a layer, but not its recurrent state, which
keeps the removed tokens. Nothing raises, and what the model says next is wrong. `cache.is_croppable` is False there.

## Example
```python
from transformers import AutoModelForCausalLM, DynamicCache

def retry(prompt, draft):
    model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen3-Next-80B-A3B-Instruct")
    cache = DynamicCache(config=model.config)
    model(prompt, past_key_values=cache)
    cache.activate_past_recording()
    model(draft, past_key_values=cache)
    cache.crop(-2)
```

## Use instead
```python
import copy

from transformers import AutoModelForCausalLM, DynamicCache

def retry(prompt, draft):
    model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen3-Next-80B-A3B-Instruct")
    cache = DynamicCache(config=model.config)
    model(prompt, past_key_values=cache)
    attempt = copy.deepcopy(cache)
    model(draft, past_key_values=attempt)
    return cache
```

## Fix safety
There is no automatic fix: a snapshot before the draft, or a new prefill, must take the place of the roll-back.

## References
- <https://github.com/huggingface/transformers/issues/49036> (roll-back of hybrid models)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import crop as contract
from cachelint.contracts.releases import describe
from cachelint.flow.events import Crop, Event
from cachelint.rule import CROP_CALL, Finding, Rewrite, Rule


class LinearRollback(Rule):
    """KV111."""

    code = "KV111"
    name = "linear-rollback"
    words = ("crop",)
    triggers = CROP_CALL
    judges = (Crop,)
    facts = (
        ("linear layers, recording before the prefill", "crop", "linear/negative/above/before"),
        ("linear layers, recording after the prefill", "crop", "linear/negative/above/between"),
        ("linear layers, not recording", "crop", "linear/negative/above/no"),
        ("convolution layers, recording", "crop", "convolution/negative/above/before"),
    )

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where a known linear layer is rolled back, recorded or silently ignored."""
        assert isinstance(event, Crop)
        amount = event.amount
        if not event.cache.known_linear() or (amount is not None and amount.is_zero):
            return
        recording = "before" if event.recorded in ("before", "late") else "no"
        pieces = contract.crop("linear", "negative", releases, recording=recording)
        harmful = tuple(piece for piece in pieces if piece.effect == "corrupts")
        if not harmful:
            return
        yield Finding(
            "error" if event.cache.sure and event.recorded else "warning",
            "`crop` on a KV cache with linear-attention layers: the recurrent state keeps the removed tokens "
            f"on transformers {describe(contract.mask_of(harmful))}",
            harmful,
            Rewrite("display", "Keep a `copy.deepcopy` of the cache from before the draft, or prefill again"),
        )
