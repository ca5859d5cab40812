"""## What it does
Reports a `crop` whose argument is, or can be, 0.

## Why is this bad
Up to 5.13 `crop(0)` keeps 0 tokens: the cache is wiped. Since 5.14 it removes 0 tokens: nothing happens. So
`crop(-rejected)` loses the whole cache on old releases when nothing was rejected, and `crop(kept)` leaves stale
tokens on new ones when nothing was meant to be kept. Neither raises.

## Example
```python
from transformers import DynamicCache

def accept(model, draft, rejected):
    cache = DynamicCache()
    model(draft, past_key_values=cache)
    cache.crop(-rejected)
```

## Use instead
```python
from transformers import DynamicCache

def accept(model, draft, rejected):
    cache = DynamicCache()
    model(draft, past_key_values=cache)
    if rejected > 0:
        cache.crop(-rejected)
```

## Fix safety
Safe: the guard does nothing where nothing is removed, on every release. Where the argument says how much is kept,
the fix counts what is removed instead, as that of KV101 does.

## References
- <https://github.com/huggingface/transformers/pull/47720> (0 used to mean "remove all", and now means "none")
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import crop as contract
from cachelint.contracts.releases import describe
from cachelint.flow.events import Crop, Event
from cachelint.rule import CROP_CALL, Finding, Rewrite, Rule


class ZeroCrop(Rule):
    """KV105."""

    code = "KV105"
    name = "zero-crop"
    words = ("crop",)
    triggers = CROP_CALL
    judges = (Crop,)
    facts = (
        ("full layers", "crop", "plain/zero/above/no"),
        ("sliding layers below the window", "crop", "sliding/zero/below/no"),
        ("sliding layers, window full, recording", "crop", "sliding/zero/above/before"),
        ("encoder-decoder caches", "crop", "encoder-decoder/zero/above/no"),
    )

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where 0 is possible and does on some release what the code cannot mean."""
        assert isinstance(event, Crop)
        amount = event.amount
        if amount is None or not amount.may_be_zero or not event.layer_takes_zero:
            return
        pieces = contract.crop(event.layer, "zero", releases)
        wipes, nothing = contract.mask_of(pieces, "wipes"), contract.mask_of(pieces, "changes")
        call = f"`crop({event.argument_text})`" if event.argument_text else "`crop`"
        keeps = amount.is_zero and not amount.negated and not amount.from_length and not event.is_literal
        if (amount.is_zero or amount.removes) and not (keeps and nothing):
            if not wipes:
                return
            given = "is 0" if amount.is_zero else "can be 0"
            shown = pieces if amount.is_zero else tuple(p for p in pieces if p.effect != "changes")
            yield Finding(
                "error" if amount.is_zero else "warning",
                f"{call} on a KV cache: the value {given}, which wipes the cache on transformers {describe(wipes)}"
                + (f" and does nothing on {describe(nothing)}" if nothing else ""),
                shown,
                None if amount.is_zero else self._guard(event),
            )
        elif (amount.range.zero or keeps) and nothing:
            cleared = f"cleared the cache on transformers {describe(wipes)} and " if wipes else ""
            yield Finding(
                "warning",
                f"{call} on a KV cache: the number kept {'is' if keeps else 'can be'} 0, which {cleared}"
                f"leaves every token in it on {describe(nothing)}",
                pieces,
                self._count(event, releases),
            )

    @staticmethod
    def _guard(event: Crop) -> Rewrite | None:
        from cachelint.rewrites import zero_crop

        return zero_crop(event)

    @staticmethod
    def _count(event: Crop, releases: int) -> Rewrite | None:
        from cachelint.rewrites import positive_crop

        return positive_crop(event, releases)
