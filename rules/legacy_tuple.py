"""## What it does
Reports a KV cache that is subscripted or iterated as if it were the old tuple of pairs.

## Why is this bad
`cache[i]` is a `TypeError` from 5.0 on, and iterating yields triples, so that `for keys, values in cache` fails.

## Example
```python
from transformers import DynamicCache

def length(model, ids):
    cache = DynamicCache()
    model(ids, past_key_values=cache)
    return cache[0][0].shape[2]
```

## Use instead
```python
from transformers import DynamicCache

def length(model, ids):
    cache = DynamicCache()
    model(ids, past_key_values=cache)
    return cache.get_seq_length()
```

## Fix safety
There is no automatic fix: `cache.layers[i].keys` is there from 4.54 on only, and a length is `get_seq_length()`.

## References
- <https://github.com/huggingface/transformers/issues/35684> (reports)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import surface
from cachelint.contracts.crop import mask_of
from cachelint.contracts.releases import describe
from cachelint.flow.events import Event, Taken
from cachelint.rule import Finding, Rewrite, Rule


class LegacyTuple(Rule):
    """KV301."""

    code = "KV301"
    name = "legacy-tuple"
    words = (
        "cache",
        "past_key_values",
    )
    triggers = (
        r"\b(?:\w*_)?(?:cache|past_key_values)\[[\w-]+\](?:\[|\s*[,)\n])",
        r"\bin\s+(?:\w+\.)?(?:\w*_)?(?:cache|past_key_values)\s*[:\])]",
    )
    judges = (Taken,)
    facts = (
        ("cache[0]", "behaviour", "subscript"),
        ("for item in cache", "behaviour", "iterate"),
        ("the same of a static cache", "behaviour", "iterate_static"),
    )

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where some release takes the cache for no tuple of pairs."""
        assert isinstance(event, Taken)
        name = "subscript" if event.how == "subscript" else "iterate"
        if event.how == "iterate" and event.cache.classes == {"StaticCache"}:
            name = "iterate_static"
        shown = surface.behaviour(name, releases, "items of 2", "items of 2, deprecated")
        # On a few old releases the model did not fill the cache that it was given: that is another matter.
        pieces = tuple(p for p in shown if p.effect == "corrupts" or p.detail.startswith("TypeError"))
        if not pieces:
            return
        raising, triples = mask_of(pieces, "raises"), mask_of(pieces, "corrupts")
        parts = [f"raises a TypeError on transformers {describe(raising)}"] if raising else []
        parts += [f"yields triples on transformers {describe(triples)}"] if triples else []
        what = "subscripting" if event.how == "subscript" else "iterating over"
        yield Finding(
            "error" if raising else "warning",
            f"{what} a KV cache {' and '.join(parts)}",
            pieces,
            Rewrite("display", "Read `cache.layers[i].keys` and `.values`, or `get_seq_length()` for a length"),
        )
