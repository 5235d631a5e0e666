"""The report's colours can be told from their ground, in light and in dark."""

import re
from importlib.resources import files

import pytest

CSS = files("kafka_segments.verbs.tell.report").joinpath("report.css").read_text("utf-8")
PALETTES = [
    dict(re.findall(r"--(\w+): (#\w+)", b)) for b in re.findall(r":root \{(.*?)\}", CSS, re.S)
]
TEXT = ("ink", "dim", "bad", "good", "link")
GRAPHICS = ("edge", "sound", "mtime", "future", "damaged")


def _luminance(colour: str) -> float:
    """Return the relative luminance of WCAG 2."""
    digits = colour.lstrip("#")
    if len(digits) == 3:
        digits = "".join(2 * digit for digit in digits)
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("palette", PALETTES, ids=["light", "dark"])
def test_text_and_graphics_stand_out_from_both_grounds(palette: dict[str, str]) -> None:
    for ground in ("page", "panel"):
        assert all(_contrast(palette[name], palette[ground]) >= 4.5 for name in TEXT)
        assert all(_contrast(palette[name], palette[ground]) >= 3 for name in GRAPHICS)


@pytest.mark.parametrize("palette", PALETTES, ids=["light", "dark"])
def test_what_differs_in_a_map_of_copies_stands_out_from_what_is_equal(
    palette: dict[str, str],
) -> None:
    for state in ("mtime", "damaged", "dim"):
        assert _contrast(palette[state], palette["equal"]) >= 3


def test_there_is_a_palette_for_light_and_one_for_dark() -> None:
    light, dark = PALETTES

    assert light.keys() == dark.keys()
    assert "prefers-color-scheme: dark" in CSS
