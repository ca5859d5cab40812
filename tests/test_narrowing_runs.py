"""Runs that tell only of a part: baselines, changed lines, settings that extend others, files that are included."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cachelint.cli import cli

HEAD = "from transformers import DynamicCache\ncache = DynamicCache()\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cachelint.toml").write_text('transformers = "==5.20.*"\nselect = ["KV101"]\n')
    (tmp_path / "x.py").write_text(HEAD + "cache.crop(5)\n")
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def test_a_baseline_keeps_old_findings_quiet(folder: Path) -> None:
    written = run("baseline", "--baseline", "known.json")
    assert written.exit_code == 0 and "1 finding in known.json" in written.output
    assert json.loads((folder / "known.json").read_text())["findings"][0]["path"] == "x.py"
    assert run("check", "--baseline", "known.json").exit_code == 0
    (folder / "x.py").write_text("# more\n\n" + HEAD + "cache.crop(5)\ncache.crop(6)\n")
    found = run("check", "--baseline", "known.json", "--output-format", "concise")
    assert found.exit_code == 1
    assert "x.py:6:" in found.output and "x.py:5:" not in found.output


def test_the_same_line_twice_is_two_findings(folder: Path) -> None:
    run("baseline", "--baseline", "known.json")
    (folder / "x.py").write_text(HEAD + "cache.crop(5)\ncache.crop(5)\n")
    assert run("check", "--baseline", "known.json").exit_code == 1


def test_what_no_longer_occurs_is_told_and_pruned(folder: Path) -> None:
    run("baseline", "--baseline", "known.json")
    (folder / "x.py").write_text(HEAD)
    assert "no longer found: x.py: KV101" in run("check", "--baseline", "known.json").output
    run("baseline", "--baseline", "known.json")
    assert json.loads((folder / "known.json").read_text())["findings"] == []


@pytest.mark.parametrize("text", [None, "{}", "[1]", '{"version": 7}', "no"])
def test_a_bad_baseline_is_an_error(folder: Path, text: str | None) -> None:
    if text is not None:
        (folder / "known.json").write_text(text)
    found = run("check", "--baseline", "known.json")
    assert found.exit_code == 2 and "known.json" in found.output and "Traceback" not in found.output


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def test_changed_lines_only(folder: Path) -> None:
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    (folder / "x.py").write_text(HEAD + "cache.crop(5)\ncache.crop(6)\n")
    (folder / "new.py").write_text(HEAD + "cache.crop(7)\n")
    found = run("check", "--diff-base", "HEAD", "--output-format", "concise")
    assert "new.py:3:" in found.output and "x.py:4:" in found.output and "x.py:3:" not in found.output
    wrong = run("check", "--diff-base", "nowhere")
    assert wrong.exit_code == 2 and "nowhere" in wrong.output


def test_settings_extend_others(folder: Path) -> None:
    (folder / "base.toml").write_text('transformers = "==4.50.*"\nignore = ["KV1"]\n')
    (folder / "cachelint.toml").write_text('extend = "base.toml"\ntransformers = "==5.20.*"\n')
    assert run("check").exit_code == 0
    shown = run("check", "--show-settings").output
    assert 'transformers = "==5.20.*"' in shown and 'ignore = ["KV1"]' in shown
    (folder / "base.toml").write_text('extend = "cachelint.toml"\n')
    circle = run("check")
    assert circle.exit_code == 2 and "circle" in circle.output


def test_include_and_show_files(folder: Path) -> None:
    (folder / "y.pyx").write_text(HEAD)
    assert run("check", "--show-files").output.split() == [str(folder / "x.py")]
    (folder / "cachelint.toml").write_text('include = ["*.pyx"]\n')
    assert run("check", "--show-files").output.split() == [str(folder / "y.pyx")]


def test_unfixable(folder: Path) -> None:
    (folder / "cachelint.toml").write_text('transformers = "==5.20.*"\nunfixable = ["KV101"]\n')
    assert run("check", "--fix", "--select", "KV101").exit_code == 1
    assert (folder / "x.py").read_text() == HEAD + "cache.crop(5)\n"


def test_names_types_and_calls_of_ones_own(folder: Path) -> None:
    text = "from mine import KV\n\ndef f(holder, kv: KV):\n    holder.my_kv.crop(5)\n    kv.crop(6)\n"
    (folder / "x.py").write_text(text)
    assert run("check").exit_code == 0
    own = 'transformers = "==5.20.*"\ncache-names = ["my_kv"]\ncache-types = ["mine.KV"]\n'
    (folder / "cachelint.toml").write_text(own)
    found = run("check", "--output-format", "concise", "--select", "KV101").output
    assert "x.py:4:" in found and "x.py:5:" in found


def test_a_format_that_there_is_not(folder: Path) -> None:
    (folder / "cachelint.toml").write_text('output-format = "srif"\n')
    found = run("check")
    assert found.exit_code == 2 and "must be one of" in found.output
