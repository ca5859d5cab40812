"""## What it does
Reports `use_cache=False` together with a cache.

## Why is this bad
The model writes to the cache all the same: it grows by the tokens of a call that was meant to leave it alone.
`generate` gives wrong text on many releases.

## Example
```python
from transformers import DynamicCache

def score(model, prefix, ids):
    cache = DynamicCache()
    model(prefix, past_key_values=cache)
    return model(ids, past_key_values=cache, use_cache=False).logits
```

## Use instead
```python
import copy

from transformers import DynamicCache

def score(model, prefix, ids):
    cache = DynamicCache()
    model(prefix, past_key_values=cache)
    return model(ids, past_key_values=copy.deepcopy(cache)).logits
```

## Fix safety
Advice only: either argument can be the one that was not meant.

## References
- <https://github.com/huggingface/transformers/issues/32863> (contradictory arguments)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cachelint.contracts import surface
from cachelint.flow.events import Event, Run
from cachelint.rule import Finding, Rewrite, Rule

# What an unknown thing is called that can be a model of the library.
_MODEL = re.compile(r"(?:^|_)(?:model|lm|llm|decoder)$")


class NoCacheStillWrites(Rule):
    """KV205."""

    code = "KV205"
    name = "no-cache-still-writes"
    words = ("use_cache",)
    triggers = (r"\buse_cache\s*=\s*False\b", r"[\"']use_cache[\"']\s*:\s*False\b")
    judges = (Run,)
    facts = (
        ("three tokens with use_cache=False on a cache of six", "behaviour", "no_cache_still_writes"),
        ("generate(use_cache=False, past_key_values=…)", "behaviour", "no_cache_generate"),
    )

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where both are passed."""
        assert isinstance(event, Run)
        if event.given != "cache" or event.options.get("use_cache") is not False:
            return
        if not (event.known or event.generates or _MODEL.search(event.model)):
            return
        if event.generates:
            pieces = surface.shown("no_cache_generate", releases, "wrong text", detail="the text is wrong")
        else:
            pieces = surface.shown("no_cache_still_writes", releases, "length 9", detail="the cache grows all the same")
        if pieces:
            message = "`use_cache=False` does not keep the model from writing to the cache that is passed"
            yield Finding("error", message, pieces, Rewrite("display", "Pass a copy of the cache, or none"))
