"""Good answers in odd replies: the answer is used, and a field beside it that makes no sense is unknown."""

import json

import pytest

from medthink.models.request import FAILURES, ModelError, Usage
from medthink.models.wires import HttpReply, anthropic, gemini, openai_chat, openai_responses
from medthink.models.wires.failures import read_retry_after


def chat(usage, **changes) -> dict:
    choice = {"message": {"content": "A"}, "finish_reason": "stop"}
    return {"choices": [choice], "model": "m", "usage": usage} | changes


def responses(usage, **changes) -> dict:
    item = {"type": "message", "content": [{"type": "output_text", "text": "A"}]}
    return {"status": "completed", "output": [item], "model": "m", "usage": usage} | changes


def messages(usage, **changes) -> dict:
    content = [{"type": "text", "text": "A"}]
    return {"content": content, "stop_reason": "end_turn", "model": "m", "usage": usage} | changes


def contents(usage, **changes) -> dict:
    candidate = {"content": {"parts": [{"text": "A"}]}, "finishReason": "STOP"}
    return {"candidates": [candidate], "modelVersion": "m", "usageMetadata": usage} | changes


# A wire, a good body for it, and the names of its counts: input, output, cached, reasoning.
FORMS = {
    "chat": (openai_chat, chat, ("prompt_tokens", "completion_tokens", "prompt_tokens_details.cached_tokens",
                                 "completion_tokens_details.reasoning_tokens")),
    "responses": (openai_responses, responses, ("input_tokens", "output_tokens", "input_tokens_details.cached_tokens",
                                                "output_tokens_details.reasoning_tokens")),
    "messages": (anthropic, messages, ("input_tokens", "output_tokens", "cache_read_input_tokens",
                                       "output_tokens_details.thinking_tokens")),
    "contents": (gemini, contents, ("promptTokenCount", "candidatesTokenCount", "cachedContentTokenCount",
                                    "thoughtsTokenCount")),
}  # fmt: skip
every_form = pytest.mark.parametrize("form", FORMS)


def usage_of(form: str, *counts) -> dict:
    made: dict = {}
    for name, count in zip(FORMS[form][2], counts, strict=False):
        outer, _, inner = name.partition(".")
        made[outer] = {inner: count} if inner else count
    return made


def read(form: str, body, *, status=200):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return FORMS[form][0].decode(HttpReply(status, {"content-type": "application/json"}, data), wants_json=False)


@every_form
@pytest.mark.parametrize("odd", [-5, 1.5, "many", True, [3], {"n": 3}, 10**30, "-3"])
def test_a_count_that_makes_no_sense_is_unknown_and_a_doubt(form, odd):
    for counts in ((odd, 7), (100, odd)):
        reply = read(form, FORMS[form][1](usage_of(form, *counts)))
        assert (reply.text, reply.usage) == ("A", None)
        assert len(reply.doubts) == 1


@every_form
@pytest.mark.parametrize("odd", ["usage", 7, [1]])
def test_a_usage_that_is_no_object_is_a_doubt(form, odd):
    reply = read(form, FORMS[form][1](odd))
    assert (reply.text, reply.usage, reply.doubts) == ("A", None, ("usage",))


@every_form
def test_a_usage_that_is_not_given_is_unknown_without_a_doubt(form):
    reply = read(form, FORMS[form][1](None))
    assert (reply.text, reply.usage, reply.doubts) == ("A", None, ())


@every_form
def test_counts_as_text_or_with_a_decimal_point_are_counts(form):
    reply = read(form, FORMS[form][1](usage_of(form, "100", 7.0)))
    assert (reply.usage.input, reply.usage.output, reply.doubts) == (100, 7, ())


@pytest.mark.parametrize("form", ["chat", "responses", "contents"])
def test_more_cached_than_there_is_stands_beside_it(form):
    reply = read(form, FORMS[form][1](usage_of(form, 100, 7, 101)))
    assert (reply.usage, reply.doubts) == (Usage(201, 101, 7, 0, is_least=True), ("cached tokens",))


