"""## What it does
Reports a loop that feeds a cache which records its past, and never crops it.

## Why is this bad
While a cache records, its sliding layers let go of nothing: they grow by every token, window or no window. On 5.15 to
5.17 the second forward without a crop even raises.

## Example
```python
from transformers import AutoModelForCausalLM, DynamicCache

def decode(tokens):
    model = AutoModelForCausalLM.from_pretrained("google/gemma-2-9b")
    cache = DynamicCache(config=model.config)
    model(tokens[:, :4], past_key_values=cache)
    cache.activate_past_recording()
    for token in tokens.unbind(1):
        model(token[:, None], past_key_values=cache)
```

## Use instead
```python
from transformers import AutoModelForCausalLM, DynamicCache

def decode(tokens):
    model = AutoModelForCausalLM.from_pretrained("google/gemma-2-9b")
    cache = DynamicCache(config=model.config)
    model(tokens[:, :4], past_key_values=cache)
    cache.activate_past_recording()
    for token in tokens.unbind(1):
        model(token[:, None], past_key_values=cache)
        cache.crop(0)
```

## Fix safety
No rewrite: crop after each forward, by 0 where nothing is to be removed.

## References
- <https://github.com/huggingface/transformers/pull/48280> (several forwards without a crop)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import surface
from cachelint.flow.events import Event, Run
from cachelint.rule import Finding, Rewrite, Rule


class RecordedNeverCropped(Rule):
    """KV109."""

    code = "KV109"
    name = "recorded-never-cropped"
    words = ("activate_past_recording",)
    triggers = (r"\bactivate_past_recording\b",)
    judges = (Run,)
    facts = (("24 forwards on a recording cache without a crop", "behaviour", "recorded_without_crop"),)

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where the loop holds no crop and the layers can be such as record."""
        assert isinstance(event, Run)
        if "no crop" not in event.about or not any(cache.may_slide() for cache in event.caches):
            return
        detail = "every token stays in memory"
        pieces = surface.shown("recorded_without_crop", releases, "keeps 24 of 24", effect="slow", detail=detail)
        if pieces:
            message = "the cache records its past and is fed again and again without a crop"
            yield Finding("warning", message, pieces, Rewrite("display", "Crop after each forward, by 0 if need be"))
