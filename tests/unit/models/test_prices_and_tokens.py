"""Prices, and the estimates shown before spending."""

import datetime

import pytest

from medthink.core.errors import DataError, UsageError
from medthink.models import ImagePart, ModelError, Request, TextPart, Usage
from medthink.models.image_detail import count_shrunk, see_image, settle_detail, tell_detail
from medthink.models.prices import (
    Price,
    find_price,
    load_prices,
    user_prices,
)
from medthink.models.tokens import estimate_input_tokens, estimate_text_tokens, most_input_tokens
from medthink.runs.manifest import CallTerms

PRICES = load_prices()


def test_the_list_is_dated_and_sane():
    datetime.date.fromisoformat(PRICES.date)
    for name, price in PRICES.models.items():
        assert 0 < price.input < price.output, name
        assert price.cached is None or 0 < price.cached < price.input, name
        assert price.above is None or price.input_above > price.input, name


def test_a_call_costs_its_parts():
    usage = Usage(input=1_000_000, cached=400_000, output=100_000, reasoning=60_000)
    assert PRICES.cost_usd("openai/gpt-5.2", usage) == pytest.approx(0.6 * 1.75 + 0.4 * 0.175 + 0.1 * 14)


def test_cached_tokens_without_a_rate_cost_as_much_as_others():
    assert PRICES.cost_usd("openai/gpt-5.2-pro", Usage(input=1_000_000, cached=1_000_000)) == pytest.approx(21.0)


def test_long_prompts_have_their_own_price():
    assert PRICES.cost_usd("google/gemini-2.5-pro", Usage(input=200_000)) == pytest.approx(0.25)
    assert PRICES.cost_usd("google/gemini-2.5-pro", Usage(input=300_000, output=1_000_000)) == pytest.approx(15.75)


@pytest.mark.parametrize("spec", ["openai/gpt-5.2-2025-12-11", "openai-chat/gpt-5.2", "openai-chat/gpt-5.2-2025-12-11"])
def test_snapshots_and_the_other_wire_cost_the_same(spec):
    assert PRICES.find(spec) == PRICES.find("openai/gpt-5.2")


@pytest.mark.parametrize("spec", ["server/qwen", "openai/gpt-5.2-turbo", "openai/gpt-9", "anthropic/claude"])
def test_an_unknown_model_costs_unknown_never_zero(spec):
    assert PRICES.cost_usd(spec, Usage(input=10, output=10)) is None


def test_unknown_usage_costs_unknown():
    assert PRICES.cost_usd("openai/gpt-5.2", None) is None


def test_a_users_file_replaces_and_adds(tmp_path):
    file = tmp_path / "prices.toml"
    file.write_text(
        'date = "2027-01-01"\n[models]\n"server/qwen" = { input = 0.1, output = 0.2 }\n'
        '"openai/gpt-5.2" = { input = 1.0, output = 2.0 }\n'
    )
    prices = load_prices(file)
    assert prices.date == "2027-01-01"
    assert prices.cost_usd("server/qwen", Usage(input=1_000_000)) == pytest.approx(0.1)
    assert prices.find("openai/gpt-5.2").output == 2.0
    assert prices.find("openai/gpt-5-mini") == PRICES.find("openai/gpt-5-mini")


@pytest.mark.parametrize(
    "text",
    ["date = 5", 'date = "x"\n[models]\n"a/b" = { input = 1, outptu = 2 }', "models = {", 'date = "x"\nmodles = {}'],
)
def test_a_wrong_file_is_an_error_that_names_it(tmp_path, text):
    file = tmp_path / "prices.toml"
    file.write_text(text)
    with pytest.raises(DataError, match=r"prices\.toml"):
        load_prices(file)


def image(width, height):
    return ImagePart("image/png", "d", b"", width, height)


# Worked by hand from the providers' published rules.
TOKENS = [
    ("openai", "gpt-4o", 1024, 1024, 85 + 170 * 4),
    ("openai", "gpt-4o", 2048, 4096, 85 + 170 * 6),
    ("openai", "gpt-4o", 300, 300, 85 + 170),
    ("openai", "gpt-5.2", 1024, 1024, 70 + 140 * 4),
    ("openai", "gpt-4.1-mini", 1024, 1024, 1659),
    ("openai", "o4-mini", 1800, 2400, 2642),
    ("openai-chat", "gpt-5-nano", 64, 64, 10),
    ("anthropic", "claude-opus-4-6", 1000, 1000, 1334),
    ("anthropic", "claude-opus-4-6", 3000, 3000, 1600),
    ("google", "gemini-2.5-pro", 384, 384, 258),
    ("google", "gemini-2.5-pro", 1024, 1024, 258 * 4),
    ("google", "gemini-3-pro", 5000, 10, 1120),
    ("server", "qwen", 280, 281, 110),
]


@pytest.mark.parametrize(("provider", "model", "width", "height", "tokens"), TOKENS)
def test_image_tokens_follow_the_published_rules(provider, model, width, height, tokens):
    assert see_image(image(width, height), provider, model).tokens == tokens


def test_an_image_of_unknown_size_is_counted_not_skipped():
    unknown = ImagePart("image/png", "d", b"")
    assert see_image(unknown, "openai", "gpt-4o").tokens == 765


