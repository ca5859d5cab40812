"""Every fixture is checked, fixed, and checked again."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from cachelint.config import Settings
from cachelint.diagnostics import Diagnostic
from cachelint.engine import Checker
from cachelint.fixes import fix_source
from cachelint.sources import decode
from tests.conftest import FIXTURES, ROOT

CASES = sorted(path for path in FIXTURES.glob("*/*.py") if not path.name.endswith(".fixed.py"))


def describe(diagnostic: Diagnostic) -> str:
    place = f"{diagnostic.location.row}:{diagnostic.location.column}"
    fix = diagnostic.fix.applicability if diagnostic.fix else "no fix"
    return f"{place} {diagnostic.code} {diagnostic.severity}, {fix}: {diagnostic.message}"


def read_range(path: Path) -> str:
    first = path.with_suffix(".expected").read_text(encoding="utf-8").splitlines()[0]
    return shlex.split(first)[1]


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_fixture(path: Path, request: pytest.FixtureRequest) -> None:
    spec = read_range(path)
    checker = Checker(Settings(), spec)
    source = decode(path, path.read_bytes())
    found = checker.diagnose(source)
    lines = [f'--transformers "{spec}"', *(describe(diagnostic) for diagnostic in found)]
    fixed = fix_source(source, checker.diagnose, unsafe=False)
    expected, mended = path.with_suffix(".expected"), path.with_suffix(".fixed.py")
    if request.config.getoption("--update-expected"):
        expected.write_text("\n".join(lines) + "\n", encoding="utf-8")
        mended.unlink(missing_ok=True)
        if fixed.changed:
            mended.write_bytes(source.encode(fixed.text))
    assert lines == expected.read_text(encoding="utf-8").splitlines()
    assert fixed.reason is None
    assert fixed.changed == mended.exists()
    if fixed.changed:
        assert source.encode(fixed.text) == mended.read_bytes()
        compile(fixed.text, str(mended), "exec")
        again = fix_source(decode(mended, mended.read_bytes()), checker.diagnose, unsafe=False)
        assert not again.changed


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_name_says_what_is_expected(path: Path) -> None:
    """`ok_…` holds nothing for its rule; every other case holds something."""
    rules = {folder.name for folder in FIXTURES.iterdir()}
    assert path.parent.name in rules
    code = _code_of(path.parent.name)
    text = path.with_suffix(".expected").read_text(encoding="utf-8")
    assert (f" {code} " in text) is not path.stem.startswith("ok_")


def _code_of(folder: str) -> str:
    from cachelint.rule import find_rule

    rule = find_rule(folder)
    assert rule is not None, f"{ROOT / 'fixtures' / folder} is named as no rule is"
    return rule.code


def test_every_rule_has_as_many_quiet_fixtures_as_alarming_ones() -> None:
    from cachelint.rule import all_rules

    for rule in all_rules():
        if not rule.judges:
            continue
        mine = [path for path in CASES if path.parent.name == rule.name]
        quiet = [path for path in mine if path.stem.startswith("ok_")]
        assert mine and len(mine) - len(quiet) >= 2, rule.code
        assert len(quiet) >= 2, rule.code