@pytest.mark.parametrize("form", ["chat", "responses", "messages"])
def test_more_reasoning_than_there_is_output_stands_beside_it(form):
    reply = read(form, FORMS[form][1](usage_of(form, 100, 7, 0, 8)))
    assert (reply.usage, reply.doubts) == (Usage(100, 0, 15, 8, is_least=True), ("reasoning tokens",))


@every_form
@pytest.mark.parametrize("name", [None, 3, ["m"]])
def test_a_model_name_that_is_no_text_is_no_name(form, name):
    field = "modelVersion" if form == "contents" else "model"
    assert read(form, FORMS[form][1](None, **{field: name})).model == ""


@every_form
def test_any_status_of_success_will_do(form):
    assert read(form, FORMS[form][1](None), status=201).text == "A"


def test_content_as_a_list_of_parts_is_read():
    parts = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "the answer "}, "is A"]
    assert read("chat", chat(None, choices=[{"message": {"content": parts}, "finish_reason": "stop"}])).text == (
        "the answer is A"
    )


@every_form
def test_a_reply_without_an_answer_has_cost_its_tokens(form):
    field = {"chat": "choices", "responses": "output", "messages": "content", "contents": "candidates"}[form]
    with pytest.raises(ModelError) as caught:
        read(form, FORMS[form][1](usage_of(form, 100, 7), **{field: []}))
    assert caught.value.kind in ("invalid_reply", "no_answer") and caught.value.usage == Usage(100, 0, 7, 0)


@every_form
def test_one_byte_that_is_no_utf_8_ends_the_call_and_its_tokens_count(form):
    body = json.dumps(FORMS[form][1](usage_of(form, 100, 7))).encode()
    with pytest.raises(ModelError) as caught:
        read(form, body.replace(b'"A"', b'"A\xff"'))
    assert (caught.value.kind, caught.value.usage) == ("invalid_reply", Usage(100, 0, 7, 0))


@every_form
def test_a_refusal_by_status_is_told_in_the_providers_own_words(form):
    with pytest.raises(ModelError, match="this picture is not allowed"):
        read(form, {"error": {"message": "this picture is not allowed", "type": "permission_error"}}, status=403)


@every_form
@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("Your chosen model requires moderation and your input was flagged for violence.", "content_filter"),
        ("The prompt was blocked by our content policy", "content_filter"),
        ("Request rejected by the safety system", "content_filter"),
        ("Your account was flagged: contact support", "auth"),
        ("The key has no access to this model", "auth"),
    ],
)
def test_moderation_with_status_403_is_a_refusal_of_the_case_and_no_trouble_with_the_key(form, message, kind):
    with pytest.raises(ModelError) as caught:
        read(form, {"error": {"code": 403, "message": message}}, status=403)
    assert caught.value.kind == kind


@every_form
def test_a_redirect_is_named(form):
    with pytest.raises(ModelError, match="redirects to https://there") as caught:
        FORMS[form][0].decode(HttpReply(307, {"location": "https://there/v1"}, b""), wants_json=False)
    assert "--base-url" in caught.value.remedy


@pytest.mark.parametrize("zone", ["+9223372036854775807", "-99999999999999999999", "+9999", "+2360"])
def test_a_date_with_an_absurd_offset_is_no_date(zone):
    odd = f"Wed, 21 Oct 2026 07:28:00 {zone}"
    good = "Wed, 21 Oct 2026 07:28:00 GMT"
    assert read_retry_after({"retry-after": odd}) is None
    assert read_retry_after({"retry-after": good, "date": odd}) is not None


@every_form
@pytest.mark.parametrize(
    "bend",
    [
        lambda body: b"\xef\xbb\xbf" + body,
        lambda body: b"data: " + body + b"\n\ndata: [DONE]\n\n",
        lambda body: body + b"\n" + body + b"\n",
    ],
    ids=["byte-order mark", "one event", "the same line twice"],
)
def test_a_body_that_is_nearly_json_is_read(form, bend):
    body = json.dumps(FORMS[form][1](usage_of(form, 100, 7))).encode()
    reply = read(form, bend(body))
    assert (reply.text, reply.usage) == ("A", Usage(100, 0, 7, 0))


