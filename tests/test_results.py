"""Kept results: the same as new ones, used only while nothing has changed, and never in the way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from cachelint import engine
from cachelint.cli import cli

HELPER = "def cut(cache, keep):\n    cache.crop(keep)\n"
USER = """\
from transformers import DynamicCache

from lib.helper import cut


def run(model, ids):
    cache = DynamicCache()
    model(ids, past_key_values=cache)
    cut(cache, 5)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "__init__.py").write_text("")
    (tmp_path / "lib" / "helper.py").write_text(HELPER)
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "user.py").write_text(USER)
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = ["transformers>=5.20"]\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(*arguments: str) -> str:
    found = CliRunner().invoke(cli, ["check", "app", "--output-format", "json", *arguments])
    assert found.exit_code in (0, 1), found.output
    return found.stdout


@pytest.fixture
def analysed(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that are analysed and not only remembered."""
    seen: list[Path] = []
    original = engine.Checker.check_file

    def noting(self: engine.Checker, candidate: engine.Candidate) -> engine.FileResult:
        seen.append(candidate.path)
        return original(self, candidate)

    monkeypatch.setattr(engine.Checker, "check_file", noting)
    return seen


def test_a_second_run_remembers_all(folder: Path, analysed: list[Path]) -> None:
    first = check()
    assert json.loads(first)[0]["code"] == "KV101"
    analysed.clear()
    assert check() == first
    assert analysed == []
    assert check("--no-cache") == first
    assert analysed != []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("app/user.py", USER.replace("5)", "-5)")),
        ("lib/helper.py", HELPER.replace("crop(keep)", "crop(-keep)")),
        ("pyproject.toml", '[project]\ndependencies = ["transformers==4.50.*"]\n'),
    ],
)
def test_a_change_is_seen(folder: Path, name: str, text: str) -> None:
    assert json.loads(check()) != []
    (folder / name).write_text(text)
    assert json.loads(check()) == []


def test_a_new_file_is_seen(folder: Path) -> None:
    before = len(json.loads(check()))
    (folder / "app" / "more.py").write_text(USER.replace("def run", "def more"))
    assert len(json.loads(check())) >= before
    (folder / "app" / "more.py").write_text("from transformers import SinkCache\n")
    assert "KV305" in check()


def test_other_settings_have_other_results(folder: Path) -> None:
    assert json.loads(check()) != []
    assert json.loads(check("--transformers", "==4.50.*")) == []
    assert json.loads(check("--ignore", "KV1")) == []
    assert json.loads(check()) != []


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"key": 1', "\x00\x01", '{"key": null, "looked_at": []}'])
def test_what_cannot_be_understood_is_no_result(folder: Path, text: str) -> None:
    first = check()
    for path in (folder / ".cachelint_cache").glob("*.json"):
        path.write_text(text)
    assert check() == first


def test_no_cache_keeps_nothing(folder: Path) -> None:
    check("--no-cache")
    assert not (folder / ".cachelint_cache").exists()
    check("--cache-dir", "kept")
    assert (folder / "kept" / "CACHEDIR.TAG").exists()
    assert (folder / "kept" / ".gitignore").read_text() == "*\n"


def test_a_folder_that_cannot_be_written_to_costs_only_time(folder: Path) -> None:
    (folder / "file").write_text("")
    assert json.loads(check("--cache-dir", "file/below")) != []
