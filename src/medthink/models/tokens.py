"""Estimates of tokens: four bytes of text are one, and images count by the providers' published rules."""

import math

from msgspec.structs import replace

from medthink.models.image_detail import see_image
from medthink.models.request import ImagePart, Request, TextPart

_BYTES_A_TOKEN = 4
_FRAME_TOKENS = 12


def estimate_input_tokens(request: Request, provider: str, model: str) -> int:
    """The approximate number of input tokens of the request, images included."""
    images = sum(see_image(image, provider, model, request.image_detail).tokens for image in request.images)
    return _FRAME_TOKENS + estimate_text_tokens(request.system) + sum(map(_text_tokens, request.parts)) + images


def most_input_tokens(request: Request, provider: str, model: str) -> int:
    """The most that the input may come to: a tokeniser may make twice as many tokens of a text as is usual."""
    texts = estimate_text_tokens(request.system) + sum(map(_text_tokens, request.parts))
    return estimate_input_tokens(request, provider, model) + texts


def estimate_text_tokens(text: str) -> int:
    """The approximate number of tokens of a text."""
    return math.ceil(len(text.encode("utf-8", "surrogatepass")) / _BYTES_A_TOKEN)


def beginning_of(request: Request) -> Request:
    """The request up to its last image: what another with the same beginning can find in a provider's cache."""
    images = [number for number, part in enumerate(request.parts) if isinstance(part, ImagePart)]
    return replace(request, parts=request.parts[: images[-1] + 1] if images else (), sample=0, seed=None)


def _text_tokens(part: TextPart | ImagePart) -> int:
    return estimate_text_tokens(part.text) if isinstance(part, TextPart) else 0
