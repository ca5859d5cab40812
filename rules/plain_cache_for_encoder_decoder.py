"""## What it does
Reports a `DynamicCache` passed to an encoder-decoder model.

## Why is this bad
The model puts the states of its self-attention and of its cross-attention into the same layers: the output is garbage
on 5.x, and an error before.

## Example
```python
from transformers import AutoModelForSeq2SeqLM, DynamicCache

def translate(name, ids):
    model = AutoModelForSeq2SeqLM.from_pretrained(name)
    return model.generate(ids, past_key_values=DynamicCache())
```

## Use instead
```python
from transformers import AutoModelForSeq2SeqLM, DynamicCache, EncoderDecoderCache

def translate(name, ids):
    model = AutoModelForSeq2SeqLM.from_pretrained(name)
    return model.generate(ids, past_key_values=EncoderDecoderCache(DynamicCache(), DynamicCache()))
```

## Fix safety
No rewrite: wrap two caches in an `EncoderDecoderCache`.

## References
- <https://github.com/huggingface/transformers/issues/36238> (encoder-decoder caches)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import surface
from cachelint.contracts.models import model_type
from cachelint.flow.events import Event, Run
from cachelint.rule import Finding, Rewrite, Rule

_AUTO = frozenset({"AutoModelForSeq2SeqLM", "AutoModelForSpeechSeq2Seq"})


class PlainCacheForEncoderDecoder(Rule):
    """KV404."""

    code = "KV404"
    name = "plain-cache-for-encoder-decoder"
    words = ("DynamicCache(",)
    triggers = (r"\bDynamicCache\(",)
    judges = (Run,)
    facts = (("DynamicCache() passed to T5", "behaviour", "plain_for_encoder_decoder"),)

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where the model's class says that it has an encoder and a decoder."""
        assert isinstance(event, Run)
        if not event.known or event.classes != {"DynamicCache"}:
            return
        family = model_type(event.model)
        if event.model not in _AUTO and not (family and surface.is_encoder_decoder(family)):
            return
        detail = "self-attention and cross-attention are mixed"
        pieces = surface.shown("plain_for_encoder_decoder", releases, "wrong logits", detail=detail)
        if pieces:
            message = "a plain `DynamicCache` for an encoder-decoder model mixes its two attentions"
            advice = "Pass `EncoderDecoderCache(DynamicCache(), DynamicCache())`"
            yield Finding("error", message, pieces, Rewrite("display", advice))
