"""## What it does
Reports the length of a static cache that is kept across a forward.

## Why is this bad
On some releases the length of a static cache is the tensor that the cache itself counts with. The next forward moves
it, and what was the length before is the length after.

## Example
```python
from transformers import StaticCache

def new_tokens(model, ids):
    cache = StaticCache(config=model.config, max_cache_len=512)
    start = cache.get_seq_length()
    model(ids, past_key_values=cache)
    return cache.get_seq_length() - start
```

## Use instead
```python
from transformers import StaticCache

def new_tokens(model, ids):
    cache = StaticCache(config=model.config, max_cache_len=512)
    start = int(cache.get_seq_length())
    model(ids, past_key_values=cache)
    return cache.get_seq_length() - start
```

## Fix safety
`int(…)` around the call is safe; on a GPU it waits for what is running there.

## References
- <https://github.com/huggingface/transformers/issues/45987> (the length of a static cache is a tensor)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import surface
from cachelint.flow.events import Event, LengthMoved
from cachelint.rule import Finding, Rewrite, Rule


class LiveStaticLength(Rule):
    """KV208."""

    code = "KV208"
    name = "live-static-length"
    words = ("StaticCache",)
    triggers = (r"\bStaticCache\b",)
    judges = (LengthMoved,)
    facts = (("a static cache's length kept across a forward", "behaviour", "static_length_kept"),)

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where the kept length has moved."""
        assert isinstance(event, LengthMoved)
        pieces = surface.shown("static_length_kept", releases, "moves", detail="the kept length moves with the cache")
        if not pieces:
            return
        message = "this length of a static cache was asked for before a forward, which has moved it since"
        inside = event.unit.parent(event.asked) is not None
        rewrite = Rewrite("display", "Keep `int(cache.get_seq_length())`")
        if inside:
            text = f"int({event.unit.text(event.asked)})"
            rewrite = Rewrite("safe", "Keep the number, not the tensor", ((event.unit.span(event.asked), text),))
        yield Finding("error", message, pieces, rewrite)
