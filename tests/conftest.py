"""Shared by all tests: the fixtures of the rules, and how source text is checked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cachelint.config import Settings
from cachelint.diagnostics import Diagnostic
from cachelint.engine import Checker
from cachelint.sources import Source

ROOT = Path(__file__).parent.parent
FIXTURES = ROOT / "fixtures"

Find = Callable[..., list[Diagnostic]]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-expected", action="store_true", help="Rewrite fixtures/*/*.expected and *.fixed.py.")


def find(text: str, transformers: str = ">=4.36", path: Path | None = None) -> list[Diagnostic]:
    """The diagnostics in a source text."""
    checker = Checker(Settings(), transformers)
    return checker.diagnose(Source(path or Path("/nowhere/sample.py"), text))


def codes(text: str, transformers: str = ">=4.36") -> list[str]:
    """The codes of what is found in a source text, in order."""
    return [diagnostic.code for diagnostic in find(text, transformers)]