def test_a_request_is_its_text_and_its_images():
    plain = Request(system="s" * 40, parts=(TextPart("t" * 400),))
    with_images = Request(system="s" * 40, parts=(TextPart("t" * 400), image(1000, 1000), image(1000, 1000)))
    base = estimate_input_tokens(plain, "anthropic", "claude-opus-4-6")
    assert base == 12 + 10 + 100
    assert estimate_input_tokens(with_images, "anthropic", "claude-opus-4-6") == base + 2 * 1334
    assert estimate_text_tokens("") == 0


@pytest.mark.parametrize("odd", ["nan", "inf", "-5.0"])
@pytest.mark.parametrize("field", ["input", "output", "cached", "batch", "write"])
def test_a_price_that_is_none_is_refused(tmp_path, field, odd):
    """With a negative price no budget is ever reached."""
    file = tmp_path / "prices.toml"
    fields = {"input": "1.0", "output": "2.0"} | {field: odd}
    listed = ", ".join(f"{name} = {value}" for name, value in fields.items())
    file.write_text(f'date = "2026-11-01"\n[models]\n"a/b" = {{ {listed} }}\n')
    with pytest.raises(DataError, match=rf"{field} is .*: a price is a number from 0 upwards"):
        load_prices(file)


def test_a_price_in_one_line_counts_whatever_the_model():
    terms = CallTerms(price="5/30")
    assert find_price("server/new", terms.price_source) == Price(input=5.0, output=30.0)
    for odd in ("5", "5/", "-5/30", "nan/1", "5/30/2", "cheap"):
        with pytest.raises(UsageError, match="is not a price"):
            CallTerms(price=odd)


def test_a_users_own_list_is_read_without_being_named_and_a_file_counts_above_it(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    own = user_prices()
    own.parent.mkdir()
    own.write_text('date = "2027-01-01"\n[models]\n"server/a" = { input = 1.0, output = 2.0 }\n')
    assert own == tmp_path / "medthink" / "prices.toml"
    assert load_prices().find("server/a").output == 2.0 and load_prices().date == "2027-01-01"
    assert load_prices().find("openai/gpt-5.2") == PRICES.find("openai/gpt-5.2")
    file = tmp_path / "mine.toml"
    file.write_text('date = "2027-02-01"\n[models]\n"server/a" = { input = 3.0, output = 4.0 }\n')
    assert load_prices(file).find("server/a").output == 4.0
    own.write_text("models = {")
    with pytest.raises(DataError, match=r"prices\.toml"):
        load_prices()


def test_the_most_that_an_input_may_come_to_is_twice_its_text_and_its_images_once():
    asked = Request(system="s" * 40, parts=(TextPart("t" * 400), image(1000, 1000)))
    for provider, model in (("anthropic", "claude-opus-4-6"), ("openai", "gpt-6-sol"), ("server", "qwen")):
        usual = estimate_input_tokens(asked, provider, model)
        assert most_input_tokens(asked, provider, model) == usual + 10 + 100


# By the providers' rules for one level of detail: the image as it is seen, and its tokens.
SEEN = [
    ("openai", "gpt-6-sol", None, 3000, 2000, (3000, 2000, 94 * 63)),
    ("openai", "gpt-6-sol", None, 12_000, 3000, (6000, 1500, 188 * 47)),
    ("openai", "gpt-6-sol", "low", 3000, 2000, (512, 341, 16 * 11)),
    ("openai", "gpt-5.2", None, 3000, 2400, (960, 768, 70 + 140 * 4)),
    ("openai", "gpt-5.2", "low", 3000, 2400, (512, 409, 70)),
    ("openai-chat", "gpt-5.4-mini", None, 1024, 1024, (1024, 1024, 1659)),
    ("google", "gemini-4-argon", "ultra_high", 300, 300, (None, None, 2240)),
    ("google", "gemini-2.5-pro", "medium", 3000, 3000, (None, None, 256)),
    ("anthropic", "claude-opus-5-5", None, 1000, 1000, (1000, 1000, 1334)),
]


@pytest.mark.parametrize(("provider", "model", "level", "width", "height", "seen"), SEEN)
def test_an_image_is_seen_as_its_provider_says(provider, model, level, width, height, seen):
    assert see_image(image(width, height), provider, model, level) == seen
    asked = Request(parts=(image(width, height),), image_detail=level)
    assert count_shrunk(asked, provider, model) == (seen[0] is not None and seen[0] < width)


@pytest.mark.parametrize(
    ("provider", "model", "level"),
    [("openai", "gpt-5.2", "original"), ("openai", "gpt-6-sol", "medium"), ("google", "gemini-2.5-pro", "ultra_high"),
     ("anthropic", "claude-opus-5-5", "high"), ("server", "qwen", "low")],
)  # fmt: skip
def test_a_level_that_a_model_has_not_is_refused_with_those_it_has(provider, model, level):
    with pytest.raises(ModelError, match=f"has no image detail {level}: it has") as caught:
        settle_detail(level, provider, model)
    assert "--image-detail" in caught.value.remedy


def test_what_a_provider_does_to_images_is_told():
    assert tell_detail(None, "openai", "gpt-6-sol") == (
        "detail original: shrunk only above 6,000 px or 10,000 patches of 32 px"
    )
    assert tell_detail("high", "openai", "gpt-6-sol") == "detail high: shrunk above 2,048 px or 2,500 patches of 32 px"
    assert "short side of 768 px" in tell_detail(None, "openai", "gpt-5.2")
    assert tell_detail(None, "google", "gemini-3-pro") == "1,120 tokens for every image, whatever its size"
    assert "refused" in tell_detail(None, "anthropic", "claude-opus-5-5")
