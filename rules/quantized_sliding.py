"""## What it does
Reports a quantised cache for a model with other than full layers.

## Why is this bad
From 5.14 on the constructor raises a `ValueError`; before, the windows were ignored.

## Example
```python
from transformers import AutoModelForCausalLM, QuantizedCache

def start():
    model = AutoModelForCausalLM.from_pretrained("google/gemma-2-9b")
    return QuantizedCache(backend="quanto", config=model.config)
```

## Use instead
```python
from transformers import AutoModelForCausalLM, DynamicCache

def start():
    model = AutoModelForCausalLM.from_pretrained("google/gemma-2-9b")
    return DynamicCache(config=model.config)
```

## Fix safety
No rewrite: there is no quantised cache for such a model.

## References
- <https://github.com/huggingface/transformers/pull/47828> (raises from 5.14 on)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import surface
from cachelint.flow.events import Event, Made, Run
from cachelint.rule import Finding, Rewrite, Rule


class QuantizedSliding(Rule):
    """KV402."""

    code = "KV402"
    name = "quantized-sliding"
    words = (
        "QuantizedCache",
        "quantized",
    )
    triggers = (r"\bQuantizedCache\(", r"[\"']quantized[\"']")
    judges = (Made, Run)
    facts = (("QuantizedCache for a sliding model", "behaviour", "quantised_for_sliding"),)

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where the model's layers are known."""
        if isinstance(event, Made):
            wanted = event.name == "QuantizedCache"
        else:
            assert isinstance(event, Run)
            wanted = event.generates and event.options.get("cache_implementation") == "quantized"
        others = event.layers - {"full"}
        pieces = surface.refusing_value("quantised_for_sliding", releases)
        if wanted and event.sure and others and pieces:
            kinds = " and ".join(sorted(others))
            message = f"a quantised cache takes only full layers, and this model has {kinds} ones"
            yield Finding("error", message, pieces, Rewrite("display", "Use a cache that is not quantised"))
