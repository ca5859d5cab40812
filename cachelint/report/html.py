"""One page of HTML, complete in itself, for people who read reports in a browser."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape
from itertools import groupby

from cachelint.diagnostics import Diagnostic
from cachelint.report.places import Texts, relative

_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#222;background:#fff}"
    "code,pre{font:13px/1.5 ui-monospace,monospace;background:#f4f4f4;padding:.1em .3em}"
    "pre{padding:.6em;overflow-x:auto}.error{color:#a40000}.warning{color:#8a5a00}"
    "table{border-collapse:collapse}td,th{padding:.2em .8em;text-align:left;border-bottom:1px solid #ddd}"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#161616}code,pre{background:#262626}"
    ".error{color:#ff8a80}.warning{color:#ffd180}td,th{border-color:#444}}"
)


def render(diagnostics: Sequence[Diagnostic]) -> str:
    """The page: counts by rule, then each file's findings with their releases and evidence."""
    counts = Counter((each.code, each.name) for each in diagnostics)
    rows = "".join(f"<tr><td>{code}<td>{escape(name)}<td>{n}" for (code, name), n in sorted(counts.items()))
    texts = Texts()
    parts = []
    for path, group in groupby(diagnostics, key=lambda each: each.path):
        parts.append(f"<h2><code>{escape(relative(path))}</code></h2>")
        parts += [_finding(each, texts) for each in group]
    body = "".join(parts) or "<p>No findings.</p>"
    table = f"<table><tr><th>code<th>rule<th>findings{rows}</table>" if rows else ""
    count = f"{len(diagnostics)} {'finding' if len(diagnostics) == 1 else 'findings'}"
    return page(f"cachelint: {count}", f"{table}\n{body}")


def page(title: str, body: str) -> str:
    """A whole page around a body."""
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style>\n<h1>{escape(title)}</h1>\n{body}\n</html>\n"
    )


def _finding(each: Diagnostic, texts: Texts) -> str:
    place = f"{each.location.row}:{each.location.column}"
    effects = "".join(f"<tr><td>{escape(r.range)}<td>{escape(r.effect)}<td>{escape(r.detail)}" for r in each.releases)
    steps = "".join(
        f"<li><code>{escape(relative(s.path))}:{s.location.row}</code> {escape(s.message)}" for s in each.flow
    )
    fix = f"<p>{escape(each.fix.message)} ({each.fix.applicability})</p>" if each.fix is not None else ""
    return (
        f'<section><h3 class="{each.severity}">{place} {each.code} {escape(each.message)}</h3>'
        f"<pre>{escape(texts.line(each.path, each.location.row))}</pre>"
        f"<table>{effects}</table><ol>{steps}</ol>{fix}</section>\n"
    )
