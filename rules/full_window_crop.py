"""## What it does
Reports any `crop` that can meet a full sliding window where the project supports releases on which that always
fails.

## Why is this bad
From 4.56 to 5.14 a layer with a sliding window that has seen as many tokens as the window holds raises a
`ValueError` on every `crop`, whatever the argument. It works as long as the text is short, so it passes tests and
fails in production. Layers in front of the failing one are cropped already, so going on with the cache corrupts
it.

## Example
```python
from transformers import DynamicCache, MistralConfig

def retry(model, ids, rejected):
    cache = DynamicCache(config=MistralConfig(sliding_window=4096))
    model(ids, past_key_values=cache)
    cache.crop(-rejected)
```

## Use instead
```python
from transformers import DynamicCache

def retry(model, ids, rejected):
    cache = DynamicCache()
    model(ids, past_key_values=cache)
    if rejected > 0:
        cache.crop(-rejected)
```

## Fix safety
There is no automatic fix: a cache without a config keeps all tokens, which costs memory, and only the author
knows whether that can be afforded. From 5.15 on `activate_past_recording()` lets a full window be cropped.

## References
- <https://github.com/huggingface/transformers/pull/40039> (4.56: sliding layers in `DynamicCache`)
- <https://github.com/huggingface/transformers/pull/47447> (5.15: roll-back of sliding layers)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import crop as contract
from cachelint.contracts.releases import describe
from cachelint.flow.events import Crop, Event
from cachelint.rule import CROP_CALL, Finding, Rewrite, Rule


class FullWindowCrop(Rule):
    """KV104."""

    code = "KV104"
    name = "full-window-crop"
    words = ("crop",)
    triggers = CROP_CALL
    judges = (Crop,)
    facts = (
        ("sliding layers below the window", "crop", "sliding/negative/below/no"),
        ("sliding layers, as many tokens as the window", "crop", "sliding/negative/at/no"),
        ("sliding layers, more tokens", "crop", "sliding/negative/above/no"),
        ("the same, recording", "crop", "sliding/negative/above/before"),
        ("full and sliding layers, window full", "crop", "full and sliding/negative/above/no"),
        ("chunked layers, chunk full", "crop", "chunked/negative/above/no"),
    )

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where a layer can slide and its window can be full."""
        assert isinstance(event, Crop)
        if not event.may_meet_full_window:
            return
        pieces = contract.never_on_a_full_window(releases)
        if not pieces:
            return
        certain = event.surely_full_window
        state = "is full" if certain else "can be full"
        yield Finding(
            "error" if certain else "warning",
            f"`crop` on a KV cache whose sliding window {state}: raises whatever the argument "
            f"on transformers {describe(contract.mask_of(pieces))}",
            pieces,
            Rewrite(
                "display",
                "Use `DynamicCache()` without a config, whose layers are never sliding, or prefill a new cache",
            ),
        )
