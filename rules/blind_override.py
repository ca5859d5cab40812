"""## What it does
Reports an override in an attention or model that lacks the name under which a release passes the cache.

## Why is this bad
The parameter was `past_key_value` up to 4.55 and `past_key_values` up to 5.23 in an attention, and is `cache` in 5.24,
in models too. Under the old name the override sees None: it runs without the cache and the output is wrong; without
`**kwargs` it raises a `TypeError`.

## Example
```python
from transformers.models.llama.modeling_llama import LlamaAttention

class Attention(LlamaAttention):
    def forward(self, hidden_states, past_key_values=None, **kwargs):
        if past_key_values is not None:
            hidden_states = hidden_states * 1
        return super().forward(hidden_states, past_key_values=past_key_values, **kwargs)
```

## Use instead
```python
from transformers.models.llama.modeling_llama import LlamaAttention

class Attention(LlamaAttention):
    def forward(self, hidden_states, cache=None, past_key_values=None, past_key_value=None, **kwargs):
        passed = {"cache": cache, "past_key_values": past_key_values, "past_key_value": past_key_value}
        kwargs.update({name: value for name, value in passed.items() if value is not None})
        return super().forward(hidden_states, **kwargs)
```

## Fix safety
No rewrite: accept each name of the supported releases, and take the one that is given.

## References
- <https://github.com/huggingface/transformers/pull/41448> (`past_key_values` in attentions)
- <https://github.com/huggingface/transformers/releases/tag/v5.24.0> (`cache`)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cachelint.contracts import surface
from cachelint.contracts.crop import Piece
from cachelint.contracts.releases import describe
from cachelint.flow.events import Event, Overridden
from cachelint.rule import Finding, Rewrite, Rule

_NAMES = ("past_key_value", "past_key_values", "cache")
_OF_MODELS = re.compile(r"(?:Model|ForCausalLM|ForConditionalGeneration|LMHeadModel)$")
# They have no such method of their own that would be overridden.
_OPEN_BASES = re.compile(r"(?:PreTrainedModel|AutoModel)$")


class BlindOverride(Rule):
    """KV311."""

    code = "KV311"
    name = "blind-override"
    words = (
        ".forward",
        "prepare_inputs_for_generation",
        "forward",
    )
    triggers = (
        r"\bclass\s+\w+\([^)\n]*(?:Attention|ForCausalLM|ForConditionalGeneration|LMHeadModel)\b",
        r"\.(?:forward|prepare_inputs_for_generation)\s*=(?!=)",
        r"setattr\([^\n]*[\"']forward[\"']",
    )
    judges = (Overridden,)
    facts = (
        ("an attention's forward(…, past_key_value=None, **kwargs)", "behaviour", "attention_past_key_value"),
        ("an attention's forward(…, past_key_values=None, **kwargs)", "behaviour", "attention_past_key_values"),
        ("an attention's forward(…, cache=None, **kwargs)", "behaviour", "attention_cache"),
        ("a model's forward(…, past_key_values=None, **kwargs)", "behaviour", "model_forward_past_key_values"),
        ("a model's forward(…, cache=None, **kwargs)", "behaviour", "model_forward_cache"),
    )

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where some release passes the cache under a name that the method does not take or read."""
        assert isinstance(event, Overridden)
        last = event.base.rpartition(".")[2]
        if event.method == "forward" and last.endswith("Attention"):
            kind = "attention"
        elif event.method and event.method != "update" and _OF_MODELS.search(last) and not _OPEN_BASES.search(last):
            kind = "model"
        else:
            return
        taken = set(event.parameters) & set(_NAMES)
        if not taken:
            return
        reads = {name for name in _NAMES if "**" in event.parameters and _reads(event.text, name)}
        told = [(mask & releases, name) for mask, name in surface.argument_names(kind) if mask & releases]
        blind = [(mask, name) for mask, name in told if name not in taken | reads]
        if not blind:
            return
        swallowed = "**" in event.parameters
        detail = "the cache is None" if swallowed else "TypeError: unexpected keyword argument"
        pieces = tuple(Piece(mask, "corrupts" if swallowed else "raises", detail) for mask, _ in blind)
        names = " and ".join(f"`{name}` on transformers {describe(mask)}" for mask, name in blind)
        message = f"`{event.method}` of {last} is passed the cache as {names}, which this one does not take"
        advice = f"Take {', '.join(f'`{name}`' for _, name in told)} too, and use the one that is given"
        yield Finding("error", message, pieces, Rewrite("display", advice))


def _reads(text: str, name: str) -> bool:
    """Whether a method takes a name out of its `**kwargs`, or hands them all on."""
    return re.search(rf"[\"']{name}[\"']", text) is not None
