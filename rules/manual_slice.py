"""## What it does
Reports a layer's `keys` or `values` cut by hand, where the layer can be a sliding, static or quantised one.

## Why is this bad
The layer keeps its own count of tokens, which the slice does not touch: a sliding layer goes on with a wrong window,
a static one writes behind the end of its tensor.

## Example
```python
from transformers import AutoModelForCausalLM, DynamicCache

def cut(ids, kept):
    model = AutoModelForCausalLM.from_pretrained("google/gemma-2-9b")
    cache = DynamicCache(config=model.config)
    model(ids, past_key_values=cache)
    for layer in cache.layers:
        layer.keys = layer.keys[:, :, :kept, :]
        layer.values = layer.values[:, :, :kept, :]
```

## Use instead
```python
from transformers import AutoModelForCausalLM, DynamicCache

def cut(ids, removed):
    model = AutoModelForCausalLM.from_pretrained("google/gemma-2-9b")
    cache = DynamicCache(config=model.config)
    model(ids[:, :4], past_key_values=cache)
    cache.activate_past_recording()
    model(ids[:, 4:], past_key_values=cache)
    if removed > 0:
        cache.crop(-removed)
```

## Fix safety
No rewrite: `crop(-n)` removes the last n tokens from every layer.

## References
- <https://github.com/huggingface/transformers/issues/35168> (states cut by hand)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import surface
from cachelint.diagnostics import Severity
from cachelint.flow.events import Cut, Event
from cachelint.rule import Finding, Rewrite, Rule


class ManualSlice(Rule):
    """KV110."""

    code = "KV110"
    name = "manual-slice"
    words = (
        ".keys =",
        ".values =",
        ".keys,",
        ".values,",
        ".keys=",
        ".values=",
    )
    triggers = (r"\.(?:keys|values)\s*(?:,[^=\n]*)?=(?!=)",)
    judges = (Cut,)
    facts = (
        ("the tensors of a full sliding window cut by hand", "behaviour", "cut_by_hand"),
        ("the tensors of a static layer cut by hand", "behaviour", "cut_by_hand_static"),
    )

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding for each tensor, where the layers can be others than full ones."""
        assert isinstance(event, Cut)
        static = event.cache.is_static
        if static:
            pieces = surface.shown("cut_by_hand_static", releases)
        elif event.cache.may_slide():
            pieces = surface.shown("cut_by_hand", releases, "wrong logits", detail="the logits are wrong")
        else:
            return
        if pieces:
            kind = "static" if static else "sliding"
            message = f"`{event.name}` of a {kind} layer is cut by hand, and the layer's own count of tokens is not"
            severity: Severity = "error" if static or event.cache.sure else "warning"
            yield Finding(severity, message, pieces, Rewrite("display", "Remove tokens with `cache.crop(-n)`"))
