"""## What it does
Reports the whole of a growing sequence fed to a forward together with a cache that holds most of it.

## Why is this bad
A forward takes every id for a new token: those that the cache holds already are put in a second time, and the logits
are wrong. `generate` cuts them off, a forward does not.

## Example
```python
import torch
from transformers import DynamicCache

def decode(model, ids, steps):
    cache = DynamicCache()
    for _ in range(steps):
        out = model(ids, past_key_values=cache)
        ids = torch.cat([ids, out.logits[:, -1:].argmax(-1)], dim=1)
    return ids
```

## Use instead
```python
import torch
from transformers import DynamicCache

def decode(model, ids, steps):
    cache = DynamicCache()
    new = ids
    for _ in range(steps):
        out = model(new, past_key_values=cache)
        new = out.logits[:, -1:].argmax(-1)
        ids = torch.cat([ids, new], dim=1)
    return ids
```

## Fix safety
No rewrite: feed only what the cache does not hold.

## References
- <https://github.com/huggingface/transformers/issues/30108> (a cache and all ids)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import surface
from cachelint.flow.events import Event, Run
from cachelint.rule import Finding, Rewrite, Rule


class RefedTokens(Rule):
    """KV207."""

    code = "KV207"
    name = "refed-tokens"
    words = (
        "cat(",
        "concat(",
        "concatenate(",
        "stack(",
        "append(",
    )
    triggers = (
        r"(?P<grown>\b\w*(?:id|tok|seq|input|prompt|gen|context|out|text|x|y)\w*)\s*=\s*(?:\w+\.)*(?:cat|concat|concatenate|hstack|append)\(\s*[\[(]?\s*(?P=grown)\s*,",
    )
    judges = (Run,)
    facts = (("seven ids fed to a cache of the first six", "behaviour", "ids_fed_again"),)

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where the ids have grown since the cache was filled."""
        assert isinstance(event, Run)
        if event.generates or "grown ids" not in event.about:
            return
        pieces = surface.shown("ids_fed_again", releases, "length 13", detail="the tokens are put in twice")
        if pieces:
            message = "all ids are fed again to a forward whose cache holds most of them already"
            yield Finding("error", message, pieces, Rewrite("display", "Feed only the ids that the cache lacks"))
