"""Settings: what `[tool.cachelint]` and the command line say."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FORMATS = (
    "full", "concise", "grouped", "json", "json-lines", "sarif", "github", "gitlab", "junit", "rdjson", "html",
)  # fmt: skip
DEFAULT_EXCLUDE = (
    ".bzr", ".direnv", ".eggs", ".git", ".git-rewrite", ".hg", ".ipynb_checkpoints", ".mypy_cache", ".nox",
    ".pants.d", ".pyenv", ".pytest_cache", ".pytype", ".ruff_cache", ".svn", ".tox", ".venv", ".vscode",
    "__pypackages__", "__pycache__", "_build", "buck-out", "build", "dist", "node_modules", "site-packages", "venv",
)  # fmt: skip
_FILES = ("cachelint.toml", ".cachelint.toml", "pyproject.toml")


class ConfigError(Exception):
    """A configuration that cannot be used: which file, which key, and what is allowed."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a run is to do.

    transformers: the release range as the user wrote it, None to infer it. select, ignore, extend_select: rule
    codes or their beginnings. exclude, extend_exclude, include: gitignore patterns. fixable, unfixable: codes of
    rules whose fixes are applied. cache_names: more names that are taken for KV caches; cache_types: dotted names of
    classes that behave as `DynamicCache`; trusted_calls: names of functions that leave a cache as it is.
    cache_dir: where results are kept. per_file_ignores: such a pattern, and the codes that it ignores. source: the
    file it came from.
    """

    transformers: str | None = None
    select: tuple[str, ...] = ("KV",)
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    exclude: tuple[str, ...] = DEFAULT_EXCLUDE
    extend_exclude: tuple[str, ...] = ()
    include: tuple[str, ...] = ("*.py", "*.pyi", "*.ipynb")
    fixable: tuple[str, ...] = ("ALL",)
    unfixable: tuple[str, ...] = ()
    cache_names: tuple[str, ...] = ()
    cache_types: tuple[str, ...] = ()
    trusted_calls: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    respect_gitignore: bool = True
    cache_dir: str = ".cachelint_cache"
    unsafe_fixes: bool = False
    output_format: str = "full"
    source: Path | None = None

    def enables(self, code: str) -> bool:
        """Whether a rule runs: the longest of the selecting and ignoring prefixes that fit its code decides."""
        chosen = max((len(p) for p in (*self.select, *self.extend_select) if _fits(code, p)), default=-1)
        dropped = max((len(p) for p in self.ignore if _fits(code, p)), default=-1)
        return chosen > dropped

    def asks_for(self, code: str) -> bool:
        """Whether a rule is selected by its whole code, and not only among others."""
        return code in (*self.select, *self.extend_select)

    def fixes(self, code: str) -> bool:
        """Whether a rule's fixes may be applied."""
        chosen = max((len(p) for p in self.fixable if _fits(code, p)), default=-1)
        return chosen > max((len(p) for p in self.unfixable if _fits(code, p)), default=-1)


def _fits(code: str, prefix: str) -> bool:
    return prefix == "ALL" or (bool(prefix) and code.startswith(prefix))


def load_settings(start: Path, config: Path | None = None, *, isolated: bool = False) -> Settings:
    """The settings for files below `start`: from `config`, else from the nearest file that has any.

    Raises:
        ConfigError: the file cannot be read, is no TOML, or has an unknown or wrongly typed key.
    """
    if isolated:
        return Settings()
    if config is not None:
        return _read(config, required=True) or Settings()
    start = start if start.is_dir() else start.parent
    for folder in (start, *start.parents):
        for name in _FILES:
            path = folder / name
            if path.is_file():
                found = _read(path, required=False)
                if found is not None:
                    return found
    return Settings()


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file. Raises ConfigError with the file and the place."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is no valid UTF-8: {error.reason}") from None
    return parse_toml(text, str(path))


