"""Only our own pages on this machine are answered, and every answer says what a page may do."""

import pytest

from medthink.web.app.security import HEADERS

OWN = "http://127.0.0.1:7350"


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:7350", "127.0.0.1", "127.0.0.1:80", "localhost:7351", ""]
)
def test_another_host_name_is_refused(pages, host):
    answer = pages.ask("/", headers={"host": host})
    assert answer.status_code == 403 and "seeing" not in answer.text


@pytest.mark.parametrize("host", ["localhost:7350", "127.0.0.1:7350", "[::1]:7350"])
def test_this_machine_is_answered_by_each_of_its_names(pages, host):
    assert pages.ask("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:7351"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"},
        {"sec-fetch-site": "cross-site"},
    ],
)
@pytest.mark.parametrize("address", ["/", "/runs/{seeing}/cases/105", "/static/ui.js"])
def test_what_another_site_asks_for_is_refused(pages, address, headers):
    assert pages.ask(address, headers=headers).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [{}, {"origin": OWN}, {"sec-fetch-site": "same-origin"}, {"sec-fetch-site": "none", "sec-fetch-mode": "navigate"},
     {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}],
)  # fmt: skip
def test_our_own_pages_and_links_are_answered(pages, headers):
    assert pages.ask("/", headers=headers).status_code == 200


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_nothing_can_be_changed(pages, method):
    assert getattr(pages.client, method)("/", headers={"origin": OWN}).status_code == 405


@pytest.mark.parametrize("address", ["/", "/runs/{seeing}", "/runs/{seeing}/cases/105", "/nothing", "/static/ui.js"])
def test_every_answer_carries_the_headers(pages, address):
    answer = pages.ask(address)
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert "unsafe" not in answer.headers["content-security-policy"]


def test_a_refusal_carries_them_too(pages):
    answer = pages.ask("/", headers={"host": "evil.example"})
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS


@pytest.mark.parametrize("address", ["/", "/runs/{seeing}", "/runs/{seeing}/cases/105", "/versus/{seeing}/{other}"])
def test_no_page_has_inline_script_or_style(pages, address):
    import re

    page = pages.at(address)
    assert re.findall(r"<script(?![^>]*\bsrc=)", page) == []
    assert re.findall(r"<style|\sstyle=|\son[a-z]+=|javascript:", page) == []
