"""## What it does
Reports recording that is turned on before the prompt is fed.

## Why is this bad
While a cache records, its sliding layers keep every token: of a long prompt that can be gigabytes that nobody will
roll back. Turned on between the prompt and the tokens that may be removed, it does the same for less.

## Example
```python
from transformers import AutoModelForCausalLM, DynamicCache

def draft(prompt, block):
    model = AutoModelForCausalLM.from_pretrained("google/gemma-2-9b")
    cache = DynamicCache(config=model.config)
    cache.activate_past_recording()
    model(prompt, past_key_values=cache)
    model(block, past_key_values=cache)
    cache.crop(-block.shape[1])
```

## Use instead
```python
from transformers import AutoModelForCausalLM, DynamicCache

def draft(prompt, block):
    model = AutoModelForCausalLM.from_pretrained("google/gemma-2-9b")
    cache = DynamicCache(config=model.config)
    model(prompt, past_key_values=cache)
    cache.activate_past_recording()
    model(block, past_key_values=cache)
    cache.crop(-block.shape[1])
```

## Fix safety
No rewrite: where the prompt ends, only the author knows.

## References
- <https://github.com/huggingface/transformers/pull/47447> (recording)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import surface
from cachelint.flow.events import Event, Recorded
from cachelint.rule import Finding, Rewrite, Rule


class RecordingBeforePrefill(Rule):
    """KV501."""

    code = "KV501"
    name = "recording-before-prefill"
    words = ("activate_past_recording",)
    triggers = (r"\bactivate_past_recording\b",)
    judges = (Recorded,)
    facts = (("twelve tokens with recording on before them", "behaviour", "recording_before_prefill"),)

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where the cache is empty by then."""
        assert isinstance(event, Recorded)
        if event.length.hi != 0 or not event.cache.may_slide():
            return
        pieces = surface.shown(
            "recording_before_prefill",
            releases,
            "keeps 12 of 12",
            effect="slow",
            detail="every token of the prompt stays",
        )
        if pieces:
            message = "recording is turned on before the prompt is fed, and every token of it is kept"
            yield Finding("warning", message, pieces, Rewrite("display", "Turn it on after the prompt"))
