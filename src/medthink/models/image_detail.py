"""What becomes of an image at each provider: how finely it looks, what it shrinks, and how many tokens that takes.

The rules are those that the providers publish. OpenAI shrinks images to a number of patches, or of tiles in older
families; Anthropic is asked to refuse what it would shrink; Gemini gives every image the same number of tokens.
"""

import math
import re
from typing import NamedTuple

from medthink.models.request import ImageDetail, ImagePart, ModelError, Request

OPENAI_DETAILS: tuple[ImageDetail, ...] = ("auto", "low", "high", "original")
GEMINI_DETAILS: tuple[ImageDetail, ...] = ("low", "medium", "high", "ultra_high")
_OPENAI = ("openai", "openai-chat")
# The families that take images unshrunk; an unknown, newer one is assumed to.
_HAS_ORIGINAL = re.compile(r"(ft:)?gpt-(5\.([4-9]|\d\d)|[6-9]|\d\d)(?!.*(mini|nano|chat))")
_UNKNOWN_SIDE = 1024

# (pattern, base, tile): the first that matches counts.
_TILES = (
    (r"gpt-4o-mini", 2_833, 5_667),
    (r"o\d", 75, 150),
    (r"gpt-5", 70, 140),
    (r"", 85, 170),
)
# (pattern, factor, most patches)
_PATCHES = (
    (r"gpt-(4\.1|5)-mini", 1.62, 1_536),
    (r"gpt-(4\.1|5)-nano", 2.46, 1_536),
    (r"o4-mini", 1.72, 1_536),
    (r"gpt-5\.[4-9].*-mini", 1.62, 1_536),
    (r"gpt-5\.[4-9].*-nano", 2.46, 1_536),
    (r"gpt-(5\.[4-9]|[6-9]|\d\d)", 1.0, 2_500),
)
_PATCH, _TILE = 32, 512
_LOW_SIDE, _HIGH_SIDE, _SHORT_SIDE = 512, 2_048, 768
_ORIGINAL_SIDE, _ORIGINAL_PATCHES = 6_000, 10_000
_CLAUDE_TOKENS, _CLAUDE_TOKENS_BEFORE_4_7 = 4_784, 1_600
_GEMINI_TOKENS: dict[ImageDetail | None, int] = {
    None: 1_120, "low": 280, "medium": 560, "high": 1_120, "ultra_high": 2_240,
}  # fmt: skip
_GEMINI_2_TOKENS: dict[ImageDetail | None, int] = {"low": 64, "medium": 256}


class SeenImage(NamedTuple):
    """An image as the model gets it: its size, None if no rule is published, and its tokens."""

    width: int | None
    height: int | None
    tokens: int


def details_of(provider: str, model: str) -> tuple[ImageDetail, ...]:
    """The levels of detail that can be asked of a model; none where the provider has no such setting."""
    if provider in _OPENAI:
        return OPENAI_DETAILS if _HAS_ORIGINAL.match(model) else OPENAI_DETAILS[:-1]
    if provider == "google":
        # Before Gemini 3, an image has no level of its own.
        return GEMINI_DETAILS[:-1] if _is_gemini_2(model) else GEMINI_DETAILS
    return ()


def settle_detail(asked: ImageDetail | None, provider: str, model: str) -> ImageDetail | None:
    """The level that is sent: the one asked for, else the finest at which OpenAI shrinks least; None is not sent.

    ModelError (unsupported) for a level that the model has not.
    """
    known = details_of(provider, model)
    if asked is None:
        return known[-1] if provider in _OPENAI else None
    if asked not in known:
        told = f"{model} has no image detail {asked}: " + (f"it has {', '.join(known)}" if known else "it has none")
        raise ModelError("unsupported", told, remedy="choose another --image-detail, or leave it out")
    return asked


def tell_detail(asked: ImageDetail | None, provider: str, model: str) -> str:
    """What the provider does to images at this level, in words."""
    level = settle_detail(asked, provider, model)
    if provider == "anthropic":
        return "nothing is shrunk; an image that is too large for the model is refused"
    if provider == "google":
        fixed = (_GEMINI_2_TOKENS if _is_gemini_2(model) else _GEMINI_TOKENS).get(level)
        return f"{fixed:,} tokens for every image, whatever its size" if fixed else "cut into tiles of 768 px"
    if provider not in _OPENAI:
        return "as the server is set up"
    if level == "low":
        return f"detail low: shrunk to {_LOW_SIDE} px"
    if level == "original":
        return f"detail original: shrunk only above {_ORIGINAL_SIDE:,} px or {_ORIGINAL_PATCHES:,} patches of 32 px"
    if (patches := _patches_of(model)) is not None:
        return f"detail {level}: shrunk above {_HIGH_SIDE:,} px or {patches[1]:,} patches of 32 px"
    return f"detail {level}: shrunk to {_HIGH_SIDE:,} px, then to a short side of {_SHORT_SIDE} px"


