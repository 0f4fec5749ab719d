"""Estimates of how many tokens a request will have; they are labelled as estimates wherever shown.

Text: one token per four bytes of UTF-8, accurate to about 10 % for English prose.
Images, by the providers' published rules:
- OpenAI, tiles (4o, 4.1, o1, o3, gpt-5 … gpt-5.2): fit into 2048×2048, short side to 768, then a base and a price for
  every 512×512 tile. Patches (mini and nano models, o4-mini, from gpt-5.4): 32×32 patches, at most 1,536 (2,500 from
  gpt-5.4), times a factor.
- Anthropic: width × height / 750, at most 1,600 (an image beyond that is refused or sent smaller).
- Gemini 2: 258 for every 768×768 tile, one tile up to 384×384; from Gemini 3: 1,120 an image.
- Servers: one token for 28×28 pixels, as Qwen-VL counts; others differ.
An image of unknown size counts as 1024×1024.
"""

import math
import re

from medthink.models.request import ImagePart, Request, TextPart

_BYTES_A_TOKEN = 4
_FRAME_TOKENS = 12
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
    (r"gpt-(5\.[4-9]|[6-9])", 1.0, 2_500),
)


def estimate_input_tokens(request: Request, provider: str, model: str) -> int:
    """About how many input tokens the request has, images included."""
    texts = [request.system, *(part.text for part in request.parts if isinstance(part, TextPart))]
    text_tokens = sum(estimate_text_tokens(text) for text in texts)
    return _FRAME_TOKENS + text_tokens + sum(estimate_image_tokens(i, provider, model) for i in request.images)


def estimate_text_tokens(text: str) -> int:
    """About how many tokens a text has."""
    return math.ceil(len(text.encode("utf-8", "surrogatepass")) / _BYTES_A_TOKEN)


def estimate_image_tokens(image: ImagePart, provider: str, model: str) -> int:
    """About how many tokens an image has."""
    width, height = image.width or _UNKNOWN_SIDE, image.height or _UNKNOWN_SIDE
    if provider in ("openai", "openai-chat"):
        return _openai(width, height, model)
    if provider == "anthropic":
        return min(1_600, math.ceil(width * height / 750))
    if provider == "google":
        return _gemini(width, height, model)
    return math.ceil(width / 28) * math.ceil(height / 28)


def _openai(width: int, height: int, model: str) -> int:
    for pattern, factor, most in _PATCHES:
        if re.match(pattern, model):
            patches = min(most, math.ceil(width / 32) * math.ceil(height / 32))
            return math.ceil(patches * factor)
    base, tile = next((base, tile) for pattern, base, tile in _TILES if re.match(pattern, model))
    scale = min(1.0, 2048 / max(width, height))
    scale = min(scale, 768 / min(width, height))
    return base + tile * math.ceil(width * scale / 512) * math.ceil(height * scale / 512)


def _gemini(width: int, height: int, model: str) -> int:
    if not re.match(r"gemini-[12]\b", model):
        return 1_120
    if max(width, height) <= 384:
        return 258
    return 258 * math.ceil(width / 768) * math.ceil(height / 768)
