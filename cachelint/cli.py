"""The command line: commands and options, and nothing of how they are done."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from cachelint import __version__
from cachelint.config import FORMATS

if TYPE_CHECKING:
    from cachelint.config import Settings

    _CodesType = click.ParamType[tuple[str, ...]]
else:
    _CodesType = click.ParamType

F = TypeVar("F", bound=Callable[..., Any])


class Codes(_CodesType):
    """Rule codes or their beginnings, separated by commas."""

    name = "codes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """The codes. Fails on one that no rule has, with the nearest that one has."""
        if isinstance(value, tuple):
            return value
        from cachelint.rule import unknown_code

        codes = tuple(code.strip().upper() for code in value.split(",") if code.strip())
        for code in codes:
            problem = unknown_code(code)
            if problem:
                self.fail(problem, param, ctx)
        return codes


def options_of(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several click options as one decorator."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


SELECTION = options_of(
    click.option("--transformers", metavar="SPEC", help="The supported releases, such as '>=4.50,<6'."),
    click.option("--select", type=Codes(), metavar="CODES", help="Only these rules (codes or their beginnings)."),
    click.option("--ignore", type=Codes(), metavar="CODES", help="All rules but these."),
    click.option("--extend-select", type=Codes(), metavar="CODES", help="These rules as well."),
    click.option("--per-file-ignores", metavar="PATTERN:CODES", multiple=True, help="Ignore rules in some files."),
    click.option("--exclude", metavar="PATTERNS", help="Gitignore patterns of files to leave out, by commas."),
    click.option("--config", type=click.Path(path_type=Path), metavar="FILE", help="The configuration to use."),
    click.option("--isolated", is_flag=True, help="Read no configuration."),
    click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Processes; default: one a core."),
)
OUTPUT = options_of(
    click.option("--output-format", type=click.Choice(FORMATS), help="How findings are written."),
    click.option("--output-file", "-o", type=click.Path(path_type=Path), metavar="FILE", help="Write them here."),
    click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Default: auto."),
    click.option("--quiet", "-q", is_flag=True, help="Findings only."),
    click.option("--verbose", "-v", is_flag=True, help="Say what is done, and where the analysis gave up."),
)
PATHS = click.argument("paths", nargs=-1, type=click.Path(path_type=Path))


def fail(message: str) -> NoReturn:
    """Say what is wrong and leave with status 2."""
    click.echo(f"error: {message}", err=True)
    sys.exit(2)


class Commands(click.Group):
    """A group that suggests the nearest command for a misspelt one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command; an unknown one fails with the nearest known."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            import difflib

            near = difflib.get_close_matches(args[0], self.list_commands(ctx), 1)
            if near and "did you mean" not in error.message.lower():
                raise click.UsageError(f"{error.message} Did you mean '{near[0]}'?", ctx) from None
            raise


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="cachelint %(version)s")
def cli() -> None:
    """Find and rewrite code that misuses the KV cache of Hugging Face transformers."""


@cli.command()
@PATHS
@SELECTION
@OUTPUT
@click.option("--fix", "fix", is_flag=True, help="Apply safe fixes.")
@click.option("--unsafe-fixes", is_flag=True, help="With --fix or --diff: unsafe ones too.")
@click.option("--diff", "diff", is_flag=True, help="Print what the fixes would change, and write nothing.")
@click.option("--stdin-filename", type=click.Path(path_type=Path), metavar="FILE", help="The name of `-`.")
@click.option("--statistics", is_flag=True, help="Count the findings of each rule.")
@click.option("--ignore-noqa", is_flag=True, help="Report what a comment suppresses, too.")
@click.option("--add-noqa", is_flag=True, help="Write a `# noqa` for each finding into the files.")
@click.option("--baseline", type=click.Path(path_type=Path), metavar="FILE", help="Keep quiet about what is in it.")
@click.option("--diff-base", metavar="REV", help="Only findings on lines changed since a git revision.")
@click.option("--no-cache", is_flag=True, help="Neither use nor keep results of earlier runs.")
@click.option("--cache-dir", metavar="FOLDER", help="Where results are kept; default: .cachelint_cache.")
@click.option("--show-settings", is_flag=True, help="Print the settings, and check nothing.")
@click.option("--show-files", is_flag=True, help="Print the files that would be checked, and check nothing.")
@click.option("--exit-zero", is_flag=True, help="Leave with 0 even where something is found.")
def check(paths: tuple[Path, ...], **options: Any) -> None:
    """Lint files and folders (default: the current folder; `-` reads standard input).

    Exit status: 0 nothing found, 1 findings, 2 the run itself failed.
    """
    from cachelint.run import Run

    run = Run(**{**_settings(paths, options), "paths": paths or (Path("."),)})
    if options["show_settings"] or options["show_files"]:
        _finish(run.show_settings if options["show_settings"] else run.show_files)
    if options["add_noqa"]:
        _finish(run.add_noqa)
    _finish(lambda: run.fix(write=not options["diff"]) if options["fix"] or options["diff"] else run.check())


