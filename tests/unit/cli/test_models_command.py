"""`medthink models`: what is known of models, and a list of prices refreshed without a release."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from medthink.cli.command import run_command
from medthink.core.clock import utc_in
from medthink.models.price_update import update_prices
from medthink.models.prices import Price, load_prices, packaged_prices, parse_prices, user_prices
from small_benchmark import write_benchmark

LIST = """date = "2027-02-01"
[models]
"openai/gpt-7-sol" = { input = 3.0, cached = 0.0, output = 9.0, tiers = { flex = 0.5 }, context = 2000000 }
"openai/gpt-5.2" = { input = 1.0, output = 8.0, rises = { "2027-06-01" = 2.0 } }
"""


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def listed(capsys, *words):
    assert run_command(["models", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_without_arguments_every_known_model_is_listed(capsys):
    assert run_command(["models"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in packaged_prices().models)


def test_a_model_is_listed_with_all_that_is_known_of_it(capsys):
    assert listed(capsys, "gpt-6.1-sol")["models"] == {
        "openai/gpt-6.1-sol": {
            "context": 1_050_000, "images": 500, "efforts": ["low", "medium", "high", "xhigh", "max"], "input": 2.0,
            "cached": 0.1, "output": 10.0, "date": packaged_prices().date, "ends": None,
        }
    }  # fmt: skip
    found = listed(capsys, "claude-haiku-4-5", "gemini-2.5-flash-lite")["models"]
    assert found["anthropic/claude-haiku-4-5"]["images"] == 100, "those with 200,000 tokens take fewer"
    assert found["google/gemini-2.5-flash-lite"]["efforts"] == ["none", "minimal", "low", "medium", "high"]


def test_no_such_model_says_what_to_type(capsys):
    assert run_command(["models", "list", "gpt-99"]) == 2
    assert "see the whole list" in capsys.readouterr().err


def test_a_file_refreshes_the_list_and_what_it_does_not_name_stays(capsys, tmp_path):
    own = user_prices()
    own.parent.mkdir(parents=True)
    own.write_text('date = "2026-12-01"\n[models]\n"server/qwen" = { input = 0.1, output = 0.2 }\n')
    file = tmp_path / "new.toml"
    file.write_text(LIST)
    assert run_command(["models", "prices", "--update", str(file)]) == 0
    assert f"{own}: prices of 2027-02-01: 1 new, 1 changed, 0 as before" in capsys.readouterr().out
    prices = load_prices()
    assert prices.models["openai/gpt-7-sol"] == Price(
        input=3.0, cached=0.0, output=9.0, tiers={"flex": 0.5}, context=2_000_000, date="2027-02-01"
    )
    assert prices.models["server/qwen"].date == "2026-12-01", "each price keeps the date of its list"
    assert prices.models["openai/gpt-5.2"].rises == {"2027-06-01": 2.0}
    assert update_prices(str(file)).same == 2


def test_a_list_comes_from_an_address_too_and_one_that_is_none_changes_nothing():
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200 if self.path == "/prices.toml" else 404)
            self.end_headers()
            self.wfile.write(LIST.encode() if self.path == "/prices.toml" else b"<html>")

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            place = f"http://127.0.0.1:{server.server_port}"
            assert update_prices(f"{place}/prices.toml").added == ("openai/gpt-7-sol",)
            kept = user_prices().read_bytes()
            assert run_command(["models", "prices", "--update", f"{place}/no.toml"]) == 3
        finally:
            server.shutdown()
            thread.join()
    assert run_command(["models", "prices", "--update", f"{place}/prices.toml"]) == 3, "the server is gone"
    assert user_prices().read_bytes() == kept


@pytest.mark.parametrize("text", ['date = "x"\n[models]\n', "<html>", 'date = "x"\n[models]\n"a/b" = { input = -1 }'])
def test_what_is_no_list_of_prices_is_refused(capsys, tmp_path, text):
    file = tmp_path / "new.toml"
    file.write_text(text)
    assert run_command(["models", "prices", "--update", str(file)]) == 2
    assert not user_prices().exists() and "new.toml" in capsys.readouterr().err


def test_an_announced_rise_counts_from_its_day_on():
    price = parse_prices(
        b'date = "x"\n[models]\n"a/b" = { input = 2.0, cached = 0.1, output = 10.0, rises = { "2026-12-01" = 2.0 } }',
        "",
    ).models["a/b"]
    assert price.on("2026-11-30") is price
    risen = price.on("2026-12-01")
    assert (risen.input, risen.cached, risen.output, risen.rises) == (4.0, 0.2, 20.0, {})


def test_where_prices_come_from_is_shown(capsys):
    assert run_command(["models", "prices"]) == 0
    assert f"this release: {len(packaged_prices().models)} models" in capsys.readouterr().out


@pytest.mark.parametrize(("days", "is_told"), [(20, True), (-20, True), (90, False)])
def test_a_run_of_a_model_that_ends_soon_says_so(tmp_path, capsys, monkeypatch, days, is_told):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789ab")
    ends = utc_in(days * 86_400.0)[:10]
    own = user_prices()
    own.parent.mkdir(parents=True)
    row = f'"openai/gpt-old" = {{ input = 1.0, output = 2.0, ends = "{ends}" }}'
    own.write_text(f'date = "2026-12-01"\n[models]\n{row}\n')
    bench = write_benchmark(tmp_path / "bench", cases=1)
    assert run_command(["run", str(bench), "--model", "openai/gpt-old", "--dry-run"]) == 0
    assert (f"openai/gpt-old is switched off on {ends}, as announced" in capsys.readouterr().err) == is_told
