"""Usage records and what their providers bill for them: one row a rule. The cost is never below the invoice."""

import json

import pytest

from medthink.models.prices import load_prices
from medthink.models.wires import HttpReply, anthropic, gemini, openai_chat, openai_responses

PRICES = load_prices()
M = 1_000_000
# Where the rules stand; read in November 2026.
OPENAI = "developers.openai.com/api/docs/pricing"
CACHING = "developers.openai.com/api/docs/guides/prompt-caching"
PRIORITY = "openai.com/api-priority-processing"
ANTHROPIC = "platform.claude.com/docs/en/about-claude/pricing"
GOOGLE = "ai.google.dev/gemini-api/docs/pricing"
SERVERS = "usage as servers of this protocol were seen to send it"


def chat(usage, **more):
    return openai_chat, {"choices": [{"message": {"content": "A"}, "finish_reason": "stop"}], "usage": usage} | more


def responses(usage, **more):
    message = {"type": "message", "content": [{"type": "output_text", "text": "A"}]}
    return openai_responses, {"status": "completed", "output": [message], "usage": usage} | more


def claude(usage):
    return anthropic, {"content": [{"type": "text", "text": "A"}], "stop_reason": "end_turn", "usage": usage}


def google(usage):
    candidate = {"content": {"parts": [{"text": "A"}]}, "finishReason": "STOP"}
    return gemini, {"candidates": [candidate], "usageMetadata": usage}


def tokens(inputs, outputs, *, cached=0, reasoning=0, total=None, written=0):
    """A usage object of the Responses API."""
    return {
        "input_tokens": inputs, "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
        "output_tokens": outputs, "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": inputs + outputs if total is None else total,
    }  # fmt: skip


def chat_tokens(inputs, outputs, *, reasoning=0, cached=0, total=None):
    """A usage object of Chat Completions."""
    return {
        "prompt_tokens": inputs, "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens": outputs, "completion_tokens_details": {"reasoning_tokens": reasoning},
        **({} if total is None else {"total_tokens": total}),
    }  # fmt: skip