@cli.command()
@PATHS
@SELECTION
@OUTPUT
@click.option("--unsafe-fixes", is_flag=True, help="Apply unsafe fixes too.")
@click.option("--diff", "diff", is_flag=True, help="Print what would change, and write nothing.")
@click.option("--allow-dirty", is_flag=True, help="Rewrite files with uncommitted changes as well.")
def fix(paths: tuple[Path, ...], **options: Any) -> None:
    """Rewrite a repository: apply every safe fix, and say what was done and what is left."""
    from cachelint.run import Run

    run = Run(**{**_settings(paths, options), "paths": paths or (Path("."),)})
    _finish(lambda: run.fix(write=not options["diff"], summary=True, allow_dirty=options["allow_dirty"]))


@cli.command()
@PATHS
@SELECTION
@click.option(
    "--output-format", "form", type=click.Choice(["text", "json", "html"]), default="text", help="Default: text."
)
@click.option("--output-file", "-o", type=click.Path(path_type=Path), metavar="FILE", help="Write it here.")
@click.option("--quiet", "-q", is_flag=True, help="Errors only.")
def upgrade(paths: tuple[Path, ...], form: str, **options: Any) -> None:
    """Show what breaks, changes or warns at each release of transformers, from your oldest on."""
    from cachelint.run import Run

    run = Run(**{**_settings(paths, {**options, "color": "never", "verbose": False}), "paths": paths or (Path("."),)})
    _finish(lambda: run.upgrade(form))


@cli.command()
@PATHS
@SELECTION
@click.option(
    "--baseline",
    "file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    default=Path(".cachelint-baseline.json"),
    help="Default: .cachelint-baseline.json.",
)
@click.option("--quiet", "-q", is_flag=True, help="Errors only.")
def baseline(paths: tuple[Path, ...], file: Path, **options: Any) -> None:
    """Write all findings into a baseline, which `check --baseline` then keeps quiet about."""
    from cachelint.run import Run

    plain = {"output_file": None, "color": "never", "verbose": False}
    run = Run(**{**_settings(paths, {**options, **plain}), "paths": paths or (Path("."),)})
    _finish(lambda: run.write_baseline(file))


@cli.command()
def schema() -> None:
    """Print the JSON schema of `[tool.cachelint]`, for editors."""
    import json

    from cachelint.config import schema as schema_of

    click.echo(json.dumps(schema_of(), indent=2))


@cli.command()
@click.argument("code", type=str)
@click.option("--transformers", metavar="SPEC", help="Show what was measured on these releases.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Default: auto.")
def explain(code: str, transformers: str | None, color: str) -> None:
    """Print the documentation of a rule, by its code or name; with a range, what was measured on it."""
    from cachelint.contracts.releases import RangeError, parse_range
    from cachelint.rule import find_rule, unknown_code

    rule = find_rule(code)
    if rule is None:
        fail(unknown_code(code.upper()) or f"no rule is called {code!r}")
    from cachelint.report.page import measured, render

    click.echo(render(rule, colour=_colour(color), width=_width()), nl=False, color=_colour(color))
    if transformers is not None:
        try:
            click.echo(measured(rule, parse_range(transformers)), nl=False)
        except RangeError as error:
            fail(str(error))


@cli.command()
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", help="Default: text.")
def rules(output_format: str) -> None:
    """List all rules."""
    import json

    from cachelint.rule import all_rules

    if output_format == "json":
        listed = [{"code": rule.code, "name": rule.name, "summary": rule.summary()} for rule in all_rules()]
        click.echo(json.dumps(listed, indent=2))
        return
    for rule in all_rules():
        click.echo(f"{rule.code}  {rule.name:<24}  {rule.summary()}")


