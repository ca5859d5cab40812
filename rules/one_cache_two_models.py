"""## What it does
Reports one cache that is passed to two models, and a cache made from another model's configuration.

## Why is this bad
Each model puts its own states in: the length doubles, and each attends to the other's. A cache with the layers of
another configuration has too few layers, or windows where there are none.

## Example
```python
from transformers import DynamicCache

def verify(draft_model, target_model, ids):
    cache = DynamicCache()
    draft_model(ids, past_key_values=cache)
    return target_model(ids, past_key_values=cache)
```

## Use instead
```python
from transformers import DynamicCache

def verify(draft_model, target_model, ids):
    draft_model(ids, past_key_values=DynamicCache())
    return target_model(ids, past_key_values=DynamicCache())
```

## Fix safety
No rewrite: give each model a cache of its own.

## References
- <https://huggingface.co/docs/transformers/kv_cache> (a cache belongs to a model)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cachelint.contracts import surface
from cachelint.flow.events import Event, Run
from cachelint.rule import Finding, Rewrite, Rule


class OneCacheTwoModels(Rule):
    """KV214."""

    code = "KV214"
    name = "one-cache-two-models"
    words = (
        "draft",
        "target",
        "assist",
        "small",
        "large",
        "teacher",
        "student",
        "expert",
        "amateur",
        "Cache(",
    )
    triggers = (
        r"Cache\(\s*config\s*=",
        r"(?:draft|target|assist|small|large|teacher|student|expert|amateur)\w*(?:\.\w+)?\("
        r"(?:(?!\n[ \t]*\n)[\s\S]){0,400}?past_key_values?\s*=",
    )
    judges = (Run,)
    facts = (("one cache fed six tokens by each of two models", "behaviour", "two_models"),)

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where the models are two for certain, or are named so."""
        assert isinstance(event, Run)
        pieces = surface.shown("two_models", releases, "length 12", detail="holds the states of both models")
        if "other model" in event.about and pieces:
            message = "the cache was filled by another model"
        elif "other config" in event.about and pieces:
            message = "the cache was made from another model's configuration"
            pieces = tuple(replace(piece, detail="the layers are those of another model") for piece in pieces)
        else:
            return
        yield Finding("error", message, pieces, Rewrite("display", "Give each model a cache of its own"))
