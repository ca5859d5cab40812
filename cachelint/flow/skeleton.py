"""The skeleton of a module: its imports, classes, functions and global names, with their lines.

It is read with `ast`, which is fast, so that libcst has to read only what matters.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from cachelint.sources import SourceError


@dataclass(slots=True)
class FunctionSkeleton:
    """A function: its lines with the decorators, and the functions and classes directly inside it."""

    name: str
    start: int
    end: int
    decorators: tuple[str, ...]
    inner: list[FunctionSkeleton] = field(default_factory=list)


@dataclass(slots=True)
class ClassSkeleton:
    """A class: its bases as dotted names, its methods, and the lines of its own assignments by name."""

    name: str
    start: int
    end: int
    bases: tuple[str, ...]
    decorators: tuple[str, ...]
    methods: dict[str, FunctionSkeleton] = field(default_factory=dict)
    fields: dict[str, tuple[int, int]] = field(default_factory=dict)
    classes: dict[str, ClassSkeleton] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ImportSkeleton:
    """What an import binds: `name` of `module` (None: the module itself), `level` dots in front."""

    module: str
    name: str | None
    level: int


Binding = ImportSkeleton | FunctionSkeleton | ClassSkeleton | tuple[int, int]


@dataclass(slots=True)
class Skeleton:
    """A module: each global name with everything that binds it, star imports, and its statements' lines."""

    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    stars: list[ImportSkeleton] = field(default_factory=list)
    functions: list[FunctionSkeleton] = field(default_factory=list)
    classes: list[ClassSkeleton] = field(default_factory=list)
    statements: list[tuple[int, int, Binding | None]] = field(default_factory=list)


def parse(text: str) -> ast.Module:
    """The syntax tree of a module's text.

    Raises:
        SourceError: the text is no Python that this interpreter can parse, or nests too deep.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        column = (error.offset or 1) if (error.offset or 0) > 0 else 1
        raise SourceError(f"syntax error: {error.msg}", error.lineno or 1, column) from None
    except (RecursionError, MemoryError):
        raise SourceError("the code nests too deep to be read") from None
    except ValueError as error:
        raise SourceError(str(error)) from None


def read_skeleton(text: str) -> Skeleton:
    """The skeleton of a module's text. Raises SourceError, as `parse` does."""
    skeleton = Skeleton()
    for statement in parse(text).body:
        bound = _read_statement(statement, skeleton)
        skeleton.statements.append((_start(statement), statement.end_lineno or statement.lineno, bound))
    return skeleton


def dotted(node: ast.expr) -> str:
    """`a.b.c` of a name, attribute, call or subscript of one; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    if isinstance(node, ast.Call):
        return dotted(node.func)
    if isinstance(node, ast.Subscript):
        return dotted(node.value)
    return ""


def _start(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in decorators)])


def _read_statement(node: ast.stmt, skeleton: Skeleton) -> Binding | None:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        function = _function(node)
        skeleton.functions.append(function)
        skeleton.bindings.setdefault(node.name, []).append(function)
        return function
    if isinstance(node, ast.ClassDef):
        cls = _class(node)
        skeleton.classes.append(cls)
        skeleton.bindings.setdefault(node.name, []).append(cls)
        return cls
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        _read_import(node, skeleton)
        return None
    for name in _assigned(node):
        lines = (node.lineno, node.end_lineno or node.lineno)
        skeleton.bindings.setdefault(name, []).append(lines)
    for inner in _bodies(node):
        _read_statement(inner, skeleton)
    return None


def _read_import(node: ast.Import | ast.ImportFrom, skeleton: Skeleton) -> None:
    for alias in node.names:
        if isinstance(node, ast.Import):
            module = alias.name if alias.asname else alias.name.split(".")[0]
            bound = ImportSkeleton(module, None, 0)
            skeleton.bindings.setdefault(alias.asname or module, []).append(bound)
        elif alias.name == "*":
            skeleton.stars.append(ImportSkeleton(node.module or "", None, node.level))
        else:
            bound = ImportSkeleton(node.module or "", alias.name, node.level)
            skeleton.bindings.setdefault(alias.asname or alias.name, []).append(bound)


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> FunctionSkeleton:
    decorators = tuple(dotted(d) for d in node.decorator_list)
    found = FunctionSkeleton(node.name, _start(node), node.end_lineno or node.lineno, decorators)
    found.inner = [_function(n) for n in _inner_functions(node.body)]
    return found


def _inner_functions(body: Sequence[ast.stmt]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node
        elif isinstance(node, ast.ClassDef):
            yield from _inner_functions(node.body)
        else:
            yield from _inner_functions(list(_bodies(node)))


def _class(node: ast.ClassDef) -> ClassSkeleton:
    bases = tuple(dotted(base) for base in node.bases)
    decorators = tuple(dotted(d) for d in node.decorator_list)
    found = ClassSkeleton(node.name, _start(node), node.end_lineno or node.lineno, bases, decorators)
    _read_class_body(node.body, found)
    return found


def _read_class_body(body: Sequence[ast.stmt], found: ClassSkeleton) -> None:
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            method = _function(node)
            # A property's setter comes after its getter; the getter is what a read calls.
            if not any(d.endswith((".setter", ".deleter", "overload")) for d in method.decorators):
                found.methods[node.name] = method
        elif isinstance(node, ast.ClassDef):
            found.classes[node.name] = _class(node)
        else:
            for name in _assigned(node):
                found.fields[name] = (node.lineno, node.end_lineno or node.lineno)
            _read_class_body(list(_bodies(node)), found)


def _bodies(node: ast.stmt) -> Iterator[ast.stmt]:
    for name in ("body", "orelse", "finalbody"):
        yield from getattr(node, name, ())
    for handler in getattr(node, "handlers", ()):
        yield from handler.body
    for case in getattr(node, "cases", ()):
        yield from case.body


def _assigned(node: ast.stmt) -> Iterator[str]:
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = list(node.targets)
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.For, ast.AsyncFor)):
        targets = [node.target]
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        targets = [item.optional_vars for item in node.items if item.optional_vars]
    while targets:
        target = targets.pop()
        if isinstance(target, ast.Name):
            yield target.id
        elif isinstance(target, (ast.Tuple, ast.List)):
            targets.extend(target.elts)
        elif isinstance(target, ast.Starred):
            targets.append(target.value)
