"""Pictures of lines, areas, dots and words, written as SVG or PNG: a picture of a fit needs no more.

Lengths are points, 72 to the inch, from the upper left corner. A library of plots would take longer to load
and to draw than a whole fit does.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import cache
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import east_asian_width

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldp_client.words.text import visible

INK = "#000000"
FONT = "DejaVu Sans, Verdana, sans-serif"
# Of a PNG; it is drawn so many times as large, so that edges come out smooth.
DOTS_PER_POINT, SMOOTH = 150 / 72, 2
# Of a letter's width, in its size; letters of East Asian scripts are as wide as high.
WIDE, NARROW = 1.0, 0.6
LINE_HEIGHT = 1.2

Points = NDArray[np.float64]


class Shape(NamedTuple):
    """points (n, 2). width: of a line through them; 0 fills what they enclose."""

    points: Points
    colour: str
    width: float
    opacity: float


class Words(NamedTuple):
    """One line of text whose middle height is at y. anchor: start, middle or end is at x; turned: upwards."""

    x: float
    y: float
    text: str
    size: float
    anchor: str
    colour: str
    turned: bool


class Canvas:
    """A picture of `width` times `height` points, drawn in the order of the calls."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self.shapes: list[Shape] = []
        self.words: list[Words] = []

    def line(self, points: ArrayLike, colour: str = INK, width: float = 0.8, opacity: float = 1.0) -> None:
        """A line through points (n, 2)."""
        found = np.asarray(points, float)
        if len(found) > 1:
            self.shapes.append(Shape(found, colour, width, opacity))

    def area(self, points: ArrayLike, colour: str, opacity: float = 1.0) -> None:
        """What points (n, 2) enclose."""
        self.line(points, colour, 0.0, opacity)

    def dot(self, x: float, y: float, radius: float, colour: str) -> None:
        """A disc about a point."""
        angle = np.linspace(0, 2 * np.pi, 17)[:-1]
        self.area(np.column_stack([x + radius * np.cos(angle), y + radius * np.sin(angle)]), colour)

    def say(
        self,
        x: float,
        y: float,
        text: str,
        size: float = 7.0,
        anchor: str = "middle",
        colour: str = INK,
        *,
        turned: bool = False,
    ) -> None:
        """Lines of text about the height y; turned: one line, which reads upwards."""
        lines = text.split("\n")
        for place, line in enumerate(lines):
            below = (place - (len(lines) - 1) / 2) * LINE_HEIGHT * size
            self.words.append(Words(x, y + below, visible(line), size, anchor, colour, turned))

    def svg(self) -> str:
        """SVG text to stand inside a page."""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_short(self.width)}pt" '
            f'height="{_short(self.height)}pt" viewBox="0 0 {_short(self.width)} {_short(self.height)}" '
            f'font-family="{FONT}">'
        )
        return "\n".join([head, *map(_shape_svg, self.shapes), *map(_words_svg, self.words), "</svg>\n"])

    def png(self) -> bytes:
        """A PNG file's bytes, at 150 dots an inch on white."""
        from PIL import Image, ImageDraw

        scale = DOTS_PER_POINT * SMOOTH
        size = (round(self.width * DOTS_PER_POINT), round(self.height * DOTS_PER_POINT))
        picture = Image.new("RGB", (size[0] * SMOOTH, size[1] * SMOOTH), "white")
        pen: Any = ImageDraw.Draw(picture, "RGBA")
        for shape in self.shapes:
            _shape_png(pen, shape, scale)
        picture = picture.reduce(SMOOTH)
        for one in self.words:
            _words_png(picture, one)
        buffer = io.BytesIO()
        picture.save(buffer, "PNG")
        return buffer.getvalue()


def width_of(text: str, size: float) -> float:
    """About how wide the longest of its lines is."""
    widths = [
        sum(WIDE if east_asian_width(letter) in "WF" else NARROW for letter in line)
        for line in text.split("\n")
    ]
    return size * max(widths)


def _short(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _shape_svg(shape: Shape) -> str:
    where = " ".join(f"{x:.2f},{y:.2f}" for x, y in shape.points.tolist())
    opacity = "" if shape.opacity == 1 else f' opacity="{shape.opacity:g}"'
    if not shape.width:
        return f'<polygon points="{where}" fill="{shape.colour}"{opacity}/>'
    return (
        f'<polyline points="{where}" fill="none" stroke="{shape.colour}" stroke-width="{shape.width:g}"'
        f"{opacity}/>"
    )


def _words_svg(one: Words) -> str:
    # Letters stand on a line a third of their size below their middle.
    place = f'x="{_short(one.x)}" y="{_short(one.y + 0.35 * one.size)}"'
    if one.turned:
        place = f'transform="translate({_short(one.x + 0.35 * one.size)} {_short(one.y)}) rotate(-90)"'
    return (
        f'<text {place} font-size="{one.size:g}" text-anchor="{one.anchor}" fill="{one.colour}">'
        f"{escape(one.text)}</text>"
    )


def _shape_png(pen: Any, shape: Shape, scale: float) -> None:
    colour = _channels(shape.colour, shape.opacity)
    points = (shape.points * scale).ravel().tolist()
    if shape.width:
        pen.line(points, fill=colour, width=max(1, round(shape.width * scale)))
    else:
        pen.polygon(points, fill=colour)


def _channels(colour: str, opacity: float) -> tuple[int, int, int, int]:
    red, green, blue = bytes.fromhex(colour[1:])
    return red, green, blue, round(255 * opacity)


def _words_png(picture: Any, one: Words) -> None:
    from PIL import Image, ImageDraw

    if not one.text:
        return
    font = _font()(one.size * DOTS_PER_POINT)
    left, top, right, bottom = font.getbbox(one.text, anchor="ls")
    mask = Image.new("L", (int(right - left) + 1, int(bottom - top) + 1))
    ImageDraw.Draw(mask).text((-left, -top), one.text, fill=255, font=font, anchor="ls")
    x, y, size = one.x * DOTS_PER_POINT, one.y * DOTS_PER_POINT, one.size * DOTS_PER_POINT
    ahead = {"start": 0.0, "middle": 0.5, "end": 1.0}[one.anchor] * mask.width
    place = (round(x - ahead), round(y + 0.35 * size + top))
    if one.turned:
        mask = mask.transpose(Image.Transpose.ROTATE_90)
        place = (round(x + 0.35 * size + top), round(y + ahead - mask.height))
    picture.paste(one.colour, place, mask)


@cache
def _font() -> Callable[[float], Any]:
    """The font of a size: matplotlib's own file, which has letters of many scripts, without matplotlib."""
    from PIL import ImageFont

    found = find_spec("matplotlib")
    folder = Path(found.origin).parent if found is not None and found.origin else Path()
    file = folder / "mpl-data" / "fonts" / "ttf" / "DejaVuSans.ttf"
    if not file.is_file():
        return ImageFont.load_default
    return cache(lambda size: ImageFont.truetype(str(file), size))
