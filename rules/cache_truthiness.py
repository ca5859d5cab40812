"""## What it does
Reports a cache whose truth value is asked for, as in `if cache` or `cache or DynamicCache()`.

## Why is this bad
The length of a cache is its number of layers. An empty `DynamicCache()` has none yet and is false, so that
`cache or DynamicCache()` drops the caller's cache; one made with a `config` is true while it is just as empty.

## Example
```python
from transformers import DynamicCache

def step(model, ids, past_key_values=None):
    cache = past_key_values or DynamicCache()
    return model(ids, past_key_values=cache)
```

## Use instead
```python
from transformers import DynamicCache

def step(model, ids, past_key_values=None):
    cache = past_key_values if past_key_values is not None else DynamicCache()
    return model(ids, past_key_values=cache)
```

## Fix safety
`x or y` becomes `x if x is not None else y`, safe where `x` is a name that is a cache or None. Of a plain test nobody
knows whether "is there one" or "is there anything in it" was meant: advice.

## References
- <https://github.com/huggingface/peft/pull/2106> (the same in another library; a maintainer's advice)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cachelint.contracts import surface
from cachelint.flow.events import Event, Tested
from cachelint.flow.library import CACHE_CLASSES
from cachelint.rule import Finding, Rewrite, Rule

_LIBRARY = re.compile(rf"\bget_seq_length\b|\b(?:{'|'.join(sorted(CACHE_CLASSES))})\b")


# What, beside the test, is true only of a cache that holds something.
_FILLED = re.compile(r"\bget_seq_length\b|\bis_updated\b")


class CacheTruthiness(Rule):
    """KV204."""

    code = "KV204"
    name = "cache-truthiness"
    words = (
        "cache",
        "past",
        "kv",
    )
    triggers = (
        r"\b(?:if|while|not|and|or|elif|assert|bool\()\s*(?:\w+\.)*(?!use_|is_|has_|return_|no_)\w*(?:past_key_values?|cache|past|kv|pkv)\w*"
        r"\s*(?:\n|:|\)|,|\]|and\b|or\b|else\b)",
        r"(?:past_key_values?[\"']?\]?|cache|past|kv)\)?\s+or\s",
    )
    judges = (Tested,)
    facts = (
        ("bool(DynamicCache())", "behaviour", "truth_of_empty"),
        ("bool(DynamicCache(config=…))", "behaviour", "truth_of_empty_with_config"),
    )

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where the cache can be empty."""
        assert isinstance(event, Tested)
        if event.cache.classes and event.cache.classes <= {"StaticCache"}:
            return
        if not (event.cache.classes or event.cache.seen) and not _speaks_of_caches(event):
            return
        if _FILLED.search(_guarded(event)):
            return
        if event.cache.configured:
            pieces = surface.shown(
                "truth_of_empty_with_config", releases, "True", effect="changes", detail="true while it is empty"
            )
            what = "a cache made with a configuration is true while it is empty"
        else:
            pieces = surface.shown("truth_of_empty", releases, "False", effect="changes", detail="false while empty")
            what = "an empty cache is false"
        if pieces:
            rewrite = self._rewrite(event)
            yield Finding("warning", f"the truth value of a cache says how many layers it has: {what}", pieces, rewrite)

    @staticmethod
    def _rewrite(event: Tested) -> Rewrite:
        import libcst as cst

        unit, node = event.unit, event.node
        whole = unit.parent(node)
        chosen = isinstance(whole, cst.BooleanOperation) and isinstance(whole.operator, cst.Or) and whole.left is node
        if not chosen or not isinstance(whole, cst.BooleanOperation) or not isinstance(node, (cst.Name, cst.Attribute)):
            return Rewrite("display", "Ask `is not None`, or `get_seq_length() > 0`, whichever was meant")
        text = unit.text(node)
        choice = f"{text} if {text} is not None else {unit.text(whole.right)}"
        outer = unit.parent(whole)
        if not isinstance(outer, (cst.Assign, cst.AnnAssign, cst.Arg, cst.Return)) and not whole.lpar:
            choice = f"({choice})"
        return Rewrite("safe", "Ask whether it is None", ((unit.span(whole), choice),))


def _guarded(event: Tested) -> str:
    """The source of all that is joined to the test by `and`, and of what runs where it is true.

    Whoever asks for the length there gets 0 of an empty cache, which is what its absence means, too.
    """
    import libcst as cst

    node = event.node
    around = event.unit.parent(node)
    while isinstance(around, cst.BooleanOperation) and isinstance(around.operator, cst.And):
        node, around = around, event.unit.parent(around)
    body = around.body if isinstance(around, (cst.If, cst.IfExp)) and around.test is node else None
    return event.unit.text(node) + (event.unit.text(body) if body is not None else "")


def _speaks_of_caches(event: Tested) -> bool:
    """Whether what is only called a cache can be one of the library's, and is not used as the old tuple."""
    text = event.unit.module.source.text
    name = event.unit.text(event.node)
    legacy = re.search(rf"(?<![\w.]){re.escape(name)}\[", text)
    return legacy is None and _LIBRARY.search(text) is not None