# The rule, its source, the model, the reply, what is billed in millionths of a dollar, in a batch, "at least".
EXACT = [
    ("parts at list price", OPENAI, "openai/gpt-5.4", responses(tokens(1000, 100)), 1000 * 2.5 + 100 * 15, False),
    ("cached input", CACHING, "openai/gpt-5.4", responses(tokens(1000, 100, cached=800)),
     200 * 2.5 + 800 * 0.25 + 100 * 15, False),
    ("reasoning is output", OPENAI, "openai/gpt-5.4", responses(tokens(1000, 100, reasoning=90)),
     1000 * 2.5 + 100 * 15, False),
    ("half price in a batch, cached too", OPENAI, "openai/gpt-5.4", responses(tokens(1000, 100, cached=800)),
     (200 * 2.5 + 800 * 0.25 + 100 * 15) / 2, True),
    ("long prompts: twice in, 1.5 times out", OPENAI, "openai/gpt-5.4", responses(tokens(272_001, 100)),
     272_001 * 5 + 100 * 22.5, False),
    ("up to 272,000 tokens they are not long", OPENAI, "openai/gpt-5.5", responses(tokens(272_000, 100)),
     272_000 * 5 + 100 * 30, False),
    ("long prompts in a batch", OPENAI, "openai/gpt-5.5", responses(tokens(300_000, 100, cached=100_000)),
     (200_000 * 10 + 100_000 * 1 + 100 * 45) / 2, True),
    ("the flex tier", OPENAI, "openai/gpt-5.5", responses(tokens(1000, 100), service_tier="flex"),
     (1000 * 5 + 100 * 30) / 2, False),
    ("the priority tier", PRIORITY, "openai/gpt-5.5", responses(tokens(1000, 100, cached=500), service_tier="priority"),
     500 * 12.5 + 500 * 1.25 + 100 * 75, False),
    ("the priority tier in Chat Completions", PRIORITY, "openai-chat/gpt-5.4",
     chat(chat_tokens(1000, 100), service_tier="priority"), 1000 * 5 + 100 * 30, False),
    ("the default tier", OPENAI, "openai/gpt-5.4", responses(tokens(1000, 100), service_tier="default"),
     1000 * 2.5 + 100 * 15, False),
    ("cache writes", CACHING, "openai/gpt-5.6-sol", responses(tokens(1000, 100, written=900)),
     100 * 4 + 900 * 5 + 100 * 20, False),
    ("reads, writes and the rest of a prompt", CACHING, "openai/gpt-5.6-sol",
     responses(tokens(1000, 100, cached=600, written=300)), 100 * 4 + 600 * 0.4 + 300 * 5 + 100 * 20, False),
    ("cache writes for half a day", CACHING, "openai/gpt-6.1-terra", responses(
        {"input_tokens": 1000, "input_tokens_details": {
            "cache_write_tokens": 900, "cache_write_tokens_details": {"ttl_12h_tokens": 600}},
         "output_tokens": 100, "total_tokens": 1100}), 100 * 1 + 300 * 1.25 + 600 * 2.5 + 100 * 5, False),
    ("reasoning beside the completion", SERVERS, "openai-chat/gpt-5.4",
     chat(chat_tokens(1000, 20, reasoning=900, total=1920)), 1000 * 2.5 + 920 * 15, False),
    ("less reasoning than completion, beside it", SERVERS, "openai-chat/gpt-5.4",
     chat(chat_tokens(1000, 200, reasoning=150, total=1350)), 1000 * 2.5 + 350 * 15, False),
    ("cache reads", ANTHROPIC, "anthropic/claude-opus-5",
     claude({"input_tokens": 10, "cache_read_input_tokens": 990, "output_tokens": 100}),
     10 * 5 + 990 * 0.5 + 100 * 25, False),
    ("cache writes for five minutes", ANTHROPIC, "anthropic/claude-opus-5",
     claude({"input_tokens": 10, "cache_creation_input_tokens": 990, "output_tokens": 100}),
     10 * 5 + 990 * 6.25 + 100 * 25, False),
    ("cache writes of two lifetimes", ANTHROPIC, "anthropic/claude-opus-5",
     claude({"input_tokens": 10, "cache_creation_input_tokens": 990, "output_tokens": 100,
             "cache_creation": {"ephemeral_5m_input_tokens": 400, "ephemeral_1h_input_tokens": 590}}),
     10 * 5 + 400 * 6.25 + 590 * 10 + 100 * 25, False),
    ("cache writes in a batch", ANTHROPIC, "anthropic/claude-opus-5",
     claude({"input_tokens": 10, "cache_creation_input_tokens": 990, "output_tokens": 100, "service_tier": "batch"}),
     (10 * 5 + 990 * 6.25 + 100 * 25) / 2, True),
    ("long prompts of Sonnet, by all input", ANTHROPIC, "anthropic/claude-sonnet-4-5",
     claude({"input_tokens": 1000, "cache_read_input_tokens": 200_000, "output_tokens": 100}),
     1000 * 6 + 200_000 * 0.6 + 100 * 22.5, False),
    ("thinking is output", ANTHROPIC, "anthropic/claude-opus-5",
     claude({"input_tokens": 1000, "output_tokens": 100, "output_tokens_details": {"thinking_tokens": 80}}),
     1000 * 5 + 100 * 25, False),
    ("thoughts beside the candidates", GOOGLE, "google/gemini-2.5-pro",
     google({"promptTokenCount": 1000, "candidatesTokenCount": 20, "thoughtsTokenCount": 80, "totalTokenCount": 1100}),
     1000 * 1.25 + 100 * 10, False),
    ("tool prompts are input", GOOGLE, "google/gemini-2.5-pro",
     google({"promptTokenCount": 1000, "toolUsePromptTokenCount": 500, "candidatesTokenCount": 20,
             "totalTokenCount": 1520}), 1500 * 1.25 + 20 * 10, False),
    ("cached tokens of a batch at the full cache price", GOOGLE, "google/gemini-2.5-pro",
     google({"promptTokenCount": 1000, "cachedContentTokenCount": 900, "candidatesTokenCount": 10}),
     (100 * 1.25 + 10 * 10) / 2 + 900 * 0.125, True),
    ("long prompts", GOOGLE, "google/gemini-2.5-pro",
     google({"promptTokenCount": 200_001, "candidatesTokenCount": 100}), 200_001 * 2.5 + 100 * 15, False),
    ("a blocked prompt has no candidates", GOOGLE, "google/gemini-2.5-pro",
     google({"promptTokenCount": 1000, "totalTokenCount": 1000}), 1000 * 1.25, False),
]  # fmt: skip
# What does not add up is read as the dearer of its meanings, and shown as "at least".
DOUBTFUL = [
    ("more reasoning than completion, without a total", SERVERS, "openai-chat/gpt-5.4",
     chat(chat_tokens(1000, 20, reasoning=900)), 1000 * 2.5 + 920 * 15, False),
    ("a total larger than its parts", SERVERS, "openai-chat/gpt-5.4",
     chat(chat_tokens(1000, 20, total=1500)), 1000 * 2.5 + 500 * 15, False),
    ("a total smaller than its parts", SERVERS, "openai-chat/gpt-5.4",
     chat(chat_tokens(1000, 20, total=900)), 1000 * 2.5 + 20 * 15, False),
    ("more cached than there is", SERVERS, "openai-chat/gpt-5.4",
     chat(chat_tokens(1000, 20, cached=1200)), 1000 * 2.5 + 1200 * 0.25 + 20 * 15, False),
    ("a total that nothing accounts for", GOOGLE, "google/gemini-2.5-pro",
     google({"promptTokenCount": 1000, "candidatesTokenCount": 20, "totalTokenCount": 9000}),
     1000 * 1.25 + 8000 * 10, False),
    ("another cache lifetime than the sum says", ANTHROPIC, "anthropic/claude-opus-5",
     claude({"input_tokens": 10, "cache_creation_input_tokens": 300, "output_tokens": 100,
             "cache_creation": {"ephemeral_5m_input_tokens": 400, "ephemeral_1h_input_tokens": 590}}),
     10 * 5 + 400 * 6.25 + 590 * 10 + 100 * 25, False),
]  # fmt: skip
UNKNOWN = [
    chat({}),
    chat(None),
    chat({"total_tokens": 1000}),
    chat({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}),
    chat({"prompt_tokens": 0, "completion_tokens": 40, "total_tokens": 40}),
    chat({"prompt_tokens": 40}),
    responses({"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}),
    claude({"input_tokens": 0, "output_tokens": 0}),
    google({}),
    google({"totalTokenCount": 1000}),
    google({"promptTokenCount": 0, "candidatesTokenCount": 0, "totalTokenCount": 0}),
]


def read(reply):
    wire, body = reply
    return wire.decode(HttpReply(200, {}, json.dumps(body).encode()), wants_json=False)


def name(row):
    return row[0]


@pytest.mark.parametrize("row", EXACT, ids=name)
def test_the_cost_is_the_invoice(row):
    _, _, spec, reply, billed, is_batch = row
    usage = read(reply).usage
    assert PRICES.find(spec).cost_usd(usage, is_batch=is_batch) == pytest.approx(billed / M)
    assert not usage.is_least


@pytest.mark.parametrize("row", DOUBTFUL, ids=name)
def test_a_usage_that_does_not_add_up_is_read_as_the_dearer(row):
    _, _, spec, reply, billed, is_batch = row
    answer = read(reply)
    assert PRICES.find(spec).cost_usd(answer.usage, is_batch=is_batch) == pytest.approx(billed / M)
    assert answer.usage.is_least == (spec != "anthropic/claude-opus-5")
    assert bool(answer.doubts) == answer.usage.is_least


@pytest.mark.parametrize("reply", UNKNOWN, ids=str)
def test_a_usage_without_counts_is_unknown_not_nothing(reply):
    assert read(reply).usage is None


def test_a_tier_without_a_price_is_never_cheaper_than_the_standard():
    price = PRICES.find("openai/gpt-5.1")
    standard, flex, priority, ultrafast = (
        price.cost_usd(read(responses(tokens(1000, 100), service_tier=tier)).usage)
        for tier in ("default", "flex", "priority", "ultrafast")
    )
    assert flex == standard < priority
    assert ultrafast is None, "nobody knows its price"
