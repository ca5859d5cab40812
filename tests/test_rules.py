"""Every rule's page: its headings, and its examples, which are run."""

from __future__ import annotations

import re

import pytest

from cachelint.rule import Rule, all_rules
from tests.conftest import codes

HEADINGS = ["What it does", "Why is this bad", "Example", "Use instead", "Fix safety", "References"]


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_the_page_has_its_headings_and_its_examples_are_true(rule: Rule) -> None:
    page = rule.documentation()
    assert re.findall(r"^## (.*)$", page, re.MULTILINE) == HEADINGS
    bad, good = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    if rule.code == "KV999":
        with pytest.raises(SyntaxError):
            compile(bad, "bad", "exec")
        compile(good, "good", "exec")
        return
    assert rule.code in codes(bad)
    assert rule.code not in codes(good)
    assert 20 < len(rule.summary()) < 130


def test_codes_and_names_are_unique() -> None:
    rules = all_rules()
    assert len({rule.code for rule in rules}) == len(rules) == len({rule.name for rule in rules})
