"""## What it does
Reports a name that was to keep a cache as it was, used after the cache has changed under another name.

## Why is this bad
An assignment, `[cache] * n` and `copy.copy` share the layers: what one name feeds or crops, all have. The snapshot is
no snapshot.

## Example
```python
from transformers import DynamicCache

def twice(model, first, second):
    cache = DynamicCache()
    model(first, past_key_values=cache)
    saved = cache
    model(second, past_key_values=cache)
    return model(second, past_key_values=saved)
```

## Use instead
```python
import copy

from transformers import DynamicCache

def twice(model, first, second):
    cache = DynamicCache()
    model(first, past_key_values=cache)
    saved = copy.deepcopy(cache)
    model(second, past_key_values=cache)
    return model(second, past_key_values=saved)
```

## Fix safety
`copy.copy(cache)` becomes `copy.deepcopy(cache)`, unsafe like all of these: it costs memory, and someone may rely on
the sharing.

## References
- <https://github.com/huggingface/transformers/issues/30536> (filling in place is the design)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import surface
from cachelint.flow.events import Aliased, Event
from cachelint.rule import Finding, Rewrite, Rule


class AliasNotCopy(Rule):
    """KV202."""

    code = "KV202"
    name = "alias-not-copy"
    words = (
        "copy(",
        "]*",
        "] *",
        "*[",
        "* [",
        "saved",
        "snap",
        "backup",
        "orig",
        " for ",
    )
    triggers = (
        r"\bcopy\(\s*[\w.]*(?:[Cc]ache|past|kv|prefix|state)",
        r"(?:[Cc]ache|past_key_values|past|kv)\w*\.copy\(",
        r"(?:[Cc]ache|past_key_values|past|kv)\w*\]\s*\*",
        r"\*\s*\[\s*[\w.]*(?:[Cc]ache|past|kv)",
        r"\[\s*[\w.]*(?:past_key_values|cache|past|kv)\w*\s+for\b",
        r"(?:saved|snap|backup|orig)\w*\s*=\s*[\w.]*(?:past_key_values|cache|past|kv)\w*[ \t]*\n",
    )
    judges = (Aliased,)
    facts = (("filling a copy.copy of a cache of six tokens", "behaviour", "shallow_copy"),)

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding for each use of a name whose cache has changed."""
        assert isinstance(event, Aliased)
        pieces = surface.shown("shallow_copy", releases, "length 7", detail="both names share the layers")
        if not pieces:
            return
        message = {
            "repeat": "all entries of the list are one cache: what one is fed, all hold",
            "copy": f"`{event.name}` is a shallow copy, and the layers that it shares have changed since",
            "name": f"`{event.name}` is the cache itself, no copy, and the cache has changed since",
        }[event.how]
        yield Finding("warning", message, pieces, self._rewrite(event))

    @staticmethod
    def _rewrite(event: Aliased) -> Rewrite:
        import libcst as cst

        node = event.bound
        plain = event.how == "copy" and isinstance(node, cst.Call) and event.unit.text(node.func) == "copy.copy"
        if plain and isinstance(node, cst.Call) and event.unit.parent(node) is not None:
            return Rewrite("unsafe", "Copy deeply", ((event.unit.span(node.func), "copy.deepcopy"),))
        return Rewrite("display", "Make the copy with `copy.deepcopy(cache)`")
