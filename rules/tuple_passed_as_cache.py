"""## What it does
Reports a tuple or list of pairs that is passed where a cache is wanted.

## Why is this bad
A forward has refused them since 4.48, `generate` since 5.0.

## Example
```python
from transformers import AutoModelForCausalLM

def step(name, ids, keys, values):
    model = AutoModelForCausalLM.from_pretrained(name)
    return model(ids, past_key_values=((keys, values),))
```

## Use instead
```python
from transformers import AutoModelForCausalLM, DynamicCache

def step(name, ids, keys, values):
    model = AutoModelForCausalLM.from_pretrained(name)
    cache = DynamicCache()
    cache.update(keys, values, 0)
    return model(ids, past_key_values=cache)
```

## Fix safety
No rewrite: `DynamicCache(pairs)` takes them from 4.56 on.

## References
- <https://github.com/huggingface/transformers/issues/31962> (tuples of pairs)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import surface
from cachelint.contracts.crop import mask_of
from cachelint.contracts.releases import describe
from cachelint.flow.events import Event, Run
from cachelint.rule import Finding, Rewrite, Rule


class TuplePassedAsCache(Rule):
    """KV309."""

    code = "KV309"
    name = "tuple-passed-as-cache"
    words = (
        "past",
        "pkv",
        "legacy",
        "cache",
        "kv",
        "pairs",
    )
    triggers = (
        r"past_key_values?\s*=\s*(?:tuple\(|\(\s*\(|\[\s*\(|\()",
        r"(?:past|pkv|legacy|cache|kv|pairs)\w*\s*=\s*(?:tuple\(|\(\s*\(|\[\s*\()",
        r"\bto_legacy_cache\(",
    )
    judges = (Run,)
    facts = (
        ("a tuple passed to a forward", "behaviour", "forward_takes_tuple"),
        ("a tuple passed to generate", "behaviour", "generate_takes_tuple"),
    )

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where a model of the library is given pairs."""
        assert isinstance(event, Run)
        if event.given != "pairs" or not (event.known or event.generates):
            return
        pieces = surface.behaviour("generate_takes_tuple" if event.generates else "forward_takes_tuple", releases)
        if pieces:
            message = f"a tuple of pairs is no cache: raises on transformers {describe(mask_of(pieces))}"
            yield Finding("error", message, pieces, Rewrite("display", "Pass a `DynamicCache` that holds them"))
