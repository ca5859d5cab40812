"""The project as the flow sees it: modules, their classes and functions, and what a name means in them.

A file is read only when a flow leads to it. Imports are resolved to files by astroid's module finder over the
project's own roots; nothing is imported, and what is installed beside the project stays a library name.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import libcst as cst

from cachelint.flow.naming import (
    class_bears_a_cache,
    makes_tracked,
    speaks_of_caches,
    speaks_of_transformers,
    touches_tracked,
    used_as_cache,
)
from cachelint.flow.skeleton import (
    ClassSkeleton,
    FunctionSkeleton,
    ImportSkeleton,
    Skeleton,
    read_skeleton,
)
from cachelint.flow.units import Unit
from cachelint.sources import Source, SourceError, decode

# A package that re-exports more modules than this by stars is not searched for a name.
MAX_STARS = 24
_GLOBAL = re.compile(r"^\s+global\s+([\w, ]+)", re.MULTILINE)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*(?=\s*\()")


class Module:
    """One file of the project."""

    def __init__(self, project: Project, source: Source, skeleton: Skeleton) -> None:
        self.project = project
        self.source = source
        self.skeleton = skeleton
        self._units: dict[tuple[int, int], Unit] = {}
        self._functions: dict[int, Function] = {}
        self._classes: dict[int, Class] = {}
        self._names: dict[Callable[[str], bool], frozenset[str]] = {}

    @property
    def path(self) -> Path:
        """The absolute path of the file."""
        return self.source.path

    def unit(self, start: int, end: int) -> Unit:
        """The parsed lines `start` to `end`. Raises libcst.ParserSyntaxError."""
        if (start, end) not in self._units:
            self._units[start, end] = Unit(self, start, end)
        return self._units[start, end]

    def text(self, start: int, end: int) -> str:
        """The lines `start` to `end`."""
        return "".join(self.source.lines[start - 1 : end])

    def forget_trees(self) -> None:
        """Let go of the parsed slices, and of the functions and classes that hold them."""
        self._units.clear()
        self._functions.clear()
        self._classes.clear()

    def function(self, skeleton: FunctionSkeleton, cls: Class | None = None) -> Function:
        """The function that starts where `skeleton` does."""
        if skeleton.start not in self._functions:
            self._functions[skeleton.start] = Function(self, skeleton, cls)
        return self._functions[skeleton.start]

    def cls(self, skeleton: ClassSkeleton) -> Class:
        """The class that starts where `skeleton` does."""
        if skeleton.start not in self._classes:
            self._classes[skeleton.start] = Class(self, skeleton)
        return self._classes[skeleton.start]

    def roots(self) -> Iterator[Function]:
        """All functions and methods that are not inside another function."""
        for function in self.skeleton.functions:
            yield self.function(function)
        pending = list(self.skeleton.classes)
        while pending:
            skeleton = pending.pop(0)
            cls = self.cls(skeleton)
            for method in skeleton.methods.values():
                yield self.function(method, cls)
            pending.extend(skeleton.classes.values())

    def has_cache_with(self, name: str) -> bool:
        """Whether the module has a class of its own, called a cache, that sets or defines a member of this name."""
        return any(
            "cache" in skeleton.name.lower() and self.cls(skeleton).defines(name) for skeleton in self.skeleton.classes
        )

    def declares_global(self, name: str) -> bool:
        """Whether some function of the module may store to its global `name`."""
        return name in self._declared_globals

    @cached_property
    def _declared_globals(self) -> frozenset[str]:
        found: set[str] = set()
        for names in _GLOBAL.findall(self.source.text):
            found.update(name.strip() for name in names.split(","))
        return frozenset(found)

    @cached_property
    def may_hold_caches(self) -> bool:
        """Whether the module speaks of caches, or imports a module of the project that speaks of the library."""
        return speaks_of_caches(self.source.text) or any(
            self.project.speaks_of_transformers(path) for path in self._imported_files()
        )

    def _imported_files(self) -> Iterator[Path]:
        imports = [b for bounds in self.skeleton.bindings.values() for b in bounds if isinstance(b, ImportSkeleton)]
        for bound in (*imports, *self.skeleton.stars):
            path = self.project.find(self, bound.module, bound.level)
            if path is not None:
                yield path

    def names_that(self, quality: Callable[[str], bool]) -> frozenset[str]:
        """The names of the module's functions of a quality, and of those that name one of them, and so on."""
        if quality not in self._names:
            texts = {function: function.text for function in self.roots()}
            found = {function.name for function, text in texts.items() if quality(text)}
            mentions = {function.name: set(_IDENTIFIER.findall(text)) for function, text in texts.items()}
            while True:
                more = {name for name, said in mentions.items() if name not in found and said & found}
                if not more:
                    break
                found |= more
            self._names[quality] = frozenset(found)
        return self._names[quality]

    @cached_property
    def search_roots(self) -> list[str]:
        """The folders in which an absolute import of this file is looked up, nearest first."""
        folder = self.path.parent
        found = [folder]
        while (folder / "__init__.py").exists() and folder.parent != folder:
            folder = folder.parent
        found.append(folder)
        for parent in list(folder.parents)[:3]:
            if any((parent / name).exists() for name in ("pyproject.toml", "setup.py", "setup.cfg", ".git")):
                found += [parent, parent / "src"]
                break
        return list(dict.fromkeys(str(path) for path in found if path.is_dir()))


