"""## What it does
Reports a static cache that is used for a new sequence without `reset()`.

## Why is this bad
The tokens of the sequence before are still in the cache, and the new ones are put behind them: the logits are wrong,
or the cache runs over.

## Example
```python
from transformers import AutoModelForCausalLM, StaticCache

def answers(name, tokenizer, prompts):
    model = AutoModelForCausalLM.from_pretrained(name)
    cache = StaticCache(config=model.config, max_cache_len=512)
    for prompt in prompts:
        ids = tokenizer(prompt, return_tensors="pt").input_ids
        yield model.generate(ids, past_key_values=cache)
```

## Use instead
```python
from transformers import AutoModelForCausalLM, StaticCache

def answers(name, tokenizer, prompts):
    model = AutoModelForCausalLM.from_pretrained(name)
    cache = StaticCache(config=model.config, max_cache_len=512)
    for prompt in prompts:
        cache.reset()
        ids = tokenizer(prompt, return_tensors="pt").input_ids
        yield model.generate(ids, past_key_values=cache)
```

## Fix safety
Unsafe: `cache.reset()` goes before the statement of the call, which is right where that begins a new sequence.

## References
- <https://github.com/huggingface/transformers/issues/42467> (a static cache that was not reset)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import surface
from cachelint.flow.events import Event, Run
from cachelint.rule import Finding, Rewrite, Rule


class StaticCacheNotReset(Rule):
    """KV203."""

    code = "KV203"
    name = "static-cache-not-reset"
    words = ("StaticCache",)
    triggers = (r"\bStaticCache\b",)
    judges = (Run,)
    facts = (("a second prompt on a static cache that was not reset", "behaviour", "static_not_reset"),)

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where a static cache meets another prompt."""
        assert isinstance(event, Run)
        if event.classes != {"StaticCache"} or not event.about & {"other prompt", "same prompt"}:
            return
        pieces = surface.shown("static_not_reset", releases, "wrong logits", detail="the logits are wrong")
        if pieces:
            message = "the static cache still holds another sequence: call `reset()` before a new one"
            yield Finding("error", message, pieces, self._rewrite(event))

    @staticmethod
    def _rewrite(event: Run) -> Rewrite:
        from cachelint.texts import before_statement

        advice = "Call `cache.reset()` before each new sequence"
        if event.argument is None:
            return Rewrite("display", advice)
        receiver = event.unit.text(event.argument.value)
        return before_statement(event, f"{receiver}.reset()", "Reset the cache first") or Rewrite("display", advice)
