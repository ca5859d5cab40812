"""The command line, as a user runs it."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

CRASH = """\
from transformers import DynamicCache


def decode(model, prompt, draft):
    cache = DynamicCache()
    model(prompt, past_key_values=cache)
    start = cache.get_seq_length()
    model(draft, past_key_values=cache)
    cache.crop(start)
"""
MENDED = CRASH.replace("crop(start)", "crop(start - cache.get_seq_length())")


def run(*args: str, cwd: Path, stdin: str | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cachelint", *args],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **env},
        timeout=120,
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "bad.py").write_text(CRASH)
    (tmp_path / "good.py").write_text(MENDED)
    return tmp_path


def test_findings_give_one_and_nothing_gives_zero(project: Path) -> None:
    found = run("check", "--output-format", "concise", cwd=project)
    assert found.returncode == 1
    assert found.stdout.startswith("bad.py:9:5: KV101 [*] `crop(start)`")
    assert found.stdout.count("\n") == 1
    clean = run("check", "good.py", cwd=project)
    assert (clean.returncode, clean.stdout) == (0, "")
    assert run("check", "--exit-zero", cwd=project).returncode == 0


def test_json_has_the_keys_that_are_promised(project: Path) -> None:
    found = run("check", "--output-format", "json", "--transformers", ">=5.14", cwd=project)
    (entry,) = json.loads(found.stdout)
    assert set(entry) == {
        "cell", "code", "end_location", "filename", "fix", "flow", "location", "message", "name", "noqa_row",
        "releases", "severity", "url",
    }  # fmt: skip
    assert entry["filename"] == str(project / "bad.py")
    assert entry["location"] == {"row": 9, "column": 5}
    assert entry["end_location"] == {"row": 9, "column": 22}
    assert entry["fix"]["applicability"] == "safe"
    assert entry["fix"]["edits"] == [
        {
            "content": "start - cache.get_seq_length()",
            "location": {"row": 9, "column": 16},
            "end_location": {"row": 9, "column": 21},
        }
    ]
    assert [(r["range"], r["effect"]) for r in entry["releases"]] == [("5.15–5.19", "warns"), ("5.20+", "raises")]
    assert [step["location"]["row"] for step in entry["flow"]] == [5, 8, 7, 9]


def test_full_shows_frame_steps_releases_and_fix(project: Path) -> None:
    text = run("check", "bad.py", cwd=project).stdout
    assert "--> bad.py:9:5" in text
    assert "9 |     cache.crop(start)" in text
    assert "how it comes to that:" in text
    assert "5.20+      raises" in text
    assert "+    cache.crop(start - cache.get_seq_length())" in text
    assert "\x1b[" not in text


def test_colour_is_for_terminals_and_for_who_asks(project: Path) -> None:
    assert "\x1b[" in run("check", "--color", "always", "bad.py", cwd=project).stdout
    assert "\x1b[" not in run("check", "--color", "never", "bad.py", cwd=project).stdout


def test_fix_writes_once(project: Path) -> None:
    first = run("check", "--fix", cwd=project)
    assert first.returncode == 0
    assert "Fixed 1 finding in 1 file." in first.stderr
    assert (project / "bad.py").read_text() == MENDED
    second = run("fix", cwd=project)
    assert second.returncode == 0
    assert "Fixed 0 findings" in second.stderr
    assert (project / "bad.py").read_text() == MENDED


def test_diff_writes_nothing_and_git_takes_it(project: Path) -> None:
    shown = run("check", "--diff", cwd=project)
    assert shown.returncode == 1
    assert (project / "bad.py").read_text() == CRASH
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    applied = subprocess.run(["git", "apply", "-"], cwd=project, input=shown.stdout, text=True, capture_output=True)
    assert applied.returncode == 0, applied.stderr
    assert (project / "bad.py").read_text() == MENDED


def test_fix_keeps_mode_newlines_bom_and_encoding(tmp_path: Path) -> None:
    windows = tmp_path / "windows.py"
    windows.write_bytes(b"\xef\xbb\xbf" + CRASH.replace("\n", "\r\n").encode())
    windows.chmod(0o750)
    latin = tmp_path / "latin.py"
    latin.write_bytes(("# -*- coding: latin-1 -*-\n# caf\xe9\n" + CRASH).encode("latin-1"))
    tabs = tmp_path / "tabs.py"
    tabs.write_text(CRASH.replace("    ", "\t").replace("crop(start)", "crop(len(prompt))").rstrip("\n"))
    assert run("fix", cwd=tmp_path).returncode == 0
    assert windows.read_bytes() == b"\xef\xbb\xbf" + MENDED.replace("\n", "\r\n").encode()
    assert stat.S_IMODE(windows.stat().st_mode) == 0o750
    assert latin.read_bytes() == ("# -*- coding: latin-1 -*-\n# caf\xe9\n" + MENDED).encode("latin-1")
    assert tabs.read_text().endswith(
        "\tif (excess := cache.get_seq_length() - len(prompt)) > 0:\n\t\tcache.crop(-excess)"
    )


def test_standard_input(project: Path) -> None:
    found = run("check", "-", "--stdin-filename", "sub/x.py", "--output-format", "concise", cwd=project, stdin=CRASH)
    assert found.returncode == 1
    assert found.stdout.startswith(f"{Path('sub/x.py')}:9:5: KV101")


def test_output_file_holds_the_findings(project: Path) -> None:
    found = run("check", "--output-format", "json", "-o", "out.json", cwd=project)
    assert found.returncode == 1
    assert "KV101 positive-crop" in found.stdout
    assert json.loads((project / "out.json").read_text())[0]["code"] == "KV101"
    assert run("check", "-q", "--output-format", "json", "-o", "out.json", cwd=project).stdout == ""


def test_select_and_ignore(project: Path) -> None:
    assert run("check", "--select", "KV105", cwd=project).returncode == 0
    assert run("check", "--ignore", "KV1", cwd=project).returncode == 0
    assert run("check", "--select", "KV1,KV999", cwd=project).returncode == 1
    wrong = run("check", "--select", "KV110101", cwd=project)
    assert wrong.returncode == 2
    assert "did you mean" in wrong.stderr


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("check", "missing.py"), "missing.py: no such file or folder"),
        (("check", "--transformers", "banana"), "'banana' is no version specifier"),
        (("check", "--transformers", ">=9"), "no release of transformers that cachelint knows (4.36.0 to"),
        (("check", "--config", "absent.toml"), "absent.toml: cannot be read"),
        (("chekc",), "check"),
        (("explain", "KV9999"), "no rule"),
    ],
)
def test_bad_usage_gives_two_and_says_what(project: Path, args: tuple[str, ...], words: str) -> None:
    result = run(*args, cwd=project)
    assert result.returncode == 2
    assert words in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("[tool.cachelint]\nselct = ['KV1']\n", "unknown key `selct` in `tool.cachelint`; did you mean `select`?"),
        ("[tool.cachelint]\nselect = 'KV1'\n", "`select` must be a list of strings, not 'KV1'"),
        ("[tool.cachelint]\ntransformers = 5\n", "`transformers` must be a string, not 5"),
        ("[tool.cachelint]\ntransformers = '>=99'\n", "pyproject.toml:2: no release"),
        ("[tool.cachelint\n", "is no valid TOML"),
    ],
)
def test_broken_configuration(project: Path, config: str, words: str) -> None:
    (project / "pyproject.toml").write_text(config)
    result = run("check", cwd=project)
    assert result.returncode == 2
    assert words in result.stderr
    assert "pyproject.toml" in result.stderr


def test_configuration_counts(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.cachelint]\ntransformers = '<5.15'\n")
    assert run("check", cwd=project).returncode == 0
    assert run("check", "--isolated", cwd=project).returncode == 1
    assert run("check", "--transformers", ">=5.20", cwd=project).returncode == 1


BROKEN = {
    "syntax.py": (b"def crop(:\n    x.crop(1)\n", "syntax error"),
    "nul.py": (b"x.crop(1)\n\0\n", "NUL byte"),
    "encoding.py": (b"x.crop('\xff\xfe')\n", "not valid utf-8"),
    "cookie.py": (b"# coding: klingon\nx.crop(1)\n", "encoding 'klingon' is not known"),
    "brackets.py": (b"x.crop(" + b"[" * 2000 + b"]" * 2000 + b")\n", "too many nested parentheses"),
    "large.py": (b"x.crop(1)\nDATA = [" + b"1, " * 3_400_000 + b"]\n", "MB"),
    "deep.py": (b"x.crop(" + b"-" * 100_000 + b"1)\n", ""),
}


def test_files_that_cannot_be_parsed_are_findings_and_hide_no_others(project: Path) -> None:
    for name, (data, _) in BROKEN.items():
        (project / name).write_bytes(data)
    result = run("check", "--output-format", "json", cwd=project)
    assert result.returncode == 1, result.stderr
    assert "Traceback" not in result.stderr
    found = {Path(entry["filename"]).name: entry for entry in json.loads(result.stdout)}
    assert found["bad.py"]["code"] == "KV101"
    for name, (_, words) in BROKEN.items():
        if words:
            assert found[name]["code"] == "KV999"
            assert words in found[name]["message"]


def test_a_named_file_is_parsed_even_without_a_trigger(project: Path) -> None:
    (project / "plain.py").write_text("def f(:\n")
    result = run("check", "plain.py", "--output-format", "concise", cwd=project)
    assert result.returncode == 1
    assert result.stdout.startswith("plain.py:1:7: KV999")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file(project: Path) -> None:
    (project / "secret.py").write_text(CRASH)
    (project / "secret.py").chmod(0)
    result = run("check", "--output-format", "concise", cwd=project)
    assert result.returncode == 2
    assert "secret.py: cannot be read" in result.stderr
    assert "bad.py:9:5" in result.stdout


def test_dangling_link_is_named(project: Path) -> None:
    (project / "link.py").symlink_to("nowhere.py")
    result = run("check", "link.py", "bad.py", "--output-format", "concise", cwd=project)
    assert result.returncode == 2
    assert "link.py" in result.stderr


def test_empty_folder(tmp_path: Path) -> None:
    result = run("check", cwd=tmp_path)
    assert result.returncode == 0
    assert "no Python file" in result.stderr


def test_explain_rules_and_target(project: Path) -> None:
    page = run("explain", "KV101", cwd=project)
    assert page.stdout.startswith("# positive-crop (KV101)")
    assert "## Fix safety" in page.stdout
    assert run("explain", "positive-crop", cwd=project).stdout == page.stdout
    table = run("explain", "KV101", "--transformers", ">=5.20", cwd=project).stdout
    assert "Measured on 5.20+:" in table
    assert "    5.20+          raises ValueError: Calling `crop` with a positive value is not supported" in table
    assert run("explain", "KV101", "--transformers", "nope", cwd=project).returncode == 2
    assert "KV105  zero-crop" in run("rules", cwd=project).stdout
    (project / "requirements.txt").write_text("torch\ntransformers>=4.50,<5\n")
    assert "requirements.txt:2" in run("target", cwd=project).stdout


LIGHT = """
import runpy, sys
sys.argv = ["cachelint", *{args!r}]
try:
    runpy.run_module("cachelint", run_name="__main__")
except SystemExit:
    pass
print("HEAVY:", sorted(m for m in ("libcst", "astroid", "rich") if m in sys.modules))
"""


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["check", "plain.py"], ["check", "."]])
def test_light_runs_import_no_heavy_library(tmp_path: Path, args: list[str]) -> None:
    (tmp_path / "plain.py").write_text("print('hello')\n")
    code = LIGHT.format(args=args)
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert result.stdout.endswith("HEAVY: []\n"), result.stdout + result.stderr


def test_the_readme_shows_what_is_printed() -> None:
    root = Path(__file__).parent.parent
    shown = (root / "README.md").read_text(encoding="utf-8")
    found = run("check", "--isolated", "--color", "never", "fixtures/positive-crop/saved_length.py", cwd=root)
    assert found.stdout.strip() in shown