class Class:
    """A class of the project; its ancestry is found lazily, across modules."""

    def __init__(self, module: Module, skeleton: ClassSkeleton) -> None:
        self.module = module
        self.skeleton = skeleton
        self.name = skeleton.name

    @cached_property
    def ancestry(self) -> tuple[list[Class], list[str]]:
        """The project's classes from this one upward, and the library names that they derive from."""
        classes: list[Class] = []
        libraries: list[str] = []
        pending: list[Class] = [self]
        while pending:
            cls = pending.pop(0)
            if cls in classes:
                continue
            classes.append(cls)
            for base in cls.skeleton.bases:
                for found in cls.module.project.resolve(cls.module, base):
                    if isinstance(found, Class):
                        pending.append(found)
                    elif isinstance(found, str):
                        libraries.append(found)
        return classes, libraries

    @cached_property
    def used_as_cache(self) -> frozenset[str]:
        """The attributes (`self.x`) that some use in the class gives away as KV caches."""
        text = self.module.text(self.skeleton.start, self.skeleton.end)
        return frozenset(path for path in used_as_cache(text) if path.startswith("self."))

    @cached_property
    def bears_a_cache(self) -> bool:
        """Whether the class makes, annotates or uses what can be one of the library's caches."""
        return class_bears_a_cache(self.module.text(self.skeleton.start, self.skeleton.end))

    def method(self, name: str, *, above: Class | None = None) -> Function | None:
        """The method that `name` finds, from the class after `above` on where that is given."""
        classes = self.ancestry[0]
        if above in classes:
            classes = classes[classes.index(above) + 1 :]
        for cls in classes:
            if name in cls.skeleton.methods:
                return cls.module.function(cls.skeleton.methods[name], cls)
        return None

    def defines(self, name: str) -> bool:
        """Whether the class, or one of the project that it derives from, has a member of its own of this name."""
        if self.method(name) is not None or self.field(name) is not None:
            return True
        stores = re.compile(rf"\bself\.{re.escape(name)}\b\s*(?:=(?!=)|:)")
        return any(
            stores.search(cls.module.text(cls.skeleton.start, cls.skeleton.end)) is not None for cls in self.ancestry[0]
        )

    def field(self, name: str) -> tuple[Class, tuple[int, int]] | None:
        """The class that assigns `name` in its body, and on which lines."""
        for cls in self.ancestry[0]:
            if name in cls.skeleton.fields:
                return cls, cls.skeleton.fields[name]
        return None


