"""What other programs read: GitHub's workflow commands, GitLab's Code Quality, JUnit, reviewdog."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any
from xml.etree import ElementTree

from cachelint.diagnostics import Diagnostic, Location
from cachelint.report.concise import printable
from cachelint.report.places import Texts, fingerprints, relative

# What XML 1.0 cannot hold.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def github(diagnostics: Sequence[Diagnostic]) -> str:
    """Workflow commands, one a line, each escaped."""
    lines = []
    for each in diagnostics:
        name = relative(each.path)
        values = {
            "title": f"cachelint ({each.code})",
            "file": name,
            "line": each.location.row,
            "col": each.location.column,
            "endLine": each.end_location.row,
            "endColumn": each.end_location.column,
        }
        listed = ",".join(f"{key}={_property(str(value))}" for key, value in values.items())
        text = f"{name}:{each.location.row}:{each.location.column}: {each.code} {each.message}"
        lines.append(f"::{each.severity} {listed}::{_data(text)}\n")
    return "".join(lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def gitlab(diagnostics: Sequence[Diagnostic]) -> str:
    """A Code Quality report."""
    marks = fingerprints(diagnostics, Texts())
    found = [
        {
            "description": f"{each.code}: {each.message}",
            "check_name": each.code,
            "fingerprint": mark,
            "severity": "major" if each.severity == "error" else "minor",
            "location": {
                "path": relative(each.path),
                "positions": {
                    "begin": {"line": each.location.row, "column": each.location.column},
                    "end": {"line": each.end_location.row, "column": each.end_location.column},
                },
                "lines": {"begin": each.location.row, "end": each.end_location.row},
            },
        }
        for each, mark in zip(diagnostics, marks, strict=True)
    ]
    return json.dumps(found, indent=2) + "\n"


def junit(diagnostics: Sequence[Diagnostic]) -> str:
    """A JUnit report: a suite for each file, a failed case for each finding; one that passes where there is none."""
    count = str(len(diagnostics))
    root = ElementTree.Element("testsuites", name="cachelint", tests=count or "1", failures=count, errors="0")
    if not diagnostics:
        root.set("tests", "1")
        suite = ElementTree.SubElement(root, "testsuite", name="cachelint", tests="1", failures="0", errors="0")
        ElementTree.SubElement(suite, "testcase", name="No findings", classname="cachelint", time="0")
    for path, group in groupby(diagnostics, key=lambda each: each.path):
        mine = list(group)
        name = _xml(relative(path))
        number = str(len(mine))
        suite = ElementTree.SubElement(root, "testsuite", name=name, tests=number, failures=number, errors="0")
        for each in mine:
            place = f"{each.location.row}:{each.location.column}"
            case = ElementTree.SubElement(suite, "testcase", name=f"{each.code} at {place}", classname=name, time="0")
            failure = ElementTree.SubElement(case, "failure", message=_xml(each.message), type=each.severity)
            steps = [f"{relative(s.path)}:{s.location.row}:{s.location.column}: {s.message}" for s in each.flow]
            effects = [f"{r.range}: {r.effect}: {r.detail}" for r in each.releases]
            failure.text = _xml("\n".join((f"{relative(path)}:{place}: {each.message}", *effects, *steps)))
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _xml(text: str) -> str:
    return _NOT_XML.sub(lambda match: printable(match[0]), text)


def rdjson(diagnostics: Sequence[Diagnostic]) -> str:
    """reviewdog's diagnostic format, with suggestions."""
    texts = Texts()

    def spot(each: Diagnostic, place: Location) -> dict[str, int]:
        return {"line": place.row, "column": texts.utf8_column(each.path, place)}

    found: list[dict[str, Any]] = []
    for each in diagnostics:
        said: dict[str, Any] = {
            "message": each.message,
            "location": {
                "path": relative(each.path),
                "range": {"start": spot(each, each.location), "end": spot(each, each.end_location)},
            },
            "severity": each.severity.upper(),
            "code": {"value": each.code, "url": each.url or ""},
        }
        if each.fix is not None and each.fix.edits and each.cell is None:
            said["suggestions"] = [
                {
                    "range": {"start": spot(each, edit.location), "end": spot(each, edit.end_location)},
                    "text": edit.content,
                }
                for edit in each.fix.edits
            ]
        found.append(said)
    whole = {"source": {"name": "cachelint", "url": "https://pypi.org/project/cachelint/"}, "diagnostics": found}
    return json.dumps(whole, indent=2) + "\n"
