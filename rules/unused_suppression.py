"""## What it does
Reports a suppression that suppresses nothing.

## Why is this bad
It says that something is wrong where nothing is, and it will hide what goes wrong there later.

## Example
```python
from transformers import DynamicCache

def start():
    return DynamicCache()  # noqa: KV101
```

## Use instead
```python
from transformers import DynamicCache

def start():
    return DynamicCache()
```

## Fix safety
The comment is removed, or the codes that are not used are taken out of it: safe. Blanket `# noqa` comments and the
codes of other tools are left alone, and so are the codes of rules that did not run.

## References
- <https://docs.astral.sh/ruff/rules/unused-noqa/> (the same for another linter)
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.flow.events import Event
from cachelint.rule import Finding, Rule


class UnusedSuppression(Rule):
    """KV900. The engine reports it once all findings of a file are known; no event leads to it."""

    code = "KV900"
    name = "unused-suppression"
    words = (
        "noqa",
        "cachelint",
    )
    triggers = (r"#[^\n]*(?:\bnoqa\s*:[^\n#]*\bKV\d|\bcachelint\s*:)",)

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """Nothing: no event is judged."""
        return iter(())
