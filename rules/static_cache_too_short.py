"""## What it does
Reports a static cache that is too short for what is fed and generated.

## Why is this bad
Writing behind the end raises an `IndexError`; on a GPU it is an assertion on the device, which ends the process.

## Example
```python
from transformers import AutoModelForCausalLM, StaticCache

def answer(name, ids):
    model = AutoModelForCausalLM.from_pretrained(name)
    cache = StaticCache(config=model.config, max_cache_len=128)
    return model.generate(ids, past_key_values=cache, max_new_tokens=256)
```

## Use instead
```python
from transformers import AutoModelForCausalLM, StaticCache

def answer(name, ids):
    model = AutoModelForCausalLM.from_pretrained(name)
    cache = StaticCache(config=model.config, max_cache_len=ids.shape[1] + 256)
    return model.generate(ids, past_key_values=cache, max_new_tokens=256)
```

## Fix safety
No rewrite: make the cache as long as the prompt and what is generated.

## References
- <https://github.com/huggingface/transformers/issues/46424> (a static cache that is too short)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import surface
from cachelint.flow.events import Event, Run
from cachelint.rule import Finding, Rewrite, Rule


class StaticCacheTooShort(Rule):
    """KV403."""

    code = "KV403"
    name = "static-cache-too-short"
    words = ("max_cache_len",)
    triggers = (r"\bmax_cache_len\s*=",)
    judges = (Run,)
    facts = (("a static cache of 64 fed with 70 tokens", "behaviour", "static_too_short"),)

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where it runs over whatever the prompt is."""
        assert isinstance(event, Run)
        least = event.capacity.lo if event.capacity is not None else None
        if least is None or least <= 0 or event.classes != {"StaticCache"}:
            return
        pieces = surface.shown("static_too_short", releases)
        if pieces:
            message = f"the static cache is too short by {least} or more tokens"
            advice = "Make `max_cache_len` the prompt's length and what is generated"
            yield Finding("error", message, pieces, Rewrite("display", advice))
