"""## What it does
Reports a number of tokens that is read from the shape of a layer's tensor, where the layer can be a sliding or static
one.

## Why is this bad
A sliding layer stores at most a window less one, however many tokens it has seen; a static layer is as long as it was
made, however few it holds.

## Example
```python
from transformers import AutoModelForCausalLM, DynamicCache

def seen(ids):
    model = AutoModelForCausalLM.from_pretrained("google/gemma-2-9b")
    cache = DynamicCache(config=model.config)
    model(ids, past_key_values=cache)
    return cache.layers[0].keys.shape[-2]
```

## Use instead
```python
from transformers import AutoModelForCausalLM, DynamicCache

def seen(ids):
    model = AutoModelForCausalLM.from_pretrained("google/gemma-2-9b")
    cache = DynamicCache(config=model.config)
    model(ids, past_key_values=cache)
    return cache.get_seq_length()
```

## Fix safety
The expression becomes `cache.get_seq_length()`, unsafe: the stored length can be what was meant.

## References
- <https://github.com/huggingface/transformers/issues/36151> (lengths of a cache)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import surface
from cachelint.diagnostics import Severity
from cachelint.flow.events import Event, ShapeRead
from cachelint.rule import Finding, Rewrite, Rule


class LengthFromShape(Rule):
    """KV213."""

    code = "KV213"
    name = "length-from-shape"
    words = (
        ".shape[",
        ".size(",
    )
    triggers = (r"\b(?:keys|values|key_cache|value_cache)\b.{0,24}\.(?:shape\[\s*-?2\s*\]|size\(\s*-?2\s*\))",)
    judges = (ShapeRead,)
    facts = (
        ("keys.shape[-2] of a sliding layer that has seen twelve", "behaviour", "length_from_shape"),
        ("keys.shape[-2] of a static layer of 64 that has seen six", "behaviour", "static_length_from_shape"),
    )

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where the layers tell no length by their shape."""
        assert isinstance(event, ShapeRead)
        static = event.cache.is_static
        if static:
            pieces = surface.shown("static_length_from_shape", releases, "64", detail="the length it was made with")
        elif event.cache.may_slide():
            pieces = surface.shown("length_from_shape", releases, "7", detail="at most the window less one")
        else:
            return
        if pieces:
            kind = "static" if static else "sliding"
            message = f"the shape of a {kind} layer's tensor is no number of tokens seen"
            severity: Severity = "error" if static or event.cache.sure else "warning"
            yield Finding(severity, message, pieces, Rewrite("display", "Ask `cache.get_seq_length()`"))
