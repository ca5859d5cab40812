"""## What it does
Reports arguments of a cache's constructor that a supported release refuses, ignores, or takes for something else.

## Why is this bad
An unknown argument is a `TypeError`, or disappears in `**kwargs`. Positional ones changed their meaning:
`StaticCache(config, 1, 512)` makes a cache for one token from 4.56 on.

## Example
```python
from transformers import StaticCache

def start(config):
    return StaticCache(config, 1, 512)
```

## Use instead
```python
from transformers import StaticCache

def start(config, **others):
    return StaticCache(config=config, max_cache_len=512, **others)
```

## Fix safety
An argument that every supported release ignores is taken away, unsafe as evaluating it may have an effect. For the
others there is advice.

## References
- <https://github.com/huggingface/transformers/pull/39106> (4.54: caches of layers)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import surface
from cachelint.contracts.crop import Piece
from cachelint.contracts.releases import describe
from cachelint.flow.events import Event, Made
from cachelint.rule import Finding, Rewrite, Rule

_CLASSES = ("StaticCache", "DynamicCache", "QuantizedCache")


class RemovedCacheParameter(Rule):
    """KV306."""

    code = "KV306"
    name = "removed-cache-parameter"
    words = ("Cache(",)
    triggers = (rf"\b(?:{'|'.join(_CLASSES)})\(\s*[^\s)]",)
    judges = (Made,)
    facts = tuple((f"the parameters of {name}", "surface", f"parameters/{name}") for name in _CLASSES)

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding for the positional arguments, and one for each keyword."""
        assert isinstance(event, Made)
        if event.name not in _CLASSES:
            return
        told = [(mask & releases, names) for mask, names in surface.parameters(event.name) if mask & releases]
        if event.name == "StaticCache" and len(event.positions) > 1:
            yield from _positions(event, told)
        for keyword in event.keywords:
            yield from self._keyword(event, keyword, told)

    @staticmethod
    def _keyword(event: Made, keyword: str, told: list[tuple[int, tuple[str, ...]]]) -> Iterator[Finding]:
        from cachelint.texts import without_argument

        taking = sum(mask for mask, names in told if keyword in names or "kwargs" in names)
        refusing = surface.gone(sum(mask for mask, _ in told), taking)
        ignoring = sum(
            mask for mask, names in told if keyword not in names and "kwargs" in names and "args" not in names
        )
        every = sum(mask for mask, _ in told)
        call = f"`{event.name}({keyword}=…)`"
        if refusing:
            pieces = (Piece(refusing, "raises", f"TypeError: unexpected keyword argument '{keyword}'"),)
            advice = Rewrite("display", f"Pass `{keyword}=` only on a release that takes it")
            yield Finding("error", f"{call} raises a TypeError on transformers {describe(refusing)}", pieces, advice)
        elif ignoring and ignoring == every:
            pieces = (Piece(ignoring, "changes", f"`{keyword}=` is ignored"),)
            rewrite = without_argument(event, keyword)
            yield Finding("warning", f"{call}: every supported release ignores `{keyword}=`", pieces, rewrite)


def _positions(event: Made, told: list[tuple[int, tuple[str, ...]]]) -> Iterator[Finding]:
    """What the positional arguments of a static cache mean from release to release."""
    count = len(event.positions)
    meanings = {names[:count]: 0 for _, names in told}
    for mask, names in told:
        meanings[names[:count]] |= mask
    by_name = {names: mask for names, mask in meanings.items() if "args" not in names}
    newer = sum(mask for names, mask in by_name.items() if names[1:2] == ("max_cache_len",))
    older = sum(mask for names, mask in by_name.items()) & ~newer
    number = event.positions[1].const()
    # A third one that is no truth value is a length, as the releases before take it.
    old_style = count > 2 and not isinstance(event.positions[2].const(), bool)
    if newer and (old_style or older):
        detail = f"the second argument{f', {number},' if isinstance(number, int) else ''} is taken for `max_cache_len`"
        pieces = (Piece(newer, "changes", detail),)
        message = f"positional arguments of `StaticCache`: on transformers {describe(newer)} the second is the length"
        yield Finding("error", message, pieces, Rewrite("display", "Pass `config=` and `max_cache_len=` by name"))
