"""The colours of classes, as eyes see them that lack one kind of cone."""

from itertools import combinations
from math import dist

import pytest

from pinchpoint.outputs.class_words import CLASS_COLOURS

# What is left of linear RGB, by Machado, Oliveira and Fernandes (2009), at full severity.
EYES = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.3039)),
}
XYZ = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
WHITE = (0.9505, 1.0, 1.089)
APART = 10.0  # of CIE76; about 2.3 is the least that anyone sees side by side


def linear(colour: str) -> tuple[float, ...]:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return tuple(part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)


def times(matrix, vector) -> tuple[float, ...]:
    return tuple(sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix)


def lab(colour: str, eye: str) -> tuple[float, ...]:
    seen = times(XYZ, times(EYES[eye], linear(colour)))
    x, y, z = (max(0.0, part / white) for part, white in zip(seen, WHITE, strict=True))
    x, y, z = (part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116 for part in (x, y, z))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def contrast(colour: str, ground: str) -> float:
    low, high = sorted(times(XYZ, linear(each))[1] for each in (colour, ground))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("eye", EYES)
def test_every_two_classes_look_different(eye: str) -> None:
    for one, other in combinations(CLASS_COLOURS.items(), 2):
        assert dist(lab(one[1], eye), lab(other[1], eye)) > APART, (one, other)


@pytest.mark.parametrize("ground", ["#ffffff", "#171e26"])
def test_every_class_stands_out_from_a_light_and_a_dark_ground(ground: str) -> None:
    for bottleneck, colour in CLASS_COLOURS.items():
        assert contrast(colour, ground) > 1.4, bottleneck
