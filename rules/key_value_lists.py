"""## What it does
Reports `key_cache` and `value_cache` of a KV cache where a supported release does not have them.

## Why is this bad
The lists became deprecated wrappers in 4.54 and went in 4.56: an `AttributeError`. The tensors are in
`cache.layers[i].keys` and `.values` since 4.54.

## Example
```python
from transformers import DynamicCache

def norms(model, ids):
    cache = DynamicCache()
    model(ids, past_key_values=cache)
    return [keys.norm() for keys in cache.key_cache]
```

## Use instead
```python
from transformers import DynamicCache

def norms(model, ids):
    cache = DynamicCache()
    model(ids, past_key_values=cache)
    return [layer.keys.norm() for layer in cache.layers]
```

## Fix safety
`cache.key_cache[i]` becomes `cache.layers[i].keys`, safe where every supported release has `layers`; the whole list has
no counterpart.

## References
- <https://github.com/huggingface/transformers/pull/39106> (4.54: caches of layers)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import surface
from cachelint.contracts.crop import mask_of
from cachelint.contracts.releases import describe
from cachelint.diagnostics import Severity
from cachelint.flow.events import Event, Member
from cachelint.rule import Finding, Rewrite, Rule

_TENSORS = {"key_cache": "keys", "value_cache": "values"}


class KeyValueLists(Rule):
    """KV303."""

    code = "KV303"
    name = "key-value-lists"
    words = (
        "key_cache",
        "value_cache",
    )
    triggers = (r"\.(?:key_cache|value_cache)\b",)
    judges = (Member,)
    facts = (
        ("cache.key_cache", "surface", "member/DynamicCache.key_cache"),
        ("cache.layers", "surface", "member/DynamicCache.layers"),
    )

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where the list is read and some release lacks it."""
        assert isinstance(event, Member)
        if event.name not in _TENSORS or event.stored:
            return
        pieces = surface.member(event.owner, event.name, releases)
        raising = mask_of(pieces, "raises")
        if not pieces:
            return
        what = f"raises an AttributeError on transformers {describe(raising)}"
        if not raising:
            what = f"is deprecated on transformers {describe(mask_of(pieces))}"
        severity: Severity = "error" if raising else "warning"
        yield Finding(severity, f"`{event.name}` of a KV cache {what}", pieces, _fix(event, releases))


def _fix(event: Member, releases: int) -> Rewrite:
    from cachelint.rewrites import layer_tensor

    found = layer_tensor(event, _TENSORS[event.name])
    if found is None or mask_of(surface.member(event.owner, "layers", releases), "raises"):
        return Rewrite("display", f"Read `cache.layers[i].{_TENSORS[event.name]}`, where the release has `layers`")
    return found
