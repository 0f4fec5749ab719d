"""Whatever a server sends back, a wire gives a reply that can be kept or a ModelError: nothing else, ever."""

import json
import random
from importlib import import_module

import msgspec
import pytest
from fault_server import answer_body, error_body

from medthink.core.jsonio import parse_json
from medthink.models.request import ModelError, Reply
from medthink.models.wires import HttpReply

PATHS = {
    "openai_chat": "/v1/chat/completions",
    "server_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1/models/m:generateContent",
}
ROUNDS = 2_500
ODD_VALUES = (
    None, True, -1, -(2**70), 2**70, 1e308, 0.5, float("nan"), "", "12", "-3", "x" * 50, "\ud800", "\x00", [], {},
    [None], [[]], {"text": "a"}, [{"type": "text", "text": "A"}], [{"type": "output_text", "text": None}], "stop",
)  # fmt: skip
ODD_BYTES = (
    b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\x00", b"\\ud800", b"\\u0000", b'"', b"{", b"[" * 2_000, b"9" * 400,
)  # fmt: skip
ODD_HEADERS = (
    "", "-1", "0", "1e999", "9" * 400, "nan", "inf", "0x10", "٣", "1_0", " 5 ", "5, 6", "32 Foo", "\x00", "é",
    "Wed, 21 Oct 2026 07:28:00 +9999999", "Wed, 21 Oct 2026 07:28:00 +9223372036854775807",
    "Wed, 21 Oct 2026 07:28:00 -0000", "Mon, 01 Jan 0001 00:00:00 +2359", "Fri, 31 Dec 9999 23:59:59 -2359",
    "Fri, 31 Dec 9999 23:59:59 -9999", "Sat, 01 Jan 2000 99:99:99 GMT", "31 Dec 99999999999999999999 00:00:00 GMT",
)  # fmt: skip
STATUSES = (
    200, 200, 200, 200, 200, 200, 201, 202, 204, 301, 307, 400, 401, 403, 404, 413, 422, 429, 500, 503, 999,
)  # fmt: skip
SCHEMA = {"json_schema": {"schema": {"type": "object", "properties": {"answer": {"type": "string"}}}}}


def good_body(path: str, chance: random.Random) -> dict:
    fault = chance.choice(["", "", "", "refusal", "length", "filter", "invalid-json", "blind"])
    asked = {"model": "m"} if chance.random() < 0.5 else {"model": "m", "response_format": SCHEMA}
    return answer_body(fault, {"path": path, "images": []}, asked)


def spoil_value(value, chance: random.Random):
    """The value with one place in it replaced, dropped or doubled."""
    if isinstance(value, dict) and value and chance.random() < 0.8:
        name = chance.choice(sorted(value))
        if chance.random() < 0.15:
            return {key: part for key, part in value.items() if key != name}
        return value | {name: spoil_value(value[name], chance)}
    if isinstance(value, list) and value and chance.random() < 0.8:
        place = chance.randrange(len(value))
        return [*value[:place], spoil_value(value[place], chance), *value[place:][chance.randrange(2) :]]
    return chance.choice(ODD_VALUES)


def spoil_bytes(body: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(body) + 1)
    match chance.randrange(4):
        case 0:
            return body[:place]
        case 1:
            return body[:place] + chance.choice(ODD_BYTES) + body[place:]
        case 2:
            return body[:place] + bytes([chance.randrange(256)]) + body[place + 1 :]
        case _:
            return chance.randbytes(chance.randrange(60))


def make_reply(path: str, chance: random.Random) -> HttpReply:
    value = good_body(path, chance)
    if chance.random() < 0.2:
        value = json.loads(error_body(path, chance.choice(["api_error", "invalid_request_error"]), "no", 429))
    for _ in range(chance.randrange(3)):
        value = spoil_value(value, chance)
    body = json.dumps(value).encode()
    if chance.random() < 0.3:
        body = spoil_bytes(body, chance)
    status = chance.choice(
        [200, 200, 200, 200, 201, 202, 204, 301, 307, 400, 401, 403, 404, 413, 422, 429, 500, 503, 999]
    )
    names = ("retry-after", "retry-after-ms", "date", "content-type", "location")
    return HttpReply(status, {name: chance.choice(ODD_HEADERS) for name in names if chance.random() < 0.4}, body)


@pytest.mark.parametrize("name", PATHS)
def test_whatever_comes_back_is_a_reply_that_can_be_kept_or_a_model_error(name):
    wire = import_module(f"medthink.models.wires.{name}")
    chance = random.Random(f"fuzz {name}")
    replies = 0
    for number in range(ROUNDS):
        reply = make_reply(PATHS[name], chance)
        try:
            found = wire.decode(reply, wants_json=number % 2 == 0)
        except ModelError as error:
            check_error(error)
            continue
        replies += 1
        check_reply(found)
    assert replies > ROUNDS / 10, "most of what is sent must not be hopeless"


def check_error(error: ModelError) -> None:
    str(error).encode()
    assert error.retry_after_s is None or 0 <= error.retry_after_s < float("inf")
    check_usage(error.usage)


def check_reply(reply: Reply) -> None:
    """It is kept in the ledger and read again."""
    kept = msgspec.json.encode(reply)
    parse_json(kept)
    assert msgspec.json.decode(kept, type=Reply) == reply
    check_usage(reply.usage)


def check_usage(usage) -> None:
    if usage is None:
        return
    assert 0 <= usage.cached <= usage.input < 2**53
    assert 0 <= usage.reasoning <= usage.output < 2**53
