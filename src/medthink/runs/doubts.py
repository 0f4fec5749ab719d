"""A caution: replies whose input tokens are too few for the images that were sent.

Some servers take images and never show them to the model. Nothing in the reply says so but the count of input tokens.
"""

from typing import NamedTuple

from medthink.models.tokens import estimate_text_tokens
from medthink.runs.records import Records

# What an image of a diagnostic size takes at the very least; most models take hundreds.
LEAST_IMAGE_TOKENS = 64


class ImageDoubts(NamedTuple):
    """Of the replies to calls with images that count their tokens, those which count too few."""

    replies: int
    doubtful: int


def count_image_doubts(records: Records) -> ImageDoubts:
    """Look at every answered call with images."""
    replies = doubtful = 0
    for call in records.calls_with_images():
        replies += 1
        text_tokens = sum(map(estimate_text_tokens, call.texts))
        doubtful += call.input_tokens < text_tokens + LEAST_IMAGE_TOKENS * call.images
    return ImageDoubts(replies, doubtful)
