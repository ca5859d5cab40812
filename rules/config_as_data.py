"""## What it does
Reports `DynamicCache(model.config)`: the configuration passed by position.

## Why is this bad
The first parameter is the cached data, not the configuration: the call raises, with a message that does not say so.

## Example
```python
from transformers import AutoModelForCausalLM, DynamicCache

def start(name):
    model = AutoModelForCausalLM.from_pretrained(name)
    return DynamicCache(model.config)
```

## Use instead
```python
from transformers import AutoModelForCausalLM, DynamicCache

def start(name):
    model = AutoModelForCausalLM.from_pretrained(name)
    return DynamicCache(config=model.config)
```

## Fix safety
Safe where every supported release takes `config=` (from 4.56 on), else advice: a `TypeError` before.

## References
- <https://github.com/huggingface/transformers/pull/40039> (4.56: `DynamicCache(config=…)`)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.contracts import surface
from cachelint.contracts.crop import mask_of
from cachelint.contracts.releases import describe
from cachelint.flow.events import Event, Made
from cachelint.rule import Finding, Rewrite, Rule


class ConfigAsData(Rule):
    """KV401."""

    code = "KV401"
    name = "config-as-data"
    words = ("DynamicCache(",)
    triggers = (r"\bDynamicCache\(\s*[A-Za-z_][\w.]*\s*[,)]",)
    judges = (Made,)
    facts = (("DynamicCache(model.config)", "behaviour", "config_as_data"),)

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """One finding where a configuration comes first by position."""
        assert isinstance(event, Made)
        if event.name != "DynamicCache" or event.by_position != "config":
            return
        pieces = surface.behaviour("config_as_data", releases)
        if not pieces:
            return
        yield Finding(
            "error",
            "`DynamicCache(config)` takes the configuration for cached data: raises on transformers "
            f"{describe(mask_of(pieces))}",
            pieces,
            self._rewrite(event, releases),
        )

    @staticmethod
    def _rewrite(event: Made, releases: int) -> Rewrite:
        from cachelint.rewrites import config_keyword

        refused = surface.refused("truth_of_empty_with_config", releases)
        return (
            config_keyword(event) if not refused else Rewrite("display", "Pass `config=`, where the release takes it")
        )
