"""SARIF 2.1.0, as code scanning reads it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cachelint import __version__
from cachelint.diagnostics import Diagnostic, FlowStep, Location
from cachelint.report.places import Texts, fingerprints, relative
from cachelint.rule import find_rule

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
HOME = "https://pypi.org/project/cachelint/"
# What GitHub's code scanning shows of one run.
MAX_RESULTS = 5000
MAX_STEPS = 1000


def render(diagnostics: Sequence[Diagnostic]) -> str:
    """The log as JSON; results beyond the limit are left out, warnings first, and a notification tells so."""
    kept = sorted(diagnostics, key=lambda d: (d.severity != "error", *d.sort_key))[:MAX_RESULTS]
    kept.sort(key=lambda d: d.sort_key)
    codes = sorted({diagnostic.code for diagnostic in kept})
    texts = Texts()
    marks = fingerprints(kept, texts)
    results = [_result(d, codes.index(d.code), mark, texts) for d, mark in zip(kept, marks, strict=True)]
    invocation: dict[str, Any] = {"executionSuccessful": True}
    if len(kept) < len(diagnostics):
        text = f"{len(diagnostics) - len(kept)} of {len(diagnostics)} results are left out"
        invocation["toolExecutionNotifications"] = [{"level": "warning", "message": {"text": text}}]
    run = {
        "tool": {"driver": _driver(codes)},
        "invocations": [invocation],
        "originalUriBaseIds": {"%SRCROOT%": {"uri": Path.cwd().as_uri() + "/"}},
        "columnKind": "utf16CodeUnits",
        "results": results,
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _driver(codes: Sequence[str]) -> dict[str, Any]:
    return {
        "name": "cachelint",
        "informationUri": HOME,
        "semanticVersion": __version__,
        "rules": [_rule(code) for code in codes],
    }


def _rule(code: str) -> dict[str, Any]:
    rule = find_rule(code)
    assert rule is not None
    page = rule.documentation()
    return {
        "id": code,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": rule.summary()},
        "fullDescription": {"text": rule.summary()},
        "help": {"text": page, "markdown": page},
        "helpUri": f"{HOME}#{code.lower()}",
        "properties": {"tags": ["transformers", "kv-cache"]},
    }


def _result(diagnostic: Diagnostic, index: int, mark: str, texts: Texts) -> dict[str, Any]:
    releases = "; ".join(f"{r.range}: {r.effect} ({r.detail})" for r in diagnostic.releases)
    place = _place(diagnostic.path, texts, diagnostic.location, diagnostic.end_location)
    found: dict[str, Any] = {
        "ruleId": diagnostic.code,
        "ruleIndex": index,
        "level": diagnostic.severity,
        "message": {"text": f"{diagnostic.message}. {releases}" if releases else diagnostic.message},
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {"cachelint/v1": mark},
    }
    if diagnostic.flow:
        steps = [_step(step, texts) for step in diagnostic.flow[-MAX_STEPS:]]
        found["codeFlows"] = [{"threadFlows": [{"locations": steps}]}]
    fix = diagnostic.fix
    if fix is not None and fix.edits and diagnostic.cell is None:
        edits = [
            {
                "deletedRegion": _region(diagnostic.path, texts, edit.location, edit.end_location),
                "insertedContent": {"text": edit.content},
            }
            for edit in fix.edits
        ]
        artifact = _place(diagnostic.path, texts)["artifactLocation"]
        found["fixes"] = [
            {
                "description": {"text": f"{fix.message} ({fix.applicability})"},
                "artifactChanges": [{"artifactLocation": artifact, "replacements": edits}],
            }
        ]
    return found


def _step(step: FlowStep, texts: Texts) -> dict[str, Any]:
    place = _place(step.path, texts, step.location)
    return {"location": {"physicalLocation": place, "message": {"text": step.message}}}


def _place(path: Path, texts: Texts, start: Location | None = None, end: Location | None = None) -> dict[str, Any]:
    name = relative(path)
    inside = not name.startswith("/") and ":" not in name[:3]
    artifact = {"uri": quote(name), "uriBaseId": "%SRCROOT%"} if inside else {"uri": path.as_uri()}
    found: dict[str, Any] = {"artifactLocation": artifact}
    if start is not None:
        found["region"] = _region(path, texts, start, end)
    return found


def _region(path: Path, texts: Texts, start: Location, end: Location | None) -> dict[str, int]:
    region = {"startLine": start.row, "startColumn": texts.utf16_column(path, start)}
    if end is not None:
        region |= {"endLine": end.row, "endColumn": texts.utf16_column(path, end)}
    return region
