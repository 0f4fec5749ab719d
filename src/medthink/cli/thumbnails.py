"""Small pictures in terminals that can draw them: kitty, iTerm2 and sixel."""

import io
import os
import sys
from base64 import b64encode
from collections.abc import Mapping
from typing import Literal

from PIL import Image as Pictures

Protocol = Literal["kitty", "iterm", "sixel"]
ROWS = 9
_SIDE = 180
_GREYS = 32
_CHUNK = 4096


def find_protocol(env: Mapping[str, str] = os.environ) -> Protocol | None:
    """The drawing protocol of the terminal, by its environment; None if it has none."""
    term, program = env.get("TERM", ""), env.get("TERM_PROGRAM", "")
    if "KITTY_WINDOW_ID" in env or "kitty" in term or program == "ghostty":
        return "kitty"
    if program in ("iTerm.app", "WezTerm") or env.get("LC_TERMINAL") == "iTerm2":
        return "iterm"
    return "sixel" if "sixel" in term or term.partition("-")[0] in ("foot", "mlterm", "contour") else None


def draw(picture: Pictures.Image, protocol: Protocol) -> None:
    """Draw one small picture where the cursor is."""
    small = picture.convert("L")
    small.thumbnail((_SIDE, _SIDE))
    encode = {"kitty": _kitty, "iterm": _iterm, "sixel": _sixel}[protocol]
    sys.stdout.write(encode(small) + "\n")


def _kitty(picture: Pictures.Image) -> str:
    data = _png(picture)
    chunks = [data[start : start + _CHUNK] for start in range(0, len(data), _CHUNK)]
    more = [1] * (len(chunks) - 1) + [0]
    heads = [f"f=100,a=T,r={ROWS},m={more[0]}", *(f"m={one}" for one in more[1:])]
    return "".join(f"\x1b_G{head};{chunk}\x1b\\" for head, chunk in zip(heads, chunks, strict=True))


def _iterm(picture: Pictures.Image) -> str:
    return f"\x1b]1337;File=inline=1;height={ROWS};preserveAspectRatio=1:{_png(picture)}\x07"


def _sixel(picture: Pictures.Image) -> str:
    """Six rows of pixels at a time: for each grey level in them, one character per column."""
    width, height = picture.size
    pixels = picture.point([value * _GREYS // 256 for value in range(256)]).tobytes()
    shares = [grey * 100 // (_GREYS - 1) for grey in range(_GREYS)]
    levels = "".join(f"#{grey};2;{share};{share};{share}" for grey, share in enumerate(shares))
    bands = []
    for top in range(0, height, 6):
        rows = [pixels[y * width : (y + 1) * width] for y in range(top, min(top + 6, height))]
        lines = (f"#{grey}{_sixel_line(rows, grey, width)}" for grey in sorted(set(b"".join(rows))))
        bands.append("$".join(lines))
    return f'\x1bPq"1;1;{width};{height}{levels}{"-".join(bands)}\x1b\\'


def _sixel_line(rows: list[bytes], grey: int, width: int) -> str:
    bits = (sum((row[x] == grey) << number for number, row in enumerate(rows)) for x in range(width))
    return "".join(chr(63 + bit) for bit in bits)


def _png(picture: Pictures.Image) -> str:
    stream = io.BytesIO()
    picture.save(stream, "PNG")
    return b64encode(stream.getvalue()).decode()