def see_image(image: ImagePart, provider: str, model: str, asked: ImageDetail | None = None) -> SeenImage:
    """The image as this model gets it at this level, estimated."""
    width, height = image.width or _UNKNOWN_SIDE, image.height or _UNKNOWN_SIDE
    if provider in _OPENAI:
        return _see_openai(width, height, model, settle_detail(asked, provider, model))
    if provider == "anthropic":
        most = _CLAUDE_TOKENS_BEFORE_4_7 if claude_version(model) < (4, 7) else _CLAUDE_TOKENS
        return SeenImage(width, height, min(most, math.ceil(width * height / 750)))
    if provider == "google":
        return SeenImage(None, None, _gemini_tokens(width, height, model, asked))
    return SeenImage(None, None, math.ceil(width / 28) * math.ceil(height / 28))


def count_shrunk(request: Request, provider: str, model: str) -> int:
    """How many images of the request the provider is known to shrink."""
    seen = ((image, see_image(image, provider, model, request.image_detail)) for image in request.images)
    return sum(one.width is not None and image.width is not None and one.width < image.width for image, one in seen)


def claude_version(model: str) -> tuple[int, int]:
    """(4, 6) of `claude-opus-4-6-20260205`; a name without a number counts as recent."""
    numbers = [int(word) for word in model.replace(".", "-").split("-") if word.isdecimal() and len(word) < 3]
    if not numbers:
        return (99, 0)
    return (numbers[0], numbers[1] if len(numbers) > 1 else 0)


def _patches_of(model: str) -> tuple[float, int] | None:
    """The factor and the most patches of a family that counts patches."""
    return next(((factor, most) for pattern, factor, most in _PATCHES if re.match(pattern, model)), None)


def _see_openai(width: int, height: int, model: str, level: ImageDetail | None) -> SeenImage:
    patches = _patches_of(model)
    if patches is None:
        return _see_tiles(width, height, model, is_low=level == "low")
    factor, most = patches
    side = {"low": _LOW_SIDE, "original": _ORIGINAL_SIDE}.get(level or "", _HIGH_SIDE)
    most = _ORIGINAL_PATCHES if level == "original" else most
    scale = min(1.0, side / max(width, height))
    if _count_patches(width * scale, height * scale) > most:
        scale = min(scale, math.sqrt(most * _PATCH**2 / (width * height)))
    width, height = _scaled(width, scale), _scaled(height, scale)
    # Both sides rounded up, they may come to a few more than are allowed.
    count = min(most, _count_patches(width, height))
    return SeenImage(width, height, math.ceil(count * factor))


def _count_patches(width: float, height: float) -> int:
    return math.ceil(width / _PATCH) * math.ceil(height / _PATCH)


def _see_tiles(width: int, height: int, model: str, *, is_low: bool) -> SeenImage:
    base, tile = next((base, tile) for pattern, base, tile in _TILES if re.match(pattern, model))
    if is_low:
        scale = min(1.0, _LOW_SIDE / max(width, height))
        return SeenImage(_scaled(width, scale), _scaled(height, scale), base)
    scale = min(1.0, _HIGH_SIDE / max(width, height))
    scale = min(scale, _SHORT_SIDE / min(width, height))
    tiles = math.ceil(width * scale / _TILE) * math.ceil(height * scale / _TILE)
    return SeenImage(_scaled(width, scale), _scaled(height, scale), base + tile * tiles)


def _scaled(side: int, scale: float) -> int:
    return max(1, int(side * scale))


def _is_gemini_2(model: str) -> bool:
    return re.match(r"gemini-[12]\b", model) is not None


def _gemini_tokens(width: int, height: int, model: str, level: ImageDetail | None) -> int:
    if not _is_gemini_2(model):
        return _GEMINI_TOKENS.get(level, _GEMINI_TOKENS[None])
    if level in _GEMINI_2_TOKENS:
        return _GEMINI_2_TOKENS[level]
    if max(width, height) <= 384:
        return 258
    return 258 * math.ceil(width / 768) * math.ceil(height / 768)
