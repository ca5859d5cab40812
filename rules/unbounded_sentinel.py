"""## What it does
Reports a test with `is None`, or for truth, of a cache's maximal length.

## Why is this bad
"No maximum" was None up to 4.53 and is -1 since. The branch for a bounded cache is taken for every dynamic one, and a
slice by -1 silently drops a column.

## Example
```python
from transformers import DynamicCache

def mask_for(mask, cache: DynamicCache):
    most = cache.get_max_cache_shape()
    if most is not None and mask.shape[-1] > most:
        mask = mask[:, -most:]
    return mask
```

## Use instead
```python
from transformers import DynamicCache

def mask_for(mask, cache: DynamicCache):
    most = cache.get_max_cache_shape()
    if most is not None and most >= 0 and mask.shape[-1] > most:
        mask = mask[:, -most:]
    return mask
```

## Fix safety
`m is not None` becomes `m is not None and m >= 0`, `m is None` becomes `(m is None or m < 0)`: safe on every release,
where `m` is a name. Together with the removed names of KV304 ask for the length first, then test it so.

## References
- <https://github.com/huggingface/transformers/issues/36071> (`get_max_length`)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cachelint.contracts import surface
from cachelint.contracts.crop import mask_of
from cachelint.contracts.releases import describe
from cachelint.flow.events import Event, MaximumTested
from cachelint.rule import Finding, Rewrite, Rule


class UnboundedSentinel(Rule):
    """KV313."""

    code = "KV313"
    name = "unbounded-sentinel"
    words = ("get_max_",)
    triggers = (r"\bget_max_(?:length|cache_shape)\(",)
    judges = (MaximumTested,)
    facts = (("the maximal length where there is none", "behaviour", "no_maximum"),)

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where nothing else tests for -1."""
        assert isinstance(event, MaximumTested)
        pieces = surface.negative_maximum(releases)
        name = event.unit.text(event.operand)
        if not pieces or _is_compared(event.unit.module.source.text, name):
            return
        message = f"no maximum is -1 and not None on transformers {describe(mask_of(pieces))}"
        yield Finding("error", message, pieces, self._rewrite(event, name))

    @staticmethod
    def _rewrite(event: MaximumTested, name: str) -> Rewrite:
        import libcst as cst

        if event.how == "truth" or not isinstance(event.operand, (cst.Name, cst.Attribute)):
            return Rewrite("display", "Test for a maximum with `m is not None and m >= 0`")
        unit, node = event.unit, event.node
        text = f"{name} is not None and {name} >= 0" if event.how == "is not" else f"{name} is None or {name} < 0"
        around = unit.parent(node)
        joins = (
            isinstance(around, cst.BooleanOperation) and event.how == "is not" and isinstance(around.operator, cst.And)
        )
        if not joins and not isinstance(around, (cst.If, cst.While, cst.Assign, cst.Assert, cst.Return)):
            text = f"({text})"
        return Rewrite("safe", "Test for -1 as well", ((unit.span(node), text),))


def _is_compared(text: str, name: str) -> bool:
    """Whether a name is compared with a number somewhere, so that -1 is thought of."""
    return re.search(rf"(?<![\w.]){re.escape(name)}\s*(?:[<>]=?|[!=]=)\s*(?:-\s*)?\d", text) is not None
