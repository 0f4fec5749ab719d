"""A caution: replies with too few input tokens for the images sent.

Some servers accept images and never show them to the model. Only the count of input tokens reveals it.
"""

from typing import NamedTuple

from medthink.models.tokens import estimate_text_tokens
from medthink.runs.records import Records

# The minimum tokens for an image of diagnostic size; most models use hundreds.
LEAST_IMAGE_TOKENS = 64


class ImageDoubts(NamedTuple):
    """Among replies with token counts to calls with images, those with too few input tokens."""

    replies: int
    doubtful: int


def count_image_doubts(records: Records) -> ImageDoubts:
    """Check every answered call with images."""
    replies = doubtful = 0
    for call in records.calls_with_images():
        replies += 1
        text_tokens = sum(map(estimate_text_tokens, call.texts))
        doubtful += call.input_tokens < text_tokens + LEAST_IMAGE_TOKENS * call.images
    return ImageDoubts(replies, doubtful)
