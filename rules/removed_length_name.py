"""## What it does
Reports names of a KV cache's length, and a few others, that a supported release does not have.

## Why is this bad
`seen_tokens` and `get_usable_length` went in 4.54, `get_max_length` went in 4.49 and came back in 5.13 with another
meaning, `get_max_cache_shape` came in 4.46 and went in 5.20, `batch_split` went in 4.54. Where the name is missing,
reading it is an `AttributeError`.

## Example
```python
from transformers import DynamicCache

def position(model, ids):
    cache = DynamicCache()
    model(ids, past_key_values=cache)
    return cache.seen_tokens
```

## Use instead
```python
from transformers import DynamicCache

def position(model, ids):
    cache = DynamicCache()
    model(ids, past_key_values=cache)
    return cache.get_seq_length()
```

## Fix safety
`seen_tokens` and `get_usable_length(n, i)` become `get_seq_length()` and `get_seq_length(i)`: safe for a dynamic cache,
or where the name is on no supported release, else unsafe, since other caches counted otherwise. The others have no
name that every release knows.

## References
- <https://github.com/huggingface/transformers/pull/39106> (4.54: caches of layers)
- <https://github.com/huggingface/transformers/issues/36071> (reports of `get_max_length`)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import surface
from cachelint.contracts.crop import mask_of
from cachelint.contracts.releases import describe
from cachelint.flow.events import Event, Member
from cachelint.rule import Finding, Rewrite, Rule

_NAMES = frozenset(
    "seen_tokens _seen_tokens get_usable_length get_max_length get_max_cache_shape batch_split from_batch_splits "
    "max_cache_len max_batch_size".split()
)
_LENGTHS = frozenset({"seen_tokens", "_seen_tokens", "get_usable_length"})


class RemovedLengthName(Rule):
    """KV304."""

    code = "KV304"
    name = "removed-length-name"
    words = (
        "seen_tokens",
        "get_usable_length",
        "get_max_",
        "batch_split",
        "from_batch_splits",
        "max_cache_len",
        "max_batch_size",
    )
    triggers = (rf"\.(?:{'|'.join(sorted(_NAMES))})\b",)
    judges = (Member,)
    facts = tuple((f"cache.{name}", "surface", f"member/DynamicCache.{name}") for name in sorted(_NAMES))

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where some release lacks the name."""
        assert isinstance(event, Member)
        if event.name not in _NAMES or event.stored:
            return
        pieces = surface.member(event.owner, event.name, releases)
        raising = mask_of(pieces, "raises")
        if not raising:
            return
        yield Finding(
            "error",
            f"`{event.name}` of a KV cache raises an AttributeError on transformers {describe(raising)}",
            pieces,
            self._rewrite(event, raising == releases or event.owner == "DynamicCache"),
        )

    @staticmethod
    def _rewrite(event: Member, sure: bool) -> Rewrite:
        from cachelint.rewrites import length_call

        if event.name in _LENGTHS and (found := length_call(event, sure=sure)) is not None:
            return found
        return Rewrite("display", "No one name is there on every supported release: ask with `hasattr` first")
