"""## What it does
Reports a `DynamicCache()` without a configuration for a model with linear-attention layers.

## Why is this bad
Without the configuration all layers are full ones, in which the model finds no place for its recurrent states: it
raises.

## Example
```python
from transformers import AutoModelForCausalLM, DynamicCache

def step(ids):
    model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen3-Next-80B-A3B-Instruct")
    return model(ids, past_key_values=DynamicCache())
```

## Use instead
```python
from transformers import AutoModelForCausalLM, DynamicCache

def step(ids):
    model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen3-Next-80B-A3B-Instruct")
    return model(ids, past_key_values=DynamicCache(config=model.config))
```

## Fix safety
A `DynamicCache()` written in the call gets the model's `config`, safe where every supported release takes that.

## References
- <https://github.com/huggingface/transformers/issues/43679> (caches and configurations)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import surface
from cachelint.flow.events import Event, Run
from cachelint.rule import Finding, Rewrite, Rule


class CacheWithoutConfig(Rule):
    """KV405."""

    code = "KV405"
    name = "cache-without-config"
    words = ("DynamicCache(",)
    triggers = (r"\bDynamicCache\(\s*\)",)
    judges = (Run,)
    facts = (("DynamicCache() for a model with linear layers", "behaviour", "plain_for_linear"),)

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where the model's layers are known."""
        assert isinstance(event, Run)
        plain = event.classes == {"DynamicCache"} and all(c.layers == {"full"} for c in event.caches)
        if not plain or not event.sure or "linear" not in event.layers:
            return
        pieces = surface.behaviour("plain_for_linear", releases)
        if pieces:
            message = "a `DynamicCache()` without `config=` has no place for this model's recurrent states"
            yield Finding("error", message, pieces, self._rewrite(event, releases))

    @staticmethod
    def _rewrite(event: Run, releases: int) -> Rewrite:
        import libcst as cst

        advice = Rewrite("display", "Pass `config=model.config` to the cache")
        made = event.argument.value if event.argument is not None else None
        func = event.node.func if isinstance(event.node, cst.Call) else None
        model = func.value if isinstance(func, cst.Attribute) and func.attr.value == "generate" else func
        if not isinstance(made, cst.Call) or made.args or not isinstance(model, (cst.Name, cst.Attribute)):
            return advice
        if surface.refused("truth_of_empty_with_config", releases):
            return advice
        unit = event.unit
        text = f"{unit.text(made.func)}(config={unit.text(model)}.config)"
        return Rewrite("safe", "Make it for the model", ((unit.span(made), text),))