@cli.command()
@PATHS
@click.option("--transformers", metavar="SPEC", help="The supported releases, such as '>=4.50,<6'.")
@click.option("--config", type=click.Path(path_type=Path), metavar="FILE", help="The configuration to use.")
@click.option("--isolated", is_flag=True, help="Read no configuration.")
def target(paths: tuple[Path, ...], **options: Any) -> None:
    """Print the range of transformers releases that files are judged for, and where it comes from."""
    from cachelint.config import ConfigError
    from cachelint.target import Targets

    options = {**options, "select": None, "ignore": None, "extend_select": None, "exclude": None}
    settings = _read_settings(paths, options)
    try:
        targets = Targets(settings, options["transformers"])
        for path in paths or (Path("."),):
            full = Path(os.path.abspath(path))
            if not full.exists():
                fail(f"{path}: no such file or folder")
            text = full.read_text("utf-8", "replace") if full.is_file() else None
            found = targets.of(full / "." / "x.py" if full.is_dir() else full, text)
            click.echo(f"{path}: {found}")
    except ConfigError as error:
        fail(str(error))


def _read_settings(paths: Iterable[Path], options: dict[str, Any]) -> Settings:
    from cachelint.config import ConfigError, load_settings

    start = Path(os.path.abspath(next((path for path in paths if str(path) != "-"), Path("."))))
    try:
        settings = load_settings(start, options.get("config"), isolated=bool(options.get("isolated")))
    except ConfigError as error:
        fail(str(error))
    for key in ("select", "ignore", "extend_select"):
        if options.get(key) is not None:
            settings = replace(settings, **{key: options[key]})
    if options.get("per_file_ignores"):
        settings = replace(settings, per_file_ignores=_per_file(options["per_file_ignores"]))
    if options.get("exclude") is not None:
        settings = replace(settings, exclude=tuple(p.strip() for p in options["exclude"].split(",") if p.strip()))
    return settings


def _per_file(given: Iterable[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The patterns with their codes; a pattern that is given several times has all of them."""
    found: dict[str, tuple[str, ...]] = {}
    for each in (part.strip() for text in given for part in text.split(",")):
        pattern, colon, code = each.rpartition(":")
        if not colon or not pattern or not code:
            fail(f"--per-file-ignores: {each!r} is not of the form PATTERN:CODE")
        found[pattern] = (*found.get(pattern, ()), code.upper())
    return tuple(found.items())


def _settings(paths: tuple[Path, ...], options: dict[str, Any]) -> dict[str, Any]:
    settings = _read_settings(paths, options)
    if options.get("output_format"):
        settings = replace(settings, output_format=options["output_format"])
    if options.get("cache_dir"):
        settings = replace(settings, cache_dir=options["cache_dir"])
    if options.get("unsafe_fixes"):
        settings = replace(settings, unsafe_fixes=True)
    return {
        "settings": settings,
        "option": options["transformers"],
        "jobs": options["jobs"] or os.cpu_count() or 1,
        "output_file": options["output_file"],
        "colour": _colour(options["color"]),
        "width": _width(),
        "quiet": options["quiet"],
        "verbose": options["verbose"],
        "statistics": bool(options.get("statistics")),
        "exit_zero": bool(options.get("exit_zero")),
        "stdin_filename": options.get("stdin_filename"),
        "ignore_noqa": bool(options.get("ignore_noqa")),
        "baseline": options.get("baseline"),
        "diff_base": options.get("diff_base"),
        "cache": options.get("no_cache") is False,
    }


def _finish(work: Callable[[], int]) -> None:
    from cachelint.config import ConfigError
    from cachelint.discovery import MissingPath

    try:
        status = work()
    except (ConfigError, MissingPath) as error:
        fail(str(error))
    except KeyboardInterrupt:
        fail("interrupted")
    except BrokenPipeError:
        # The reader of standard output has gone away, as `head` does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    sys.exit(status)


def _colour(wish: str) -> bool:
    if wish == "auto":
        return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return wish == "always"


def _width() -> int:
    import shutil

    return max(60, shutil.get_terminal_size((100, 24)).columns)
