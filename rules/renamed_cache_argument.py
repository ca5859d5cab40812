"""## What it does
Reports `cache=` passed to a model or to `generate` where a supported release does not know it. Asked for by its code,
it also reports `past_key_values=` where a release calls that deprecated.

## Why is this bad
Before 5.24 a forward lets an unknown `cache=` disappear in `**kwargs`: the cache stays empty and nobody is told.
`generate` raises a `ValueError`.

## Example
```python
from transformers import AutoModelForCausalLM, DynamicCache

def step(name, ids):
    model = AutoModelForCausalLM.from_pretrained(name)
    cache = DynamicCache()
    return model(ids, cache=cache)
```

## Use instead
```python
from transformers import AutoModelForCausalLM, DynamicCache

def step(name, ids):
    model = AutoModelForCausalLM.from_pretrained(name)
    cache = DynamicCache()
    return model(ids, past_key_values=cache)
```

## Fix safety
`cache=` becomes `past_key_values=`, safe where a supported release lacks `cache=`: every known release takes the old
name. The other way round is safe only where every supported release has `cache=`.

## References
- <https://github.com/huggingface/transformers/releases/tag/v5.24.0> (`cache` in place of `past_key_values`)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import surface
from cachelint.contracts.crop import Piece, mask_of
from cachelint.contracts.releases import describe
from cachelint.flow.events import Event, Run
from cachelint.rule import Finding, Rewrite, Rule


class RenamedCacheArgument(Rule):
    """KV307."""

    code = "KV307"
    name = "renamed-cache-argument"
    words = ("cache",)
    triggers = (r"[(,]\s*cache\s*=(?!=)",)
    asked_triggers = (r"\bpast_key_values\s*=(?!=)",)
    judges = (Run,)
    facts = (
        ("model(ids, cache=…)", "behaviour", "forward_named_cache"),
        ("model.generate(ids, cache=…)", "behaviour", "generate_named_cache"),
        ("model(ids, past_key_values=…)", "behaviour", "forward_named_past"),
    )

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where the name is not right on every release."""
        assert isinstance(event, Run)
        if event.argument is None or event.argument.keyword is None or event.given != "cache":
            return
        span = event.unit.span(event.argument.keyword)
        if event.keyword == "cache":
            name = "generate_named_cache" if event.generates else "forward_named_cache"
            pieces = surface.behaviour(name, releases)
            pieces += surface.shown(name, releases, "length 0", detail="swallowed by **kwargs, the cache stays empty")
            if pieces:
                message = f"`cache=` is not known on transformers {describe(mask_of(pieces))}"
                rewrite = Rewrite("safe", "Pass `past_key_values=`", ((span, "past_key_values"),))
                yield Finding("error", message, pieces, rewrite)
        elif event.keyword == "past_key_values":
            deprecated = surface.deprecated("forward_named_past", releases)
            if deprecated:
                pieces = (Piece(deprecated, "warns", "deprecated"),)
                message = f"`past_key_values=` is deprecated on transformers {describe(deprecated)}"
                everywhere = not surface.behaviour("forward_named_cache", releases, "length 6")
                rewrite = Rewrite("safe" if everywhere else "display", "Pass `cache=`", ((span, "cache"),) * everywhere)
                yield Finding("warning", message, pieces, rewrite, asked=True)
