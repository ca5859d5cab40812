"""## What it does
Reports a file that cannot be read as Python: a syntax error, a NUL byte, a wrong encoding, too much data.

## Why is this bad
Nothing else in such a file is checked.

## Example
```python
def crop(cache:
    cache.crop(1
```

## Use instead
```python
def crop(cache):
    cache.crop(-1)
```

## Fix safety
There is no fix.

## References
- <https://docs.python.org/3/reference/lexical_analysis.html>
"""

from __future__ import annotations

from collections.abc import Iterator

from cachelint.flow.events import Event
from cachelint.rule import Finding, Rule


class SyntaxErrorRule(Rule):
    """KV999. The engine reports it when a file is read; no event leads to it."""

    code = "KV999"
    name = "syntax-error"

    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """Nothing: no event is judged."""
        return iter(())
