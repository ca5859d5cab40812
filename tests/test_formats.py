"""The output formats that other programs read, each checked by such a program or against its schema."""

from __future__ import annotations

import json
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import junitparser
import pytest
from sarif_pydantic import Sarif

from cachelint.config import FORMATS, Settings, schema
from cachelint.engine import Checker
from cachelint.report import formats, sarif
from cachelint.sources import decode

BAD = """\
from transformers import DynamicCache


def f(model, ids, draft):
    cache = DynamicCache()
    model(ids, past_key_values=cache)
    start = cache.get_seq_length()
    x = "𝒳é"; model(draft, past_key_values=cache); cache.crop(start)
    return x
"""
PREFIX = '    x = "𝒳é"; model(draft, past_key_values=cache); '


@pytest.fixture
def bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "a b" / "bad.py"
    path.parent.mkdir()
    path.write_text(BAD, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return path


def rendered(name: str, path: Path, text: str | None = None) -> str:
    if text is not None:
        path.write_text(text, encoding="utf-8")
    found = Checker(Settings(), ">=5.0").diagnose(decode(path, path.read_bytes()))
    return formats.render(name, found)


def test_sarif_is_valid_and_complete(bad: Path) -> None:
    text = rendered("sarif", bad)
    Sarif.model_validate_json(text)
    run = json.loads(text)["runs"][0]
    (result,) = run["results"]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "KV101"
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "a%20b/bad.py", "uriBaseId": "%SRCROOT%"}
    assert place["region"]["startColumn"] == len(PREFIX.encode("utf-16-le")) // 2 + 1
    assert [s["location"]["message"]["text"] for s in result["codeFlows"][0]["threadFlows"][0]["locations"]][-1]
    replaced = result["fixes"][0]["artifactChanges"][0]["replacements"][0]
    assert replaced["insertedContent"]["text"] == "start - cache.get_seq_length()"


def test_fingerprints_stay_when_lines_move(bad: Path) -> None:
    def mark(text: str) -> Any:
        return json.loads(rendered("sarif", bad, text))["runs"][0]["results"][0]["partialFingerprints"]

    assert mark(BAD) == mark("# a line\n\n" + BAD) != mark(BAD.replace("start", "began"))


def test_sarif_says_what_it_leaves_out(bad: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sarif, "MAX_RESULTS", 1)
    found = Checker(Settings(), ">=5.0").diagnose(decode(bad, bad.read_bytes()))
    run = json.loads(sarif.render([*found, *found]))["runs"][0]
    assert len(run["results"]) == 1
    assert "1 of 2" in run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]


def test_junit(bad: Path) -> None:
    report = junitparser.JUnitXml.fromstring(rendered("junit", bad).encode())
    assert (report.tests, report.failures) == (1, 1)
    clean = junitparser.JUnitXml.fromstring(rendered("junit", bad, "x = 1\n").encode())
    assert (clean.tests, clean.failures) == (1, 0)


def test_github_commands_are_escaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a,b:c%\nd.py"
    path.write_text(BAD, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    text = rendered("github", path)
    assert text.count("\n") == 1
    assert text.startswith("::error title=cachelint (KV101),file=a%2Cb%3Ac%25%0Ad.py,line=8,col=")


def test_gitlab(bad: Path) -> None:
    (found,) = json.loads(rendered("gitlab", bad))
    assert (found["check_name"], found["severity"]) == ("KV101", "major")
    assert found["location"]["path"] == "a b/bad.py"
    assert found["location"]["lines"]["begin"] == 8


def test_rdjson_counts_bytes(bad: Path) -> None:
    (found,) = json.loads(rendered("rdjson", bad))["diagnostics"]
    assert found["location"]["range"]["start"] == {"line": 8, "column": len(PREFIX.encode()) + 1}
    assert found["suggestions"][0]["text"] == "start - cache.get_seq_length()"


def test_html_is_one_page_and_escapes(bad: Path) -> None:
    text = rendered("html", bad, BAD.replace("return x", "return x < 1").replace("start)", "start if 1 < 2 else 3)"))
    parser = HTMLParser()
    parser.feed(text)
    assert "1 &lt; 2" in text and "<script" not in text and "http" not in text.split("</style>")[0]


def test_json_lines(bad: Path) -> None:
    (line,) = rendered("json-lines", bad).splitlines()
    assert json.loads(line) == json.loads(rendered("json", bad))[0]


def test_ruffs_json_has_the_same_keys(bad: Path) -> None:
    path = bad.with_name("unused.py")
    path.write_text("import os\n", encoding="utf-8")
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--output-format", "json", str(path)]
    (theirs,) = json.loads(subprocess.run(command, capture_output=True, text=True, check=False).stdout)
    ours = json.loads(rendered("json", bad))[0]
    assert theirs.keys() <= ours.keys()
    assert theirs["fix"].keys() == ours["fix"].keys()
    assert theirs["fix"]["edits"][0].keys() == ours["fix"]["edits"][0].keys()
    assert theirs["location"].keys() == ours["location"].keys()


def test_every_format_takes_no_findings(tmp_path: Path) -> None:
    for name in FORMATS:
        if name != "full":
            assert bool(formats.render(name, [])) is (name in formats.FOR_PROGRAMS - {"github", "json-lines"}), name


def test_the_schema_of_the_settings_takes_what_the_settings_take() -> None:
    check = jsonschema.Draft202012Validator(schema())
    assert check.is_valid({"select": ["KV1"], "per-file-ignores": {"tests/*": ["KV2"]}, "output-format": "sarif"})
    assert not check.is_valid({"selct": ["KV1"]})
    assert not check.is_valid({"output-format": "srif"})
