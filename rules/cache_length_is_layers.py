"""## What it does
Reports `len(cache)` where a number of tokens belongs.

## Why is this bad
The length of a cache is its number of layers. The number of tokens is `get_seq_length()`.

## Example
```python
from transformers import DynamicCache

def rest(model, prefix, ids):
    cache = DynamicCache()
    model(prefix, past_key_values=cache)
    return ids[:, len(cache):]
```

## Use instead
```python
from transformers import DynamicCache

def rest(model, prefix, ids):
    cache = DynamicCache()
    model(prefix, past_key_values=cache)
    return ids[:, cache.get_seq_length():]
```

## Fix safety
`len(cache)` becomes `cache.get_seq_length()`, unsafe: where it counted layers after all, that is another number.

## References
- <https://github.com/huggingface/transformers/blob/v5.24.0/src/transformers/cache_utils.py> (`Cache.__len__`)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import surface
from cachelint.flow.events import Event, LayersCounted
from cachelint.rule import Finding, Rewrite, Rule


class CacheLengthIsLayers(Rule):
    """KV206."""

    code = "KV206"
    name = "cache-length-is-layers"
    words = ("len(",)
    triggers = (r"\blen\(\s*[\w.]*(?:past_key_values?|cache|past|kv|pkv)\w*\s*\)",)
    judges = (LayersCounted,)
    facts = (("len(cache) of two layers and six tokens", "behaviour", "length_of_builtin"),)

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where the number meets one of tokens."""
        assert isinstance(event, LayersCounted)
        detail = "the number of layers, not of tokens"
        pieces = surface.shown("length_of_builtin", releases, "2", detail=detail)
        if pieces:
            message = "`len()` of a cache is its number of layers, and is used as a number of tokens"
            yield Finding("error", message, pieces, self._rewrite(event))

    @staticmethod
    def _rewrite(event: LayersCounted) -> Rewrite:
        import libcst as cst

        node = event.node
        inside = isinstance(node, cst.Call) and len(node.args) == 1 and event.unit.text(node.func) == "len"
        if not inside or not isinstance(node, cst.Call):
            return Rewrite("display", "Ask `cache.get_seq_length()`")
        text = f"{event.unit.text(node.args[0].value)}.get_seq_length()"
        return Rewrite("unsafe", "Ask for the tokens", ((event.unit.span(node), text),))
