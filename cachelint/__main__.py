"""`python -m cachelint` and the console script."""

from __future__ import annotations


def main() -> None:
    """Run the command line and leave with its exit status."""
    from cachelint.cli import cli

    cli.main(prog_name="cachelint", windows_expand_args=False)


if __name__ == "__main__":
    main()
