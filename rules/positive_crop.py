"""## What it does
Reports `crop` on a KV cache with a value that is, or can be, positive.

## Why is this bad
A positive value says how many tokens to keep. transformers logs that as deprecated on 5.15–5.19 and raises a
`ValueError` from 5.20 on, also where the value is no smaller than the cache is long. On a layer with a sliding
window it fails earlier: once the window is full it raises on every release that has such layers (4.56 on), and
layers in front of the failing one are cropped already.

A negative value says how many tokens to remove, and does the same on every release.

## Example
```python
from transformers import DynamicCache

def decode(model, prompt, draft):
    cache = DynamicCache()
    model(prompt, past_key_values=cache)
    start = prompt.shape[1]
    model(draft, past_key_values=cache)
    cache.crop(start)
```

## Use instead
```python
from transformers import DynamicCache

def decode(model, prompt, draft):
    cache = DynamicCache()
    model(prompt, past_key_values=cache)
    start = prompt.shape[1]
    model(draft, past_key_values=cache)
    if (excess := cache.get_seq_length() - start) > 0:
        cache.crop(-excess)
```

## Fix safety
Safe where the rewrite does on every supported release what the old call did on the releases that took it. Where
the value could be negative, which already means "remove", the fix is unsafe. Nothing can roll back a full sliding
window before 5.15: there the fix is advice.

## References
- <https://github.com/huggingface/transformers/pull/47720> (5.20: a positive value raises)
- <https://github.com/huggingface/transformers/pull/47950> (the documentation of negative values)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import crop as contract
from cachelint.contracts.releases import describe
from cachelint.flow.events import Crop, Event
from cachelint.rule import CROP_CALL, Finding, Rewrite, Rule


class PositiveCrop(Rule):
    """KV101."""

    code = "KV101"
    name = "positive-crop"
    words = ("crop",)
    triggers = CROP_CALL
    judges = (Crop,)
    facts = (
        ("full layers", "crop", "plain/positive/above/no"),
        ("full layers, more than there are", "crop", "plain/beyond/above/no"),
        ("sliding layers below the window", "crop", "sliding/positive/below/no"),
        ("sliding layers, window full", "crop", "sliding/positive/above/no"),
        ("the same, recording", "crop", "sliding/positive/above/before"),
        ("full and sliding layers, window full", "crop", "full and sliding/positive/above/no"),
    )

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where the argument can be positive and that matters on the releases."""
        assert isinstance(event, Crop)
        amount = event.amount
        if amount is None or not amount.may_be_positive or amount.is_zero:
            return
        pieces = contract.crop(event.layer, "positive", releases)
        if event.layer != "full":
            # Where no value works, the sign is not what is wrong.
            hopeless = contract.mask_of(contract.crop(event.layer, "negative", releases), "raises")
            pieces = contract.without(pieces, hopeless)
        window: tuple[contract.Piece, ...] = ()
        if event.may_meet_full_window:
            window = contract.crop("sliding", "positive", releases)
        harmful = contract.mask_of(pieces, "raises", "warns")
        if not harmful and not window:
            return
        certain = amount.surely_positive and bool(contract.mask_of(pieces, "raises"))
        yield Finding(
            "error" if certain or (window and event.surely_full_window) else "warning",
            self._message(event, pieces, window),
            contract.overlay(pieces, contract.on_a_full_window(window, contract.mask_of(pieces, "raises"))),
            self._rewrite(event, releases, harmful),
        )

    @staticmethod
    def _message(event: Crop, pieces: tuple[contract.Piece, ...], window: tuple[contract.Piece, ...]) -> str:
        assert event.amount is not None
        given = "is positive" if event.amount.surely_positive else "can be positive"
        call = f"`crop({event.argument_text})`" if event.argument_text else "`crop`"
        raising = contract.mask_of(pieces, "raises")
        whole = contract.mask_of(window, "raises") & ~raising
        parts = []
        if raising:
            parts.append(f"raises on transformers {describe(raising)}")
        if whole:
            parts.append(f"raises on a full sliding window on {describe(whole)}")
        warned = contract.mask_of(pieces, "warns") & ~whole
        if warned:
            parts.append(f"is deprecated on {describe(warned)}")
        return f"{call} on a KV cache: the value {given}, which {' and '.join(parts)}"

    @staticmethod
    def _rewrite(event: Crop, releases: int, harmful: int) -> Rewrite | None:
        if not harmful and contract.never_on_a_full_window(releases):
            advice = "No `crop` works on a full window here: use `DynamicCache()` without a config, or prefill anew"
            return Rewrite("display", advice)
        from cachelint.rewrites import positive_crop

        return positive_crop(event, releases)
