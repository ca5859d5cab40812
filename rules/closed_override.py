"""## What it does
Reports an `update` of one's own cache class without `**kwargs`, and a layer class that lacks a method.

## Why is this bad
From 5.24 on models pass more arguments to `update`: a `TypeError`. A layer class that lacks an abstract method cannot
be made.

## Example
```python
from transformers import DynamicCache

class Counting(DynamicCache):
    def update(self, key_states, value_states, layer_idx, cache_kwargs=None):
        self.updates = getattr(self, "updates", 0) + 1
        return super().update(key_states, value_states, layer_idx, cache_kwargs)
```

## Use instead
```python
from transformers import DynamicCache

class Counting(DynamicCache):
    def update(self, key_states, value_states, layer_idx, *args, **kwargs):
        self.updates = getattr(self, "updates", 0) + 1
        return super().update(key_states, value_states, layer_idx, *args, **kwargs)
```

## Fix safety
`**kwargs` is added to the parameters, safe on every release: what it takes is left alone.

## References
- <https://github.com/huggingface/transformers/issues/39106> (caches of layers)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import surface
from cachelint.contracts.crop import Piece, mask_of
from cachelint.contracts.releases import describe
from cachelint.flow.events import Event, Overridden
from cachelint.flow.library import cache_class
from cachelint.rule import Finding, Rewrite, Rule


class ClosedOverride(Rule):
    """KV312."""

    code = "KV312"
    name = "closed-override"
    words = (
        "Cache",
        "Layer",
    )
    triggers = (r"\bclass\s+\w+\([^)\n]*(?:Cache|CacheLayerMixin|(?:Dynamic|Static|Window)\w*Layer)\b",)
    judges = (Overridden,)
    facts = (
        ("a cache whose update takes no further arguments", "behaviour", "closed_update"),
        ("a layer whose update takes no further arguments", "behaviour", "closed_layer_update"),
        ("the methods that a layer class must have", "behaviour", "abstract_methods"),
    )

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding for a closed `update`, and one for the methods that are missing."""
        from cachelint.texts import open_parameters

        assert isinstance(event, Overridden)
        base = event.base.rpartition(".")[2]
        layer = base.endswith(("Layer", "LayerMixin"))
        if event.method == "update" and (layer or cache_class(event.base)):
            if "**" in event.parameters or "kwargs" in event.parameters:
                return
            pieces = surface.refusing_arguments("closed_layer_update" if layer else "closed_update", releases)
            if pieces:
                message = f"`update` takes no further arguments, and models pass some on transformers {_where(pieces)}"
                rewrite = open_parameters(event) or Rewrite("display", "Take `**kwargs`")
                yield Finding("error", message, pieces, rewrite)
        elif not event.method and base == "CacheLayerMixin":
            yield from self._missing(event, releases)

    @staticmethod
    def _missing(event: Overridden, releases: int) -> Iterator[Finding]:
        pieces = []
        lacking: set[str] = set()
        for mask, names in surface.abstract_methods():
            missing = [name for name in names if name not in event.methods]
            if mask & releases and missing:
                lacking.update(missing)
                pieces.append(Piece(mask & releases, "raises", f"TypeError: abstract {', '.join(missing)}"))
        if pieces:
            told = ", ".join(f"`{name}`" for name in sorted(lacking))
            message = f"the layer class lacks {told}, abstract on transformers {_where(tuple(pieces))}"
            yield Finding("error", message, tuple(pieces), Rewrite("display", "Define what the releases demand"))


def _where(pieces: tuple[Piece, ...]) -> str:
    return describe(mask_of(pieces))
