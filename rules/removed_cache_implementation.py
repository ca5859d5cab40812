"""## What it does
Reports a `cache_implementation` that a supported release refuses.

## Why is this bad
`generate` raises a `ValueError`: the names come and go with the releases.

## Example
```python
from transformers import AutoModelForCausalLM

def answer(name, ids):
    model = AutoModelForCausalLM.from_pretrained(name)
    return model.generate(ids, cache_implementation="dynamic_full")
```

## Use instead
```python
from transformers import AutoModelForCausalLM, DynamicCache

def answer(name, ids):
    model = AutoModelForCausalLM.from_pretrained(name)
    return model.generate(ids, past_key_values=DynamicCache())
```

## Fix safety
No rewrite: what comes in its place depends on what it was for.

## References
- <https://github.com/huggingface/transformers/issues/46629> (`dynamic_full`)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import surface
from cachelint.contracts.crop import Piece
from cachelint.contracts.data import keys
from cachelint.contracts.releases import describe
from cachelint.flow.events import Event, Implementation
from cachelint.rule import Finding, Rewrite, Rule

_PART = "implementation/"
_NAMES = frozenset(key.removeprefix(_PART) for key in keys("surface") if key.startswith(_PART))


class RemovedCacheImplementation(Rule):
    """KV308."""

    code = "KV308"
    name = "removed-cache-implementation"
    words = ("cache_implementation",)
    triggers = (r"\bcache_implementation\b",)
    judges = (Implementation,)
    facts = tuple((f"cache_implementation={name!r}", "surface", f"implementation/{name}") for name in sorted(_NAMES))

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where some release refuses the name; nothing for a name that was never measured."""
        assert isinstance(event, Implementation)
        refusing = surface.refusing(event.name, releases)
        if refusing:
            message = f'`cache_implementation="{event.name}"` is refused on transformers {describe(refusing)}'
            pieces = (Piece(refusing, "raises", "ValueError: invalid `cache_implementation`"),)
            yield Finding("error", message, pieces, Rewrite("display", "Pass a cache object instead"))
