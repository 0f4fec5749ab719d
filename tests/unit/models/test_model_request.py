"""Requests and replies as values."""

import base64
import subprocess
import sys
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medthink.core.digest import digest_bytes
from medthink.models import ImagePart, ModelError, Request, Schema, TextPart, Usage
from medthink.models.request import FAILURES, ErrorKind

IMAGE = ImagePart.from_bytes(b"pixels", "image/png", width=10, height=20)
BASE = Request(system="s", parts=(TextPart("t"), IMAGE), max_tokens=9)


@given(st.binary(max_size=50))
def test_an_image_keeps_its_bytes_digest_and_size(data):
    image = ImagePart.from_bytes(data, "image/jpeg")
    assert base64.b64decode(image.base64) == data
    assert image.digest == digest_bytes(data)
    assert image.size_bytes == len(data)


CHANGES = [
    {"system": "S"},
    {"parts": (IMAGE, TextPart("t"))},
    {"parts": (TextPart("t"), ImagePart.from_bytes(b"other", "image/png"))},
    {"parts": (TextPart("t"), ImagePart.from_bytes(b"pixels", "image/jpeg"))},
    {"schema": Schema("a", {"type": "object"})},
    {"max_tokens": 10},
    {"temperature": 0.0},
    {"seed": 0},
    {"effort": "none"},
    {"image_detail": "low"},
    {"sample": 1},
]


def test_every_field_is_part_of_the_key():
    keys = {BASE.key(), *(msgspec.structs.replace(BASE, **change).key() for change in CHANGES)}
    assert len(keys) == len(CHANGES) + 1
    assert {name for change in CHANGES for name in change} == set(Request.__struct_fields__) - {
        "is_json_checked",
        "service_tier",
        "is_repeated",
    }


@pytest.mark.parametrize("change", [{"is_json_checked": False}, {"service_tier": "flex"}])
def test_how_a_reply_is_read_and_served_is_no_part_of_what_was_asked(change):
    assert msgspec.structs.replace(BASE, **change).key() == BASE.key()


def test_equal_requests_have_equal_keys_and_the_content_holds_no_image_bytes():
    again = Request(system="s", parts=(TextPart("t"), ImagePart.from_bytes(b"pixels", "image/png")), max_tokens=9)
    assert again.key() == BASE.key()
    assert IMAGE.base64.decode() not in str(BASE.content())
    assert IMAGE.base64.decode() not in repr(BASE)


def test_usage_adds_up():
    assert Usage(1, 2, 3, 4) + Usage(10, 20, 30, 40) == Usage(11, 22, 33, 44)


def test_every_kind_of_failure_has_its_rule():
    assert set(FAILURES) == set(get_args(ErrorKind))


@pytest.mark.parametrize(
    ("error", "is_billed"),
    [
        (ModelError("timeout", "x"), True),
        (ModelError("invalid_reply", "x", status=200), True),
        (ModelError("server", "x", status=500), False),
        (ModelError("server", "an error in a body that came with a good status", status=200), True),
        (ModelError("server", "x", status=500, usage=Usage(input=5)), True),
        (ModelError("rate_limit", "x", status=429), False),
    ],
)
def test_what_was_answered_or_lost_may_have_been_billed(error, is_billed):
    assert error.is_billed is is_billed


@pytest.mark.parametrize(("kind", "retryable"), [("timeout", True), ("auth", False), ("invalid_json", True)])
def test_retryable_follows_from_the_kind(kind, retryable):
    assert ModelError(kind, "x").retryable is retryable
    assert ModelError(kind, "x").exit_code == 3


def test_importing_the_room_loads_no_http_client_and_no_wire():
    code = (
        "import sys, medthink.models, medthink.models.catalog, medthink.models.prices;"
        "print([m for m in sys.modules if m == 'aiohttp' or m.startswith('medthink.models.wires.')])"
    )
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert output.strip() == "[]"
