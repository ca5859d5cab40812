"""## What it does
Reports a cache class, or the class of a cache's configuration, that a supported release does not have.

## Why is this bad
The import raises an `ImportError`, also where the class is only needed for an annotation.

## Example
```python
from transformers import SinkCache

def start():
    return SinkCache(window_length=256, num_sink_tokens=4)
```

## Use instead
```python
from transformers import DynamicCache

def start():
    return DynamicCache()
```

## Fix safety
No rewrite: what comes in its place depends on what it was for. `StaticCache` with a sliding model's configuration
replaces the sliding and hybrid ones, `DynamicCache(offloading=True)` the offloaded one.

## References
- <https://github.com/huggingface/transformers/releases/tag/v5.0.0> (removed classes)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import surface
from cachelint.contracts.crop import Piece
from cachelint.contracts.data import keys
from cachelint.contracts.releases import describe
from cachelint.flow.events import Event, Named
from cachelint.rule import Finding, Rewrite, Rule

_OF_LIBRARY = sorted(key.removeprefix("class/") for key in keys("surface") if key.startswith("class/"))
_ALWAYS = frozenset({"Cache", "DynamicCache"})


class RemovedCacheClass(Rule):
    """KV305."""

    code = "KV305"
    name = "removed-cache-class"
    words = (
        "Cache",
        "Layer",
    )
    triggers = (rf"\b(?:{'|'.join(name for name in _OF_LIBRARY if name not in _ALWAYS)})\b",)
    judges = (Named,)
    facts = tuple((name, "surface", f"class/{name}") for name in _OF_LIBRARY)

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where the class is missing where it is looked for."""
        assert isinstance(event, Named)
        missing = surface.without_class(event.name, event.module, releases)
        if missing:
            where = f"`{event.module}` has no `{event.name}` on transformers {describe(missing)}"
            pieces = (Piece(missing, "raises", f"ImportError: no `{event.name}`"),)
            advice = _INSTEAD.get(event.name, "Import it under `try` and `except ImportError`")
            yield Finding("error", where, pieces, Rewrite("display", advice))


_INSTEAD = {
    "SlidingWindowCache": "`StaticCache` makes sliding layers for a sliding model",
    "HybridCache": "`StaticCache` makes sliding layers for a sliding model",
    "HybridChunkedCache": "`StaticCache` makes sliding layers for a sliding model",
    "OffloadedCache": "`DynamicCache(offloading=True)` does the same, where the release has it",
    "OffloadedStaticCache": "`StaticCache(…, offloading=True)` does the same, where the release has it",
    "OffloadedHybridCache": "`StaticCache(…, offloading=True)` does the same, where the release has it",
    "QuantoQuantizedCache": '`QuantizedCache(backend="quanto", …)` does the same, where the release has it',
    "HQQQuantizedCache": '`QuantizedCache(backend="hqq", …)` does the same, where the release has it',
}