class Function:
    """A function or method of the project, parsed by libcst when it is first needed."""

    def __init__(self, module: Module, skeleton: FunctionSkeleton, cls: Class | None) -> None:
        self.module = module
        self.skeleton = skeleton
        self.cls = cls
        self.name = skeleton.name

    @property
    def text(self) -> str:
        """The source of the whole function, decorators included."""
        return self.module.text(self.skeleton.start, self.skeleton.end)

    @cached_property
    def definition(self) -> tuple[Unit, cst.FunctionDef]:
        """The parsed function. Raises libcst.ParserSyntaxError."""
        unit = self.module.unit(self.skeleton.start, self.skeleton.end)
        node = next(n for n in unit.body if isinstance(n, cst.FunctionDef))
        return unit, node

    @cached_property
    def used_as_cache(self) -> frozenset[str]:
        """The dotted names that some use in the function gives away as KV caches."""
        return used_as_cache(self.text)

    @cached_property
    def makes_tracked(self) -> bool:
        """Whether the function, or one of its module that it names, may bring something tracked into being."""
        return self.name in self.module.names_that(makes_tracked) or makes_tracked(self.text)

    @property
    def is_short(self) -> bool:
        """Whether looking at the body costs next to nothing."""
        return self.skeleton.end - self.skeleton.start < 6

    @cached_property
    def touches_tracked(self) -> bool:
        """Whether the function, or one of its module that it names, may do something to a cache on an object."""
        return self.name in self.module.names_that(touches_tracked) or touches_tracked(self.text)

    @cached_property
    def takes_arguments(self) -> bool:
        """Whether a caller passes anything beside the receiver."""
        try:
            params = self.definition[1].params
        except cst.ParserSyntaxError:
            return False
        own = 0 if self.cls is None or self.is_static else 1
        starred = isinstance(params.star_arg, cst.Param) or params.star_kwarg is not None
        return starred or len(params.posonly_params) + len(params.params) + len(params.kwonly_params) > own

    @property
    def is_static(self) -> bool:
        """Whether a call through an instance passes no receiver."""
        return "staticmethod" in self.skeleton.decorators

    @property
    def is_class_method(self) -> bool:
        """Whether the receiver is the class."""
        return "classmethod" in self.skeleton.decorators

    @property
    def is_property(self) -> bool:
        """Whether reading the attribute calls the function."""
        return any(d.split(".")[-1] in ("property", "cached_property") for d in self.skeleton.decorators)


class LocalFunction(Function):
    """A function inside a function: its tree is part of the outer one's."""

    def __init__(self, unit: Unit, node: cst.FunctionDef | cst.Lambda, name: str, cls: Class | None) -> None:
        skeleton = FunctionSkeleton(name, 0, 0, ())
        super().__init__(unit.module, skeleton, cls)
        self.unit = unit
        self.node = node

    @property
    def text(self) -> str:
        """The source of the function."""
        return self.unit.text(self.node)


