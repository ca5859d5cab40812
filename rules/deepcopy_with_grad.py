"""## What it does
Reports `copy.deepcopy` of a cache that was filled by a forward outside `torch.no_grad()`.

## Why is this bad
The tensors belong to a graph then, and torch refuses to copy those: `RuntimeError: Only Tensors created explicitly by
the user support the deepcopy protocol`.

## Example
```python
import copy

from transformers import AutoModelForCausalLM, DynamicCache

def prefix(name, ids):
    model = AutoModelForCausalLM.from_pretrained(name)
    cache = DynamicCache()
    model(ids, past_key_values=cache)
    return copy.deepcopy(cache)
```

## Use instead
```python
import copy

import torch
from transformers import AutoModelForCausalLM, DynamicCache

def prefix(name, ids):
    model = AutoModelForCausalLM.from_pretrained(name)
    cache = DynamicCache()
    with torch.no_grad():
        model(ids, past_key_values=cache)
    return copy.deepcopy(cache)
```

## Fix safety
No rewrite: run the forward that fills the cache under `torch.no_grad()` or `torch.inference_mode()`.

## References
- <https://github.com/huggingface/transformers/issues/32681> (deepcopy of a cache)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cachelint.contracts import surface
from cachelint.diagnostics import Severity
from cachelint.flow.events import Copied, Event
from cachelint.rule import Finding, Rewrite, Rule

_TURNED_OFF = re.compile(r"set_grad_enabled\(\s*False|requires_grad_\(\s*False")
_TURNS_OFF = re.compile(r"no_grad|inference_mode|set_grad_enabled|requires_grad_\(\s*False")


class DeepcopyWithGrad(Rule):
    """KV212."""

    code = "KV212"
    name = "deepcopy-with-grad"
    words = ("deepcopy(",)
    triggers = (r"\bdeepcopy\(\s*[\w.]*(?:past_key_values|[Cc]ache|past|kv|pkv|prefix|prompt)",)
    judges = (Copied,)
    facts = (("copy.deepcopy of a cache filled with autograd on", "behaviour", "deepcopy_with_grad"),)

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding; where a caller may have turned autograd off, only if nothing in the file speaks of that."""
        assert isinstance(event, Copied)
        text = event.unit.module.source.text
        if (_TURNED_OFF if event.sure else _TURNS_OFF).search(text):
            return
        pieces = surface.shown("deepcopy_with_grad", releases)
        if pieces:
            severity: Severity = "error" if event.sure else "warning"
            message = "the cache was filled with autograd on, and its tensors cannot be copied deeply"
            yield Finding(severity, message, pieces, Rewrite("display", "Fill the cache under `torch.no_grad()`"))
