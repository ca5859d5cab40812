"""## What it does
Reports `cache_implementation=` beside a cache, and several beams or return sequences beside a cache filled for one.

## Why is this bad
`generate` refuses the two cache arguments together. With several beams the batch of the filled cache does not fit:
`RuntimeError: Sizes of tensors must match`.

## Example
```python
from transformers import AutoModelForCausalLM, DynamicCache

def answer(name, ids):
    model = AutoModelForCausalLM.from_pretrained(name)
    cache = DynamicCache()
    return model.generate(ids, past_key_values=cache, cache_implementation="static")
```

## Use instead
```python
from transformers import AutoModelForCausalLM, DynamicCache

def answer(name, ids):
    model = AutoModelForCausalLM.from_pretrained(name)
    cache = DynamicCache()
    return model.generate(ids, past_key_values=cache)
```

## Fix safety
`cache_implementation=` is taken away, unsafe: the cache can be the one that was not meant. For beams, repeat a copy of
the cache with `batch_repeat_interleave` first.

## References
- <https://github.com/huggingface/transformers/issues/32863> (two cache arguments)
- <https://github.com/huggingface/transformers/issues/25086> (beams on a filled cache)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import surface
from cachelint.flow.events import Event, Run
from cachelint.rule import Finding, Rewrite, Rule


class ContradictoryCacheArguments(Rule):
    """KV211."""

    code = "KV211"
    name = "contradictory-cache-arguments"
    words = (
        "cache_implementation",
        "num_beams",
        "num_return_sequences",
    )
    triggers = (r"\bcache_implementation\s*=", r"\bnum_(?:beams|return_sequences)\s*=\s*(?:[2-9]|1\d)")
    judges = (Run,)
    facts = (
        ("generate(cache_implementation=…, past_key_values=…)", "behaviour", "implementation_and_cache"),
        ("generate(num_beams=2) with a cache filled for one", "behaviour", "beams_on_filled_cache"),
        ("generate(num_return_sequences=2) with a cache filled for one", "behaviour", "sequences_on_filled_cache"),
    )

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where the arguments do not go together."""
        assert isinstance(event, Run)
        if not event.generates or event.given != "cache":
            return
        if isinstance(event.options.get("cache_implementation"), str):
            pieces = surface.shown("implementation_and_cache", releases)
            message = "`generate` refuses a cache and `cache_implementation=` together"
            if pieces:
                yield Finding("error", message, pieces, self._rewrite(event))
            return
        batches = {"num_beams": "beams_on_filled_cache", "num_return_sequences": "sequences_on_filled_cache"}
        for name, fact in batches.items():
            number = event.options.get(name)
            if isinstance(number, int) and number > 1 and all(c.fed and not c.repeated for c in event.caches):
                pieces = surface.shown(fact, releases)
                message = f"`{name}={number}` with a cache that was filled for a batch of one"
                if pieces:
                    advice = f"Call `batch_repeat_interleave({number})` on a copy of the cache first"
                    yield Finding("error", message, pieces, Rewrite("display", advice))
                return

    @staticmethod
    def _rewrite(event: Run) -> Rewrite:
        from cachelint.texts import without_argument

        found = without_argument(event, "cache_implementation")
        return found or Rewrite("display", "Pass only one of the two")