Resolved = Module | Function | Class | str | tuple[Module, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Hints:
    """What a user tells of the project: more names of caches, classes that are caches, calls that change none."""

    names: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    trusted: frozenset[str] = frozenset()


class Project:
    """The files that one run may look into; `sources` stand in place of what is on the disk."""

    def __init__(self, sources: Mapping[Path, Source] | None = None, hints: Hints | None = None) -> None:
        self.hints = hints or Hints()
        self._sources = dict(sources or {})
        self._modules: dict[Path, Module | None] = {}
        self._new: set[Path] = set()
        self._speaking: dict[Path, bool] = {}
        self._found: dict[tuple[str, tuple[str, ...]], Path | None] = {}
        self._resolving: set[tuple[Path, str]] = set()
        self._resolved: dict[tuple[Path, str], list[Resolved]] = {}

    def add(self, source: Source) -> Module:
        """The module of a source that is already read. Raises SourceError where it cannot be parsed."""
        module = Module(self, source, read_skeleton(source.text))
        self._modules[source.path] = module
        return module

    def loaded(self) -> frozenset[Path]:
        """The files that were read since this was asked last."""
        found, self._new = frozenset(self._new), set()
        return found

    def forget_trees(self) -> None:
        """Let go of all that was parsed by libcst; what the modules bind stays known."""
        self._resolved.clear()
        for module in self._modules.values():
            if module is not None:
                module.forget_trees()

    def load(self, path: Path) -> Module | None:
        """The module in the file `path`, None where that cannot be read."""
        if path not in self._modules:
            self._modules[path] = None
            self._new.add(path)
            try:
                self.add(self._sources.get(path) or decode(path, path.read_bytes()))
            except (SourceError, OSError):
                return None
        return self._modules[path]

    def resolve(self, module: Module, name: str) -> list[Resolved]:
        """What the dotted `name` can mean at the top of `module`: one thing for each way it is bound.

        A module, function or class of the project, the lines of an assignment, or the name of a library's thing.
        """
        key = (module.path, name)
        if key in self._resolved:
            return self._resolved[key]
        if key in self._resolving:
            return []
        outermost = not self._resolving
        self._resolving.add(key)
        try:
            found = self._resolve(module, name)
        finally:
            self._resolving.discard(key)
        if outermost:
            # Inside a cycle of imports the answer can be only a part of the truth.
            self._resolved[key] = found
        return found

    def _resolve(self, module: Module, name: str) -> list[Resolved]:
        first, _, rest = name.partition(".")
        found: list[Resolved] = []
        for bound in module.skeleton.bindings.get(first, ()):
            found.extend(self._bound(module, bound))
        # What a star brings in is only guessed at for a library; that it hides a builtin is not among the guesses.
        if not found and len(module.skeleton.stars) <= MAX_STARS and not hasattr(builtins, first):
            for star in module.skeleton.stars:
                found.extend(self._import(module, ImportSkeleton(star.module, first, star.level), star=True))
        for part in rest.split(".") if rest else ():
            found = [deeper for thing in found for deeper in self.member(thing, part)]
        return found

    def speaks_of_transformers(self, path: Path) -> bool:
        """Whether the file at `path` speaks of the library; it is not parsed for that."""
        if path not in self._speaking:
            try:
                self._speaking[path] = speaks_of_transformers(path.read_bytes())
            except OSError:
                self._speaking[path] = False
        return self._speaking[path]

    def imported(self, module: Module, source: str, name: str | None, level: int) -> list[Resolved]:
        """What an import statement inside a function binds."""
        return self._import(module, ImportSkeleton(source, name, level))

    def member(self, thing: Resolved, name: str) -> list[Resolved]:
        """What `thing.name` means."""
        if isinstance(thing, str):
            return [f"{thing}.{name}"]
        if isinstance(thing, Module):
            return self.resolve(thing, name) or self._submodule(thing, name)
        if isinstance(thing, Class) and name in thing.skeleton.classes:
            return [thing.module.cls(thing.skeleton.classes[name])]
        if isinstance(thing, Class):
            method = thing.method(name)
            return [method] if method else []
        return []

    def _bound(self, module: Module, bound: object) -> list[Resolved]:
        if isinstance(bound, ImportSkeleton):
            return self._import(module, bound)
        if isinstance(bound, FunctionSkeleton):
            return [module.function(bound)]
        if isinstance(bound, ClassSkeleton):
            return [module.cls(bound)]
        assert isinstance(bound, tuple)
        return [(module, bound)]

    def _import(self, module: Module, bound: ImportSkeleton, *, star: bool = False) -> list[Resolved]:
        path = self.find(module, bound.module, bound.level)
        if path is not None and path.parts[-2:] == ("transformers", "cache_utils.py"):
            # The library's own sources: its classes are what the contract speaks of.
            return [f"transformers.{bound.name}" if bound.name else "transformers.cache_utils"]
        target = self.load(path) if path else None
        if bound.name is not None and f"{bound.module}.{bound.name}" in self.hints.types:
            return ["transformers.DynamicCache"]
        if target is None:
            if bound.level or (star and not bound.module.startswith("transformers")):
                return []
            return [f"{bound.module}.{bound.name}" if bound.name else bound.module]
        if bound.name is None:
            return [target]
        if target is not module or bound.level == 0:
            found = self.resolve(target, bound.name)
            if found:
                return found
        return self._submodule(target, bound.name)

    def _submodule(self, package: Module, name: str) -> list[Resolved]:
        if package.path.name != "__init__.py":
            return []
        for path in (package.path.parent / f"{name}.py", package.path.parent / name / "__init__.py"):
            if path.is_file():
                module = self.load(path)
                return [module] if module else []
        return []

    def find(self, module: Module, name: str, level: int) -> Path | None:
        """The file of the module that an import names, None where it is not the project's."""
        if level:
            folder = module.path.parent
            for _ in range(level - 1):
                folder = folder.parent
            if not name:
                init = folder / "__init__.py"
                return init if init.is_file() else None
            roots: tuple[str, ...] = (str(folder),)
        else:
            roots = tuple(module.search_roots)
        key = (name, roots)
        if key not in self._found:
            first = name.partition(".")[0]
            here = any(Path(root, first).is_dir() or Path(root, f"{first}.py").is_file() for root in roots)
            self._found[key] = _find_file(name, roots) if here else None
        return self._found[key]


def _find_file(name: str, roots: tuple[str, ...]) -> Path | None:
    from astroid import modutils

    try:
        spec = modutils.file_info_from_modpath(name.split("."), path=list(roots))
    except (ImportError, OSError, ValueError):
        return None
    if spec.location is None or not spec.location.endswith(".py"):
        init = Path(spec.location or "", "__init__.py")
        return init if spec.location and init.is_file() else None
    return Path(spec.location)
