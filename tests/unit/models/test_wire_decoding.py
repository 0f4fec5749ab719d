"""What comes back, read or refused with the right kind."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medthink.models import ModelError, Reply, Usage
from medthink.models.wires import HttpReply, anthropic, gemini, openai_chat, openai_responses
from medthink.models.wires.failures import DETAIL_LENGTH, read_retry_after

WIRES = [openai_responses, openai_chat, anthropic, gemini]


def reply(value, status=200, **headers):
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return HttpReply(status, {"content-type": "application/json"} | headers, data)


def failure(wire, http_reply, *, wants_json=False) -> ModelError:
    with pytest.raises(ModelError) as caught:
        wire.decode(http_reply, wants_json=wants_json)
    return caught.value


STATUSES = {
    400: "bad_request", 401: "auth", 403: "auth", 404: "bad_request", 408: "timeout", 409: "server",
    413: "bad_request", 422: "bad_request", 429: "rate_limit", 500: "server", 502: "server", 503: "server",
    504: "timeout", 529: "server", 301: "bad_request", 204: "invalid_reply",
}  # fmt: skip


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("status", STATUSES)
def test_a_status_without_words_has_its_kind(wire, status):
    error = failure(wire, reply(b"", status))
    assert error.kind == STATUSES[status] and error.status == status


ERRORS = [
    (400, {"error": {"message": "bad", "type": "invalid_request_error", "code": None}}, "bad_request"),
    (429, {"error": {"message": "pay", "type": "insufficient_quota", "code": "insufficient_quota"}}, "quota"),
    (400, {"error": {"message": "filtered", "code": "content_filter"}}, "content_filter"),
    (400, {"error": {"message": "'temperature'", "code": "unsupported_parameter"}}, "unsupported"),
    (400, {"type": "error", "error": {"type": "invalid_request_error", "message": "unsupported thinking"}},
     "unsupported"),
    (400, {"error": {"code": 400, "message": "Unknown name jsonSchema", "status": "INVALID_ARGUMENT"}}, "unsupported"),
    (400, {"object": "error", "message": "At most 1 image(s) may be provided", "code": 400}, "unsupported"),
    (500, {"error": {"code": 500, "message": "image input is not supported - hint: …", "type": "server_error"}},
     "unsupported"),
    (500, {"error": {"code": 500, "message": "the image could not be read", "type": "server_error"}}, "server"),
    (422, {"detail": [{"msg": "field required"}]}, "bad_request"),
    (200, {"error": {"message": "boom", "type": "server_error"}}, "server"),
    (200, {"error": {"message": "boom", "code": 429}}, "rate_limit"),
    (200, {"error": "something"}, "server"),
    (200, {"error": {"message": "nope", "code": "invalid_api_key"}}, "auth"),
    (200, {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}, "server"),
    (200, [{"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}], "server"),
    (503, {"error": {"message": "still says", "type": "invalid_request_error"}}, "server"),
]  # fmt: skip


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(("status", "value", "kind"), ERRORS)
def test_an_error_body_has_its_kind(wire, status, value, kind):
    assert failure(wire, reply(value, status)).kind == kind


FLAGS = [
    ("Unsupported value: 'temperature' does not support 0", "--temperature"),
    ("unknown parameter seed", "--model-seed"),
    ("reasoning_effort xhigh is not supported", "--effort"),
    ("response_format json_schema is not supported", "--no-schema"),
    ("max_tokens too large", "--max-tokens"),
    ("At most 1 image(s) may be provided in one prompt", "--image-share"),
    ("image exceeds 8000 pixels", "--max-side"),
]


@pytest.mark.parametrize(("message", "flag"), FLAGS)
def test_a_complaint_about_a_parameter_names_the_flag(message, flag):
    error = failure(openai_chat, reply({"error": {"message": message, "type": "invalid_request_error"}}, 400))
    assert error.kind == "unsupported" and flag in error.remedy


@pytest.mark.parametrize("data", [b"<html><h1>413 Request Entity Too Large</h1></html>", b"", b'{"error": "no"}'])
def test_a_request_that_a_proxy_finds_too_large_names_the_flags(data):
    error = failure(openai_chat, HttpReply(413, {}, data))
    assert not error.retryable and "--image-share, --max-side or --max-bytes" in error.remedy


NOT_ANSWERS = [
    b"", b"  ", b"null", b"[]", b"{}", b'"text"', b"<html></html>", b'{"choices": [', b'{"choices": []}',
    b"\xff\xfe", b"event: x\n\n",
]  # fmt: skip


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("data", NOT_ANSWERS)
def test_what_is_no_answer_is_an_invalid_reply(wire, data):
    error = failure(wire, reply(data))
    assert error.kind == "invalid_reply" and error.retryable


WORDS = (
    "error", "choices", "message", "content", "output", "status", "candidates", "parts", "usage", "code", "type",
    "text", "finish_reason", "stop_reason", "details",
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("wire", WIRES)
@given(
    data=st.binary(max_size=80) | VALUES.map(lambda value: json.dumps(value).encode()),
    status=st.sampled_from([200, 400, 429, 500]),
    wants_json=st.booleans(),
)
def test_any_body_is_a_reply_or_a_model_error(wire, data, status, wants_json):
    try:
        assert isinstance(wire.decode(HttpReply(status, {}, data), wants_json=wants_json), Reply)
    except ModelError as error:
        assert len(error.detail) <= DETAIL_LENGTH


def chat(**message):
    reason = message.pop("finish_reason", "stop")
    usage = {"prompt_tokens": 5, "completion_tokens": 2}
    return reply({"choices": [{"message": message, "finish_reason": reason}], "usage": usage, "model": "m"})


@pytest.mark.parametrize(
    "text", ['{"a": 1', "Answer: A", '{"a": 1} trailing', '{"a": 1, "a": 2}', '{"a": NaN}', '```json\n{"a":1}\n```']
)
def test_a_schema_answer_that_is_not_json_is_an_error_with_usage(text):
    error = failure(openai_chat, chat(content=text), wants_json=True)
    assert error.kind == "invalid_json"
    assert error.usage == Usage(5, 0, 2, 0)
    assert openai_chat.decode(chat(content=text), wants_json=False).text == text


def test_a_cut_off_schema_answer_is_truncated_not_invalid():
    answer = openai_chat.decode(chat(content='{"a": 1', finish_reason="length"), wants_json=True)
    assert answer.stop == "truncated" and answer.json is None and answer.text == '{"a": 1'


def test_an_empty_answer_is_an_error_that_was_paid_for():
    for text in ("", " \n", None, 7):
        error = failure(openai_chat, chat(content=text))
        assert error.kind == "no_answer" and error.usage == Usage(5, 0, 2, 0)


def test_a_tool_call_without_a_text_is_no_answer():
    error = failure(openai_chat, chat(content=None, finish_reason="tool_calls"))
    assert error.kind == "no_answer" and "tool_calls" in error.detail


def test_local_reasoning_is_read_and_missing_usage_is_none():
    value = {"choices": [{"message": {"content": "x", "reasoning_content": "hm"}, "finish_reason": "stop"}]}
    answer = openai_chat.decode(reply(value), wants_json=False)
    assert answer.reasoning == "hm" and answer.usage is None


def test_a_failed_response_is_the_error_inside_it():
    value = {"status": "failed", "output": [], "error": {"code": "server_error", "message": "boom"}}
    assert failure(openai_responses, reply(value)).kind == "server"
    value["error"] = {"code": "invalid_prompt", "message": "no"}
    assert failure(openai_responses, reply(value)).kind == "content_filter"


def test_a_blocked_gemini_prompt_is_a_filtered_reply():
    value = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 9}}
    answer = gemini.decode(reply(value), wants_json=True)
    assert answer.stop == "filtered" and answer.usage == Usage(input=9)


def test_gemini_says_how_long_to_wait_in_its_body():
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17.5s"}]
    value = {"error": {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED", "details": details}}
    error = failure(gemini, reply(value, 429))
    assert error.kind == "rate_limit" and error.retry_after_s == 17.5


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 30.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "1e999"}, None),
    ],
)
def test_retry_after_in_all_its_forms(headers, wait_s):
    assert read_retry_after(headers) == wait_s
