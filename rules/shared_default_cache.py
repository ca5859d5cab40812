"""## What it does
Reports a cache as the default of a parameter, as a class attribute, or as the default of a dataclass field.

## Why is this bad
It is made once. Every call and every instance that relies on the default shares it, and reads what the others have
put in.

## Example
```python
from transformers import DynamicCache

def step(model, ids, cache=DynamicCache()):
    return model(ids, past_key_values=cache)
```

## Use instead
```python
from transformers import DynamicCache

def step(model, ids, cache=None):
    if cache is None:
        cache = DynamicCache()
    return model(ids, past_key_values=cache)
```

## Fix safety
The default of a parameter becomes None and the cache is made in the body, safe where the body begins on a line of its
own. For a class there is no rewrite.

## References
- <https://docs.python.org/3/faq/programming.html#why-are-default-values-shared-between-objects>
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts.crop import Piece
from cachelint.flow.events import Event, SharedDefault
from cachelint.rule import Finding, Rewrite, Rule


class SharedDefaultCache(Rule):
    """KV210."""

    code = "KV210"
    name = "shared-default-cache"
    words = ("Cache(",)
    triggers = (
        # A parameter with a default, or an assignment that is not deep inside something.
        r"[(,]\s*\w+\s*(?::[^=\n()]*)?=\s*(?:\w+\.)*\w*Cache(?:\.\w+)?\(",
        r"\n(?: {1,4}|\t)\w+\s*(?::[^=\n]*)?=\s*(?:\w+\.)*\w*Cache(?:\.\w+)?\(",
        r"\bdefault\s*=\s*(?:\w+\.)*\w*Cache\(",
    )
    judges = (SharedDefault,)
    facts = (("filling a cache under another name", "behaviour", "shallow_copy"),)

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding for each such default."""
        assert isinstance(event, SharedDefault)
        what = {
            "parameter": f"the default of `{event.name}` is one cache for all calls",
            "class": f"`{event.name}` is one cache for all instances of the class",
        }[event.how]
        pieces = (Piece(releases, "corrupts", "shared between calls"),)
        yield Finding("error", f"{what}: each reads what the others have put in", pieces, self._rewrite(event))

    @staticmethod
    def _rewrite(event: SharedDefault) -> Rewrite:
        from cachelint.texts import none_default

        if event.how == "class":
            return Rewrite("display", "Make the cache in `__init__`, or with `default_factory`")
        found = none_default(event)
        return found or Rewrite("display", "Let None be the default, and make the cache in the body")
