"""The release range that a file is judged for, and where it was found."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cachelint.config import ConfigError, Settings, parse_toml, read_toml
from cachelint.contracts.releases import RangeError, all_mask, describe, parse_range

_PEP_723 = re.compile(r"(?m)^# /// script$\s(?P<content>(?:^#(?:| .*)$\s)+)^# ///$")
_NAME = re.compile(r"^transformers(?![\w.-])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Target:
    """A release range: the specifier as written, the known releases in it (a bit mask), and its source."""

    specifier: str
    mask: int
    origin: str
    path: Path | None = None
    row: int | None = None

    def __str__(self) -> str:
        place = f" ({self.path}:{self.row})" if self.path and self.row else f" ({self.path})" if self.path else ""
        written = self.specifier or "any release"
        return f"{written}: {describe(self.mask)}, from {self.origin}{place}"


@dataclass(frozen=True, slots=True)
class Found:
    """A requirement of transformers: its specifier and its row."""

    specifier: str
    row: int | None


class Targets:
    """Finds the range for each file; each folder is looked into once."""

    def __init__(self, settings: Settings, option: str | None = None) -> None:
        self._fixed: Target | None = None
        if option is not None:
            self._fixed = _target(option, "--transformers", None, None)
        elif settings.transformers is not None:
            row = _row_of(settings.source, "transformers") if settings.source else None
            self._fixed = _target(settings.transformers, "the configuration", settings.source, row)
        self._folders: dict[Path, Target | None] = {}

    def of(self, path: Path, text: str | None = None) -> Target:
        """The range for the file `path`, whose text may name its own.

        Raises:
            ConfigError: a range that was found is no specifier or holds no known release.
        """
        if self._fixed is not None:
            return self._fixed
        own = _from_script(path, text) if text is not None else None
        return own or self._of_folder(path.parent) or Target("", all_mask(), "nothing: all known releases")

    def _of_folder(self, folder: Path) -> Target | None:
        if folder not in self._folders:
            found = next(_in_folder(folder), None)
            if found is None and folder.parent != folder and not (folder / ".git").exists():
                found = self._of_folder(folder.parent)
            self._folders[folder] = found
        return self._folders[folder]


def _target(specifier: str, origin: str, path: Path | None, row: int | None) -> Target:
    try:
        return Target(specifier, parse_range(specifier), origin, path, row)
    except RangeError as error:
        place = f"{path}:{row}: " if path and row else f"{path}: " if path else f"{origin}: "
        raise ConfigError(f"{place}{error}") from None


def _row_of(path: Path | None, needle: str) -> int | None:
    if path is None:
        return None
    pattern = re.compile(rf"(?:^|[\s\"'\[-]){re.escape(needle)}(?![\w-])")
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    for row, line in enumerate(lines, 1):
        if pattern.search(line.split("#")[0]):
            return row
    return None


def _from_script(path: Path, text: str) -> Target | None:
    if "# /// script" not in text:
        return None
    match = _PEP_723.search(text.replace("\r\n", "\n"))
    if match is None:
        return None
    content = "".join(line[2:] if line.startswith("# ") else line[1:] for line in match["content"].splitlines(True))
    data = parse_toml(content, f"{path}: the script metadata")
    found = _join(_requirements(data.get("dependencies", ())))
    row = text[: match.start()].count("\n") + 1
    return _target(found, "the script's metadata", path, row) if found is not None else None


def _in_folder(folder: Path) -> Iterator[Target]:
    """The ranges that the files of one folder name, the most exact kind first."""
    for pattern, origin, read in _READERS:
        for path in sorted(folder.glob(pattern), key=lambda p: (len(p.name), p.name)):
            if path.is_file():
                found = read(path)
                if found is not None:
                    yield _target(found.specifier, origin, path, found.row)


def _requirements(entries: Any) -> list[str]:
    """The specifiers for transformers among PEP 508 strings."""
    from packaging.requirements import InvalidRequirement, Requirement

    found = []
    for entry in entries if isinstance(entries, (list, tuple)) else ():
        if isinstance(entry, str) and _NAME.match(entry.strip()):
            try:
                found.append(str(Requirement(entry.strip()).specifier))
            except InvalidRequirement as error:
                raise ConfigError(f"{entry!r} is no requirement: {error}") from None
    return found


def _join(specifiers: list[str]) -> str | None:
    """One specifier for what several places ask for: the first that says something, "" where none does."""
    if not specifiers:
        return None
    return next((specifier for specifier in specifiers if specifier), "")


def _read_lock(path: Path) -> Found | None:
    for package in read_toml(path).get("package", ()):
        if isinstance(package, dict) and package.get("name") == "transformers" and "version" in package:
            return Found(f"=={package['version']}", _row_of(path, 'name = "transformers"'))
    return None


def _read_requirements(path: Path, seen: frozenset[Path] = frozenset()) -> Found | None:
    try:
        lines = path.read_text(encoding="utf-8-sig", errors="replace").splitlines()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
    for row, line in enumerate(lines, 1):
        entry = re.split(r"\s#|\s--|^#", line, maxsplit=1)[0].strip().rstrip("\\").strip()
        included = re.match(r"(?:-r|--requirement)[ =]\s*(\S+)", entry)
        if included:
            other = (path.parent / included[1]).resolve()
            if other.is_file() and other not in seen:
                found = _read_requirements(other, seen | {path.resolve(), other})
                if found is not None:
                    return Found(found.specifier, row)
        elif _NAME.match(entry):
            try:
                found_here = _join(_requirements([entry]))
            except ConfigError as error:
                raise ConfigError(f"{path}:{row}: {error}") from None
            return Found(found_here or "", row)
    return None


def _read_pyproject(path: Path) -> Found | None:
    data = read_toml(path)
    project = data.get("project", {})
    groups = [project.get("dependencies", ())] if isinstance(project, dict) else []
    if isinstance(project, dict) and isinstance(project.get("optional-dependencies"), dict):
        groups += project["optional-dependencies"].values()
    if isinstance(data.get("dependency-groups"), dict):
        groups += data["dependency-groups"].values()
    specifiers = [specifier for group in groups for specifier in _requirements(group)]
    found = _join(specifiers)
    if found is None:
        found = _poetry(data.get("tool", {}))
    return Found(found, _row_of(path, "transformers")) if found is not None else None


def _poetry(tool: Any) -> str | None:
    poetry = tool.get("poetry", {}) if isinstance(tool, dict) else {}
    if not isinstance(poetry, dict):
        return None
    tables = [poetry.get("dependencies", {}), poetry.get("dev-dependencies", {})]
    groups = poetry.get("group", {})
    if isinstance(groups, dict):
        tables += [group.get("dependencies", {}) for group in groups.values() if isinstance(group, dict)]
    for table in tables:
        wanted = table.get("transformers") if isinstance(table, dict) else None
        if isinstance(wanted, dict):
            wanted = wanted.get("version", "")
        if isinstance(wanted, str):
            return ",".join(_poetry_part(part.strip()) for part in wanted.split(",") if part.strip() not in ("*", ""))
    return None


def _poetry_part(part: str) -> str:
    """Poetry's caret, tilde and bare versions as PEP 440 has them."""
    numbers = part.lstrip("^~= ").split(".")
    if part.startswith("^"):
        major = next((i for i, n in enumerate(numbers) if n != "0"), 0)
        upper = [*numbers[:major], str(int(numbers[major]) + 1)]
        return f">={'.'.join(numbers)},<{'.'.join(upper)}"
    if part.startswith("~") and not part.startswith("~="):
        upper = [numbers[0], str(int(numbers[1]) + 1)] if len(numbers) > 1 else [str(int(numbers[0]) + 1)]
        return f">={'.'.join(numbers)},<{'.'.join(upper)}"
    return part if part[0] in "<>=!~" else f"=={part}"


