"""Sets of releases."""

from __future__ import annotations

import pytest

from cachelint.contracts import releases


@pytest.mark.parametrize(
    ("specifier", "shown"),
    [
        (">=4.50,<6", "4.50+"),
        ("==4.57.6", "4.57.6"),
        ("==4.57.*", "4.57"),
        ("<5.5.2", "4.36–5.5.1"),
        (">=4.45.1,!=4.50.1", "4.45.1–4.50.0, 4.50.2+"),
        ("==5.24.0", "5.24"),
    ],
)
def test_a_range_is_shown_by_minors(specifier: str, shown: str) -> None:
    assert releases.describe(releases.parse_range(specifier)) == shown


def test_between_takes_whole_minors() -> None:
    mask = releases.between("4.56", "4.57")
    assert [str(release) for release in releases.members(mask)][-1] == "4.57.6"
    assert releases.describe(releases.between("5.20")) == "5.20+"


def test_comparisons_of_parts_and_widths() -> None:
    assert releases.comparing(">=", "5.0") == releases.part_comparing(0, ">=", 5)
    assert releases.comparing("<", "4.57", 2) == releases.comparing("<", "4.57.0")
    assert releases.comparing("<=", "4.57", 2) == releases.comparing("<", "5.0.0")
    with pytest.raises(ValueError, match="no version"):
        releases.comparing("<", "new")


@pytest.mark.parametrize("text", ["banana", ">>5", "5.0"])
def test_what_is_no_specifier(text: str) -> None:
    with pytest.raises(releases.RangeError, match="no version specifier"):
        releases.parse_range(text)
