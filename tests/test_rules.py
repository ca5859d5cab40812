"""Every rule's page: its headings, and its examples, which are run."""

from __future__ import annotations

import re

import pytest

from cachelint.config import Settings
from cachelint.contracts.data import history
from cachelint.engine import Checker
from cachelint.rule import Rule, all_rules
from cachelint.sources import decode
from tests.conftest import FIXTURES, codes
from tests.test_fixtures import read_range

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


JUDGING = [rule for rule in all_rules() if rule.judges]


@pytest.mark.parametrize("rule", JUDGING, ids=lambda rule: rule.code)
def test_without_its_check_each_alarming_fixture_is_quiet(rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    alarming = [
        p for p in FIXTURES.glob(f"{rule.name}/*.py") if not p.name.startswith("ok_") and ".fixed." not in p.name
    ]

    def found() -> list[bool]:
        checkers = [(path, Checker(Settings(), read_range(path))) for path in alarming]
        return [rule.code in {d.code for d in c.diagnose(decode(p, p.read_bytes()))} for p, c in checkers]

    assert found() == [True] * len(alarming)
    monkeypatch.setattr(type(rule), "check", lambda *_: iter(()))
    assert found() == [False] * len(alarming)


@pytest.mark.parametrize("rule", JUDGING, ids=lambda rule: rule.code)
def test_each_rule_rests_on_measurements(rule: Rule) -> None:
    assert rule.facts
    for shows, part, key in rule.facts:
        assert shows
        assert history(part, key), (part, key)


def test_every_code_of_the_rule_book_is_there() -> None:
    book = {
        "1": [*range(1, 13)],
        "2": [*range(1, 16)],
        "3": [*range(1, 14)],
        "4": [*range(1, 7)],
        "5": [1],
        "9": [0, 99],
    }
    wanted = {f"KV{hundred}{number:02}" for hundred, numbers in book.items() for number in numbers}
    assert {rule.code for rule in all_rules()} == wanted


def test_the_readme_lists_every_rule() -> None:
    text = (FIXTURES.parent / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| (KV\d+) \| ([\w-]+) \|", text, re.MULTILINE)
    assert listed == [(rule.code, rule.name) for rule in all_rules()]
