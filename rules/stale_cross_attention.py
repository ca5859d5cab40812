"""## What it does
Reports an encoder-decoder cache that is used again with another input of the encoder.

## Why is this bad
The states of the cross-attention are computed once and kept: the model answers the old input.

## Example
```python
from transformers import AutoModelForSeq2SeqLM, DynamicCache, EncoderDecoderCache

def translate(name, tokenizer, sentences):
    model = AutoModelForSeq2SeqLM.from_pretrained(name)
    cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
    for sentence in sentences:
        ids = tokenizer(sentence, return_tensors="pt").input_ids
        yield model.generate(ids, past_key_values=cache)
```

## Use instead
```python
from transformers import AutoModelForSeq2SeqLM, DynamicCache, EncoderDecoderCache

def translate(name, tokenizer, sentences):
    model = AutoModelForSeq2SeqLM.from_pretrained(name)
    for sentence in sentences:
        cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
        ids = tokenizer(sentence, return_tensors="pt").input_ids
        yield model.generate(ids, past_key_values=cache)
```

## Fix safety
No rewrite: make a new cache for each input.

## References
- <https://github.com/huggingface/transformers/pull/31166> (encoder-decoder caches)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import surface
from cachelint.flow.events import Event, Run
from cachelint.rule import Finding, Rewrite, Rule


class StaleCrossAttention(Rule):
    """KV215."""

    code = "KV215"
    name = "stale-cross-attention"
    words = ("EncoderDecoderCache",)
    triggers = (r"\bEncoderDecoderCache\b",)
    judges = (Run,)
    facts = (("an encoder-decoder cache used with another input", "behaviour", "encoder_decoder_reused"),)

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where the encoder is given something else."""
        assert isinstance(event, Run)
        if event.classes != {"EncoderDecoderCache"} or not event.about & {"other prompt", "other encoder input"}:
            return
        detail = "the old input is answered"
        pieces = surface.shown("encoder_decoder_reused", releases, "wrong logits", detail=detail)
        if pieces:
            message = "the cache keeps the cross-attention of another input of the encoder"
            yield Finding("error", message, pieces, Rewrite("display", "Make a new cache for each input"))