def parse_toml(text: str, place: str) -> dict[str, Any]:
    """The content of TOML text. Raises ConfigError with `place` and what is wrong."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{place}: is no valid TOML: {error}") from None


def _read(path: Path, *, required: bool) -> Settings | None:
    data = read_toml(path)
    if path.name == "pyproject.toml":
        tool = data.get("tool", {})
        table = tool.get("cachelint") if isinstance(tool, Mapping) else None
    else:
        table = data
    if table is None:
        return Settings(source=path) if required else None
    if not isinstance(table, Mapping):
        raise ConfigError(f"{path}: `tool.cachelint` must be a table")
    return _from_table(path, table, ())


def _from_table(path: Path, table: Mapping[str, Any], seen: tuple[Path, ...]) -> Settings:
    base = Settings()
    if "extend" in table:
        base = _extended(path, table["extend"], (*seen, path))
    known = {field.name.replace("_", "-"): field for field in fields(Settings) if field.name != "source"}
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key == "extend":
            continue
        if key not in known:
            near = difflib.get_close_matches(key, (*known, "extend"), 1)
            hint = f"did you mean `{near[0]}`?" if near else f"known keys are {', '.join(sorted(known))}"
            raise ConfigError(f"{path}: unknown key `{key}` in `tool.cachelint`; {hint}")
        values[known[key].name] = _typed(path, key, value, str(known[key].type))
    return replace(base, **values, source=path)


def _extended(path: Path, value: Any, seen: tuple[Path, ...]) -> Settings:
    """The settings of the file that another one extends."""
    if not isinstance(value, str):
        raise ConfigError(f"{path}: `extend` must be a string, not {value!r}")
    other = (path.parent / Path(value).expanduser()).resolve()
    if other in [each.resolve() for each in seen]:
        raise ConfigError(f"{path}: `extend` leads in a circle, by {other}")
    data = read_toml(other)
    table = data.get("tool", {}).get("cachelint", {}) if other.name == "pyproject.toml" else data
    if not isinstance(table, Mapping):
        raise ConfigError(f"{other}: `tool.cachelint` must be a table")
    return _from_table(other, table, seen)


def _keys() -> dict[str, str]:
    return {field.name.replace("_", "-"): str(field.type) for field in fields(Settings) if field.name != "source"}


def as_table(settings: Settings) -> str:
    """The settings as the TOML that would give them, with the file that they came from."""
    lines = [f"# from {settings.source or 'the defaults and the command line'}", "[tool.cachelint]"]
    for key in _keys():
        value = getattr(settings, key.replace("-", "_"))
        if key == "per-file-ignores":
            inner = ", ".join(f"{json.dumps(pattern)} = {json.dumps(list(codes))}" for pattern, codes in value)
            lines.append(f"{key} = {{ {inner} }}" if inner else f"{key} = {{}}")
        elif value is None:
            lines.append(f"# {key} is not set")
        else:
            lines.append(f"{key} = {json.dumps(list(value) if isinstance(value, tuple) else value)}")
    return "\n".join(lines) + "\n"


def schema() -> dict[str, Any]:
    """The JSON schema of the table, by which editors complete and check it."""
    texts: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
    properties: dict[str, Any] = {"extend": {"type": "string"}}
    for key, kind in _keys().items():
        if kind.startswith("tuple[tuple"):
            properties[key] = {"type": "object", "additionalProperties": texts}
        elif kind.startswith("tuple"):
            properties[key] = texts
        elif kind == "bool":
            properties[key] = {"type": "boolean"}
        elif key == "output-format":
            properties[key] = {"enum": list(FORMATS)}
        else:
            properties[key] = {"type": "string"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "cachelint",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }


def _typed(path: Path, key: str, value: Any, kind: str) -> Any:
    if kind.startswith("tuple[tuple"):
        if isinstance(value, Mapping) and all(_is_list(codes) for codes in value.values()):
            return tuple((pattern, tuple(codes)) for pattern, codes in value.items())
        raise ConfigError(f"{path}: `{key}` must be a table of patterns with lists of codes, not {value!r}")
    if kind.startswith("tuple"):
        if _is_list(value):
            return tuple(value)
        raise ConfigError(f"{path}: `{key}` must be a list of strings, not {value!r}")
    if kind == "bool":
        if isinstance(value, bool):
            return value
        raise ConfigError(f"{path}: `{key}` must be true or false, not {value!r}")
    if key == "output-format" and value not in FORMATS:
        raise ConfigError(f"{path}: `{key}` must be one of {', '.join(FORMATS)}, not {value!r}")
    if isinstance(value, str):
        return value
    raise ConfigError(f"{path}: `{key}` must be a string, not {value!r}")


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
