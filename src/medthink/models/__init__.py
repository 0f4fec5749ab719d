"""Asking a model: requests, replies, errors by kind, provider wires, the HTTP transport, limits and prices."""

from medthink.models.request import (
    Attempt,
    Effort,
    ErrorKind,
    ImagePart,
    Model,
    ModelError,
    Reply,
    Request,
    Schema,
    Stop,
    TextPart,
    Usage,
)

__all__ = [
    "Attempt",
    "Effort",
    "ErrorKind",
    "ImagePart",
    "Model",
    "ModelError",
    "Reply",
    "Request",
    "Schema",
    "Stop",
    "TextPart",
    "Usage",
]
