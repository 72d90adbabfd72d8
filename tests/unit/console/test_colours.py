"""The colours of a picture: told apart by people with any kind of colour vision, in both schemes.

Colour vision is simulated as Machado, Oliveira and Fernandes have it (2009, severity 1.0), in linear RGB.
Colours are compared in Oklab. WCAG 2.2 asks for a contrast of 3 to 1 of what one must see (1.4.11).
"""

import re
from itertools import combinations

import pytest

from fanin.console.pages.picture import Drawing
from fanin.console.rendering import HERE
from fanin.domain.batch import Batch
from fanin.domain.picture import Cell, Picture

RGB = tuple[float, float, float]
VISION = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deutan": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritan": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
STATES = {
    "light": {"done": "done", "failed": "failed", "held": "held", "leased": "leased", "pending": "card"},
    "dark": {"done": "done", "failed": "failed", "held": "held", "leased": "leased-ink", "pending": "card"},
}
"""State → the variable of the colour that most of its square has, or of its sign."""
LEAST_DISTANCE = 0.1
"""In Oklab, where 0.02 is about what a trained eye sees side by side, and black and white are 1 apart."""
LEAST_CONTRAST = 3.0
STYLE = (HERE / "static" / "style.css").read_text()


def variables(scheme: str) -> dict[str, str]:
    """The colours of a scheme: what is set for all, and over it what is set for the dark one."""
    dark = re.compile(r"@media \(prefers-color-scheme: dark\) \{\s*(:root \{[^}]*\})\s*\}")
    plain = dark.sub("", STYLE)
    found: dict[str, str] = {}
    for block in (plain, *(dark.findall(STYLE) if scheme == "dark" else ())):
        found.update(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6});", block))
    return found


def linear(colour: str) -> RGB:
    digits = colour.removeprefix("#")
    if len(digits) == 3:
        digits = "".join(digit * 2 for digit in digits)
    red, green, blue = (int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4))
    return tuple(c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (red, green, blue))


def mixed(over: str, under: str, opacity: float) -> RGB:
    """A colour that lies over another one, as browsers mix them: in sRGB."""

    def channels(colour: str) -> list[int]:
        digits = colour.removeprefix("#")
        digits = digits if len(digits) == 6 else "".join(digit * 2 for digit in digits)
        return [int(digits[at : at + 2], 16) for at in (0, 2, 4)]

    mix = [a * opacity + b * (1 - opacity) for a, b in zip(channels(over), channels(under), strict=True)]
    return linear("#" + "".join(f"{round(channel):02x}" for channel in mix))


def seen(colour: RGB, vision: str) -> RGB:
    return tuple(
        min(1.0, max(0.0, sum(weight * channel for weight, channel in zip(row, colour, strict=True))))
        for row in VISION[vision]
    )


def distance(one: RGB, other: RGB) -> float:
    """How far two colours are apart in Oklab (Ottosson 2020)."""

    def oklab(colour: RGB) -> RGB:
        red, green, blue = colour
        long = (0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue) ** (1 / 3)
        middle = (0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue) ** (1 / 3)
        short = (0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue) ** (1 / 3)
        return (
            0.2104542553 * long + 0.7936177850 * middle - 0.0040720468 * short,
            1.9779984951 * long - 2.4285922050 * middle + 0.4505937099 * short,
            0.0259040371 * long + 0.7827717662 * middle - 0.8086757660 * short,
        )

    return sum((a - b) ** 2 for a, b in zip(oklab(one), oklab(other), strict=True)) ** 0.5


def contrast(one: RGB, other: RGB) -> float:
    """The contrast ratio of WCAG."""
    lights = sorted(0.2126 * red + 0.7152 * green + 0.0722 * blue for red, green, blue in (one, other))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_states_are_told_apart(scheme, vision):
    colours = variables(scheme)
    seen_as = {state: seen(linear(colours[name]), vision) for state, name in STATES[scheme].items()}

    apart = {pair: distance(seen_as[pair[0]], seen_as[pair[1]]) for pair in combinations(seen_as, 2)}

    assert {pair: far for pair, far in apart.items() if far < LEAST_DISTANCE} == {}


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_marks_are_seen_on_the_ground_of_any_square(scheme, vision):
    colours = variables(scheme)
    batch = Batch(7, b"salt", 0, 0, 10**9, 60, 60)
    for done in (0, 2048, 4095):
        cells = (Cell(0, 0, 4096, 64, done, 4096, word=1),)
        (shade,) = (
            float(square.shade)
            for square in Drawing(Picture(batch, 2, 0, 2, 4096, 0, 4096, cells=cells)).squares[:1]
        )
        ground = seen(mixed(colours["done"], colours["paper"], shade), vision)
        assert contrast(seen(linear(colours["done"]), vision), ground) >= LEAST_CONTRAST


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    ("drawn", "on"),
    [
        ("edge", "paper"),  # the frame of a square
        ("edge", "card"),
        ("done", "card"),
        ("failed", "card"),
        ("failed", "paper"),  # the corner has an edge of paper
        ("card", "failed"),  # the cross
        ("held-ink", "held"),  # the stripes
        ("leased-ink", "card"),  # the ring
        ("focus", "paper"),
    ],
)
def test_what_one_must_see_has_contrast(scheme, drawn, on):
    colours = variables(scheme)

    assert contrast(linear(colours[drawn]), linear(colours[on])) >= LEAST_CONTRAST
