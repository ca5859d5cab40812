"""## What it does
Reports `reset()` of a dynamic cache where a supported release does not empty it.

## Why is this bad
Up to 4.53 a dynamic cache has no `reset`; from 4.54 to 5.17 it writes zeros into the tensors and keeps the length, so
that the next tokens attend to zeros.

## Example
```python
from transformers import DynamicCache

def runs(model, first, second):
    cache = DynamicCache()
    model(first, past_key_values=cache)
    cache.reset()
    return model(second, past_key_values=cache)
```

## Use instead
```python
from transformers import DynamicCache

def runs(model, first, second):
    cache = DynamicCache()
    model(first, past_key_values=cache)
    cache = DynamicCache()
    return model(second, past_key_values=cache)
```

## Fix safety
No rewrite: make a new cache, wherever the old one is known by name.

## References
- <https://github.com/huggingface/transformers/issues/48509> (`reset` keeps the length)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import surface
from cachelint.contracts.crop import mask_of
from cachelint.contracts.releases import describe
from cachelint.flow.events import Event, Reset
from cachelint.rule import Finding, Rewrite, Rule


class ResetKeepsTokens(Rule):
    """KV209."""

    code = "KV209"
    name = "reset-keeps-tokens"
    words = (".reset()",)
    triggers = (r"(?:cache|past_key_values|past|kv|pkv)\w*\.reset\(\)",)
    judges = (Reset,)
    facts = (("reset() of a dynamic cache of six tokens", "behaviour", "reset_dynamic"),)

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where something can be in a cache that is dynamic for certain."""
        assert isinstance(event, Reset)
        if event.cache.classes != {"DynamicCache"} or event.length.hi == 0:
            return
        pieces = surface.behaviour("reset_dynamic", releases)
        pieces += surface.shown("reset_dynamic", releases, "length 6", detail="keeps the length, filled with zeros")
        if not pieces:
            return
        keeping, raising = mask_of(pieces, "corrupts"), mask_of(pieces, "raises")
        told = [f"keeps the tokens as zeros on transformers {describe(keeping)}"] if keeping else []
        told += [f"raises an AttributeError on transformers {describe(raising)}"] if raising else []
        message = f"`reset()` of a dynamic cache {' and '.join(told)}"
        yield Finding("error", message, pieces, Rewrite("display", "Make a new cache instead"))
