"""Rewrites that insert or take away whole statements and arguments, as text."""

from __future__ import annotations

import ast
import re
import sys

import libcst as cst

from cachelint.flow.events import Event, Overridden, SharedDefault
from cachelint.flow.spans import Span
from cachelint.rule import Rewrite
from cachelint.sources import Source


def statement_of(event: Event) -> cst.SimpleStatementLine | None:
    """The simple statement that an event's node is part of, where that stands on lines of its own."""
    node: cst.CSTNode | None = event.node
    while node is not None and not isinstance(node, cst.SimpleStatementLine):
        if isinstance(node, (cst.Lambda, cst.ListComp, cst.GeneratorExp, cst.SetComp, cst.DictComp, cst.IfExp)):
            return None
        node = event.unit.parent(node)
    return node


def before_statement(event: Event, text: str, message: str) -> Rewrite | None:
    """A statement put on a line before that of the event; None where there is no such line."""
    line = statement_of(event)
    if line is None:
        return None
    unit = event.unit
    row = unit.span(line).row
    indent = _indent(unit.module.source.lines[row - 1])
    place = Span(row, len(indent), row, len(indent))
    return Rewrite("unsafe", message, ((place, f"{text}{unit.module.source.newline}{indent}"),))


def without_argument(event: Event, name: str) -> Rewrite | None:
    """The call of the event without one of its keyword arguments."""
    call = event.node
    if not isinstance(call, cst.Call):
        return None
    index = next((i for i, a in enumerate(call.args) if a.keyword is not None and a.keyword.value == name), None)
    if index is None or len(call.args) < 2:
        return None
    own = event.unit.span(call.args[index])
    if index:
        before = event.unit.span(call.args[index - 1].value)
        comma = "," if isinstance(call.args[index].comma, cst.Comma) and index < len(call.args) - 1 else ""
        span, text = Span(before.end_row, before.end_column, own.end_row, own.end_column + len(comma)), comma
    else:
        after = event.unit.span(call.args[1])
        span, text = Span(own.row, own.column, after.row, after.column), ""
    return Rewrite("unsafe", f"Take `{name}=` away", ((span, text),))


def none_default(event: SharedDefault) -> Rewrite | None:
    """The default of a parameter made None, and the cache made at the beginning of the body."""
    unit = event.unit
    node: cst.CSTNode | None = event.node
    while node is not None and not isinstance(node, cst.FunctionDef):
        node = unit.parent(node)
    if node is None or not isinstance(node.body, cst.IndentedBlock):
        return None
    body = list(node.body.body)
    first = body[0]
    documented = isinstance(first, cst.SimpleStatementLine) and re.match(r"[rRuU]?([\"'])", unit.text(first).lstrip())
    if documented:
        if len(body) == 1:
            return None
        first = body[1]
    row = unit.span(first).row
    lines = unit.module.source.lines
    written = lines[row - 1]
    indent = _indent(written)
    if written.lstrip().startswith("@"):
        return None
    step = indent[len(_indent(lines[unit.span(node).row - 1])) :] or "    "
    newline = unit.module.source.newline
    made = unit.text(event.node)
    text = f"if {event.name} is None:{newline}{indent}{step}{event.name} = {made}{newline}{indent}"
    place = Span(row, len(indent), row, len(indent))
    edits = ((unit.span(event.node), "None"), (place, text))
    return Rewrite("safe", "Make the cache in the body", edits)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def open_parameters(event: Overridden) -> Rewrite | None:
    """`**kwargs` added to the parameters of a method."""
    unit = event.unit
    node = unit.parent(event.node)
    if not isinstance(node, cst.FunctionDef):
        return None
    params = node.params
    last = [*params.posonly_params, *params.params, *params.kwonly_params]
    if isinstance(params.star_arg, cst.Param) and not params.kwonly_params:
        last.append(params.star_arg)
    param = last[-1]
    typed = param.annotation.annotation if param.annotation is not None else param.name
    end = unit.span(param.default or typed)
    place = Span(end.end_row, end.end_column, end.end_row, end.end_column)
    star = [params.star_arg] if isinstance(params.star_arg, cst.Param) else []
    taken = {p.name.value for p in (*params.posonly_params, *params.params, *params.kwonly_params, *star)}
    name = next(name for name in ("kwargs", "options", "_kwargs") if name not in taken)
    return Rewrite("safe", "Take what else is passed", ((place, f", **{name}"),))


def importing(source: Source, module: str) -> tuple[tuple[Span, str], ...] | None:
    """The edit that adds `import module` of the standard library, where isort and ruff would put it.

    No edit where it is imported already; None where its name means something else.
    """
    tree = ast.parse(source.text)
    if re.search(rf"(?m)^import\s+(?:[\w., ]+,\s*)?{module}\s*(?:$|[,#])", source.text):
        return ()
    if re.search(rf"(?m)\b{module}\s*(?:[:,]?=|,)(?!=)|\bimport\b.*\b{module}\b|\bdef\s+{module}\b", source.text):
        return None
    body = tree.body
    at = 1 if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) else 0
    while at < len(body) and isinstance(body[at], ast.ImportFrom) and body[at].module == "__future__":  # type: ignore[attr-defined]
        at += 1
    newline = source.newline
    section: list[ast.Import | ast.ImportFrom] = []
    for node in body[at:]:
        if not isinstance(node, (ast.Import, ast.ImportFrom)) or not _is_standard(node):
            break
        section.append(node)
    if not section:
        following = body[at].lineno if at < len(body) else len(source.lines) + 1
        end = newline if at < len(body) and isinstance(body[at], (ast.Import, ast.ImportFrom)) else newline * 2
        place = Span(following, 0, following, 0)
        return ((place, f"import {module}{newline}{end}"),)
    later = next((n for n in section if isinstance(n, ast.ImportFrom) or n.names[0].name > module), None)
    row = later.lineno if later is not None else (section[-1].end_lineno or section[-1].lineno) + 1
    return ((Span(row, 0, row, 0), f"import {module}{newline}"),)


def _is_standard(node: ast.Import | ast.ImportFrom) -> bool:
    name = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
    return bool(name) and (name or "").partition(".")[0] in sys.stdlib_module_names
