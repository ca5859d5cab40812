"""The codemod over a repository: what it refuses, what it adds, what it says at the end; and the upgrade map."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cachelint.cli import cli
from cachelint.config import Settings
from cachelint.engine import Checker
from cachelint.fixes import fix_source
from cachelint.sources import Source

BAD = """\
from transformers import DynamicCache


def f(model, ids, draft):
    cache = DynamicCache()
    model(ids, past_key_values=cache)
    start = cache.get_seq_length()
    model(draft, past_key_values=cache)
    cache.crop(start)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.py").write_text(BAD)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, [*arguments, "--isolated", "--transformers", ">=5.0"])


def git(*arguments: str) -> None:
    subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@example.org", *arguments], check=True)


def test_fix_refuses_files_with_uncommitted_changes(folder: Path) -> None:
    git("init", "-q")
    refused = run("fix", ".")
    assert refused.exit_code == 2 and "x.py: has uncommitted changes" in refused.output
    assert (folder / "x.py").read_text() == BAD
    git("add", ".")
    git("commit", "-qm", "all")
    (folder / "other.py").write_text("x = 1\n")
    done = run("fix", ".")
    assert done.exit_code == 0 and "Fixed 1 finding in 1 file." in done.output
    assert "cache.crop(start - cache.get_seq_length())" in (folder / "x.py").read_text()


def test_fix_may_be_allowed_to(folder: Path) -> None:
    git("init", "-q")
    assert run("fix", ".", "--allow-dirty").exit_code == 0
    assert (folder / "x.py").read_text() != BAD


def test_fix_says_what_is_left_and_why(folder: Path) -> None:
    text = "def f(a, b, past_key_values):\n    return past_key_values.to_legacy_cache()\n"
    (folder / "x.py").write_text(text)
    done = run("fix", ".")
    assert done.exit_code == 1
    assert "Left 1 finding:" in done.output and "1 that no rewrite can mend" in done.output


HEADS = [
    ("", "import copy\n\n", ""),
    ("import abc\nimport os\n\n", "", "import abc\nimport copy\nimport os\n\n"),
    ("import abc, copy\n\n", "", "import abc, copy\n\n"),
    ('"""Text."""\n\nfrom __future__ import annotations\n\n', "", None),
    ("from abc import ABC\n\n", "", "import copy\nfrom abc import ABC\n\n"),
    ("import abc\n\n", "", "import abc\nimport copy\n\n"),
]
LOOP = """\
from transformers import DynamicCache


def f(model, tok, questions):
    cache = DynamicCache()
    for question in questions:
        model.generate(tok(question), past_key_values=cache)
"""


@pytest.mark.parametrize(("head", "before", "after"), HEADS)
def test_imports_are_added_where_isort_puts_them(head: str, before: str, after: str | None) -> None:
    source = Source(Path("/nowhere/x.py"), head + LOOP)
    fixed = fix_source(source, Checker(Settings(), ">=5.0").diagnose, unsafe=True)
    assert fixed.reason is None
    assert "past_key_values=copy.deepcopy(cache)" in fixed.text
    if after is None:
        after = head + "import copy\n\n"
    assert fixed.text.startswith((before + head if before else after) + "from transformers")
    compile(fixed.text, "x", "exec")


@pytest.mark.parametrize("head", ["from copy import copy\n\n", "copy = 1\n", "import mine as copy\n\n"])
def test_no_import_where_the_name_is_taken(head: str) -> None:
    source = Source(Path("/nowhere/x.py"), head + LOOP)
    assert not fix_source(source, Checker(Settings(), ">=5.0").diagnose, unsafe=True).changed


def test_the_upgrade_map(folder: Path) -> None:
    text = run("upgrade", ".").output
    assert text.splitlines()[0].split() == ["transformers", "5.0–5.14", "5.15–5.19", "5.20+"]
    assert text.splitlines()[1].split() == ["x.py:9:5", "KV101", "-", "warns", "raises"]
    drawn = json.loads(run("upgrade", ".", "--output-format", "json").output)
    assert drawn["findings"][0]["effects"] == [None, "warns", "raises"]
    assert run("upgrade", ".", "--output-format", "html", "-o", "map.html").exit_code == 0
    assert "<td" in (folder / "map.html").read_text()


def test_the_upgrade_map_of_nothing(folder: Path) -> None:
    (folder / "x.py").write_text("x = 1\n")
    assert "Nothing breaks" in run("upgrade", ".").output