@every_form
def test_half_a_character_is_replaced(form):
    body = json.dumps(FORMS[form][1](usage_of(form, 100, 7))).encode().replace(b'"A"', rb'"A \ud83d"')
    assert read(form, body).text == "A \N{REPLACEMENT CHARACTER}"
    # A backslash before it is one in the text.
    body = json.dumps(FORMS[form][1](usage_of(form, 100, 7))).encode().replace(b'"A"', rb'"A \\ud83d"')
    assert read(form, body).text == r"A \ud83d"


@pytest.mark.parametrize("form", ["chat", "responses", "messages"])
def test_two_different_answers_in_one_body_are_none(form):
    one, other = (json.dumps(FORMS[form][1](usage_of(form, 100, out))).encode() for out in (7, 8))
    with pytest.raises(ModelError) as caught:
        read(form, one + b"\n" + other)
    assert caught.value.kind == "invalid_reply" and caught.value.is_billed


@every_form
def test_an_error_in_a_good_status_counts_its_tokens(form):
    body = FORMS[form][1](usage_of(form, 100, 7), error={"message": "out of memory", "type": "server_error"})
    for field in ("choices", "output", "content", "candidates"):
        body.pop(field, None)
    with pytest.raises(ModelError, match="out of memory") as caught:
        read(form, body)
    assert (caught.value.kind, caught.value.usage) == ("server", Usage(100, 0, 7, 0))


ENDINGS = {
    "chat": lambda word: chat(None, choices=[{"message": {"content": "A"}, "finish_reason": word}]),
    "messages": lambda word: messages(None, stop_reason=word),
    "contents": lambda word: contents(None, candidates=[{"content": {"parts": [{"text": "A"}]}, "finishReason": word}]),
    "responses": lambda word: responses(None, status="incomplete", incomplete_details={"reason": word}),
}


@every_form
@pytest.mark.parametrize(
    ("word", "stop", "kept"),
    [
        ("eos", "end", "eos"), (None, "end", "none"), (7, "end", "none"), ("tool_calls", "end", "tool_calls"),
        ("length", "truncated", ""), ("MAX_TOKENS", "truncated", ""), ("max_new_tokens", "truncated", ""),
    ],
)  # fmt: skip
def test_an_answer_is_whole_unless_its_end_says_otherwise(form, word, stop, kept):
    reply = read(form, ENDINGS[form](word))
    assert (reply.text, reply.stop, reply.stop_word) == ("A", stop, kept)


@every_form
@pytest.mark.parametrize(
    ("text", "reasoning"),
    [
        ("<think>first B,\nno</think>\n\nA", "first B,\nno"),
        ("\n<thinking>hm</thinking>A", "hm"),
        ("◁think▷hm◁/think▷A", "hm"),
        ("the template opened it</think>A", "the template opened it"),
        ("<THINK></THINK>A", None),
    ],
)
def test_reasoning_before_the_answer_is_split_off(form, text, reasoning):
    body = json.dumps(FORMS[form][1](None), ensure_ascii=False).replace('"A"', json.dumps(text)).encode()
    reply = read(form, body)
    assert (reply.text, reply.reasoning) == ("A", reasoning)


def test_an_answer_in_json_keeps_what_it_says_of_marks():
    text = '{"a": "it wrote </think>"}'
    body = json.dumps(chat(None, choices=[{"message": {"content": text}, "finish_reason": "stop"}])).encode()
    reply = openai_chat.decode(HttpReply(200, {}, body), wants_json=True)
    assert (reply.text, reply.reasoning) == (text, None)


@every_form
def test_reasoning_that_never_ends_is_no_answer_and_asked_once_more(form):
    body = json.dumps(FORMS[form][1](usage_of(form, 100, 7))).replace('"A"', '"<think>and so on"').encode()
    with pytest.raises(ModelError, match="reasoning without an answer") as caught:
        read(form, body)
    assert (caught.value.kind, FAILURES["no_answer"].tries, caught.value.usage) == ("no_answer", 2, Usage(100, 0, 7, 0))
