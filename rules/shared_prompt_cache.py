"""## What it does
Reports one cache that is passed to several generations of different prompts.

## Why is this bad
`generate` takes the first ids of a prompt for those that the cache holds already, without looking. With another prompt
the text is silently wrong, or the call raises an `IndexError`, depending on the release and on the lengths.

## Example
```python
from transformers import AutoModelForCausalLM, DynamicCache

def answers(name, tokenizer, questions):
    model = AutoModelForCausalLM.from_pretrained(name)
    cache = DynamicCache()
    for question in questions:
        ids = tokenizer(question, return_tensors="pt").input_ids
        yield model.generate(ids, past_key_values=cache)
```

## Use instead
```python
import copy

from transformers import AutoModelForCausalLM, DynamicCache

def answers(name, tokenizer, questions):
    model = AutoModelForCausalLM.from_pretrained(name)
    cache = DynamicCache()
    for question in questions:
        ids = tokenizer(question, return_tensors="pt").input_ids
        yield model.generate(ids, past_key_values=copy.deepcopy(cache))
```

## Fix safety
Unsafe: each call gets a deep copy. That is right where the cache holds a common beginning of all prompts; where the
cache is to hold nothing, a new one for each prompt is cheaper.

## References
- <https://github.com/huggingface/transformers/issues/34232> (a prefix cache used twice)
- <https://github.com/huggingface/transformers/issues/32929> (deep copies of a prefix cache)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import surface
from cachelint.flow.events import Event, Run
from cachelint.rule import Finding, Rewrite, Rule

# A generation that is given a cache by name.
GENERATES_WITH_CACHE = r"\.generate\((?:(?!\n[ \t]*\n)[\s\S]){0,600}?\b(?:past_key_values|cache)\s*="


class SharedPromptCache(Rule):
    """KV201."""

    code = "KV201"
    name = "shared-prompt-cache"
    words = (".generate(",)
    triggers = (GENERATES_WITH_CACHE,)
    judges = (Run,)
    facts = (
        ("generate with a cache of another, shorter prompt", "behaviour", "second_prompt_longer"),
        ("generate with a cache of another, longer prompt", "behaviour", "second_prompt_shorter"),
        ("generate with ids that the cache holds already", "behaviour", "same_prompt_again"),
    )

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where the ids do not go on from what the cache holds."""
        assert isinstance(event, Run)
        if event.classes & {"StaticCache", "EncoderDecoderCache"}:
            return
        if "other prompt" in event.about:
            pieces = surface.shown("second_prompt_longer", releases, "wrong text", detail="the text is wrong")
            what = "another prompt"
        elif "same prompt" in event.about:
            pieces = surface.shown("same_prompt_again", releases, "wrong text", detail="the text is wrong")
            what = "the same ids again"
        else:
            return
        if pieces:
            message = f"the cache has served an earlier generation and now gets {what}: it is taken for its beginning"
            yield Finding("error", message, pieces, self._rewrite(event))

    @staticmethod
    def _rewrite(event: Run) -> Rewrite:
        advice = "Give each generation a cache of its own, such as `copy.deepcopy(cache)`"
        if event.argument is None:
            return Rewrite("display", advice)
        from cachelint.texts import importing

        value = event.argument.value
        text = f"copy.deepcopy({event.unit.text(value)})"
        added = importing(event.unit.module.source, "copy")
        if added is None:
            return Rewrite("display", advice)
        return Rewrite("unsafe", "Pass a deep copy", ((event.unit.span(value), text), *added))
