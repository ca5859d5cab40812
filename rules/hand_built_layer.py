"""## What it does
Reports a layer whose `keys` and `values` are set by hand and which is put among a cache's layers.

## Why is this bad
The layer does not know that it holds anything: its length is 0, and the first update throws the tensors away.

## Example
```python
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

def load(pairs):
    cache = DynamicCache()
    for keys, values in pairs:
        layer = DynamicLayer()
        layer.keys, layer.values = keys, values
        cache.layers.append(layer)
    return cache
```

## Use instead
```python
from transformers import DynamicCache

def load(pairs):
    cache = DynamicCache()
    for index, (keys, values) in enumerate(pairs):
        cache.update(keys, values, index)
    return cache
```

## Fix safety
No rewrite: put the tensors in with `cache.update(keys, values, index)`.

## References
- <https://github.com/huggingface/transformers/blob/v5.24.0/src/transformers/cache_utils.py> (`DynamicLayer`)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import surface
from cachelint.flow.events import Assembled, Event
from cachelint.rule import Finding, Rewrite, Rule


class HandBuiltLayer(Rule):
    """KV406."""

    code = "KV406"
    name = "hand-built-layer"
    words = ("Layer(",)
    triggers = (r"\b(?:Dynamic|Static)(?:SlidingWindow)?Layer\(",)
    judges = (Assembled,)
    facts = (("a layer assembled by hand, four tokens in it", "behaviour", "hand_built_layer"),)

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where such a layer is added."""
        assert isinstance(event, Assembled)
        pieces = surface.shown("hand_built_layer", releases, "length 0", detail="its tensors are thrown away")
        if pieces:
            message = "this layer's tensors were set by hand: it counts no tokens, and the next update drops them"
            advice = "Put them in with `cache.update(keys, values, index)`"
            yield Finding("error", message, pieces, Rewrite("display", advice))