def _read_setup_cfg(path: Path) -> Found | None:
    import configparser

    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read(path, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None
    texts = [parser.get("options", "install_requires", fallback="")]
    if parser.has_section("options.extras_require"):
        texts += [value for _, value in parser.items("options.extras_require")]
    found = _join(_requirements([line for text in texts for line in re.split(r"[\n]", text)]))
    return Found(found, _row_of(path, "transformers")) if found is not None else None


def _read_environment(path: Path) -> Found | None:
    text = path.read_text(encoding="utf-8", errors="replace")
    for row, line in enumerate(text.splitlines(), 1):
        match = re.match(r"\s*-\s*[\"']?(?:[\w-]+::)?transformers\s*([^\"'#\s].*?|)[\"']?\s*(?:#.*)?$", line)
        if match and not re.match(r"[\w.-]", match[1]):
            specifier = re.sub(r"^=(?!=)\s*([\w.]+).*", r"==\1.*", match[1].strip())
            return Found(specifier.replace(" ", ""), row)
    return None


_READERS: tuple[tuple[str, str, Callable[[Path], Found | None]], ...] = (
    ("uv.lock", "uv's lock file", _read_lock),
    ("poetry.lock", "poetry's lock file", _read_lock),
    ("pdm.lock", "pdm's lock file", _read_lock),
    ("pylock*.toml", "a lock file", _read_lock),
    ("requirements*.txt", "a requirements file", _read_requirements),
    ("pyproject.toml", "the project's dependencies", _read_pyproject),
    ("setup.cfg", "the project's dependencies", _read_setup_cfg),
    ("environment*.y*ml", "a conda environment", _read_environment),
)
