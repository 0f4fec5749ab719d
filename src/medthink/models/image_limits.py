"""A provider's limits on images, checked before anything is sent: no image is dropped or resized to fit."""

import msgspec

from medthink.models.request import ImagePart, ModelError, Request

MB = 1024 * 1024


class ImageLimits(msgspec.Struct, frozen=True, kw_only=True):
    """A provider's limits; None if it names none. Above `crowd` images, `max_crowded_side` also applies."""

    max_images: int | None = None
    max_image_bytes: int | None = None
    max_request_bytes: int | None = None
    max_side: int | None = None
    crowd: int | None = None
    max_crowded_side: int | None = None


def check_fits(request: Request, body_bytes: int, limits: ImageLimits) -> None:
    """Raise ModelError (unsupported) that names the flag which would make the request fit."""
    images = request.images
    if limits.max_images is not None and len(images) > limits.max_images:
        raise _refusal(
            f"{len(images)} images, but this model accepts at most {limits.max_images}", "lower --image-share"
        )
    if limits.max_image_bytes is not None:
        for number, image in enumerate(images, 1):
            _check_bytes(number, image, limits.max_image_bytes)
    max_side = _max_side(len(images), limits)
    if max_side is not None:
        for number, image in enumerate(images, 1):
            _check_side(number, image, max_side)
    if limits.max_request_bytes is not None and body_bytes > limits.max_request_bytes:
        raise _refusal(
            f"the request has {body_bytes / MB:.1f} MB, but this model accepts at most "
            f"{limits.max_request_bytes / MB:g} MB",
            "set --max-bytes or --max-side, or lower --image-share",
        )


def _max_side(count: int, limits: ImageLimits) -> int | None:
    if limits.crowd is not None and count > limits.crowd:
        return limits.max_crowded_side
    return limits.max_side


def _check_bytes(number: int, image: ImagePart, most: int) -> None:
    if image.size_bytes > most:
        raise _refusal(
            f"image {number} has {image.size_bytes / MB:.1f} MB, but this model accepts at most {most / MB:g} MB",
            f"set --max-bytes {most} or less",
        )


def _check_side(number: int, image: ImagePart, most: int) -> None:
    side = max(image.width or 0, image.height or 0)
    if side > most:
        raise _refusal(
            f"image {number} is {image.width}×{image.height}, but this model accepts at most {most} px per side "
            "for this many",
            f"set --max-side {most} or less",
        )


def _refusal(detail: str, remedy: str) -> ModelError:
    return ModelError("unsupported", detail, remedy=remedy)
