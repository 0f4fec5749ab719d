"""Request bodies in which images bypass the JSON encoder.

A wire builds its body as plain data with a mark where an image's base64 belongs. The small rest is encoded, split at
the marks, and the images' bytes are inserted unchanged.
"""

import secrets
from typing import Any

from medthink.core.jsonio import encode_json
from medthink.models.request import Request

# Random for every process, so that no text can contain it.
IMAGE_MARK = secrets.token_hex(16)


def join_images(body: dict[str, Any], request: Request) -> list[bytes]:
    """Encode the body and insert each image at its mark."""
    images = request.images
    pieces = encode_json(body).split(IMAGE_MARK.encode())
    chunks = [pieces[0]]
    for image, piece in zip(images, pieces[1:], strict=True):
        chunks.append(image.base64)
        chunks.append(piece)
    return chunks


def drop_absent(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields that are set: None means not set, and is not sent."""
    return {name: value for name, value in fields.items() if value is not None}
