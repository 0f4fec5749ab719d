"""Sign-in by an OpenID Connect provider: a real one on the loopback, honest and otherwise."""

from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from joserfc.jwk import RSAKey

from identity_server import CLIENT, SECRET, open_identity_server
from medthink.accounts import identity_providers
from medthink.accounts.account import find_account, set_disabled
from medthink.accounts.identity_providers import IdentityProvider
from medthink.accounts.invitations import invite
from medthink.web.app.access import COOKIE
from medthink.web.app.server import ServeSettings
from people import Board, send

pytestmark = pytest.mark.usefixtures("cheap_passwords")


@pytest.fixture(scope="module")
def provider():
    with open_identity_server() as opened:
        yield opened


@pytest.fixture
def board(provider, tmp_path, monkeypatch):
    monkeypatch.setenv("TEST_CLIENT_SECRET", SECRET)
    provider.wrong = {}
    vouching = IdentityProvider(
        name="clinic", label="The clinic", issuer=provider.address, client_id=CLIENT, secret_env="TEST_CLIENT_SECRET"
    )
    board = Board(tmp_path, settings=ServeSettings(sign_up="open", providers=(vouching,)))
    yield board
    board.store.close()


@pytest.fixture
def closed(provider, board, tmp_path):
    """The same provider on a board that is by invitation."""
    (tmp_path / "closed").mkdir()
    settings = ServeSettings(providers=board.served.settings.providers)
    other = Board(tmp_path / "closed", settings=settings)
    yield other
    other.store.close()


def go(client, start="/sign-in/clinic"):
    """Leave for the provider and come back; returns what our site says then."""
    leaving = client.get(start, follow_redirects=False)
    assert leaving.status_code == 303, leaving.text
    there = httpx.get(leaving.headers["location"])
    way = urlsplit(there.headers["location"])
    return client.get(f"{way.path}?{way.query}", follow_redirects=False)


def sign_up(client, **form):
    answer = go(client)
    assert answer.headers["location"] == "/welcome"
    assert "The clinic has confirmed your identity" in client.get("/welcome").text
    return send(client, "/welcome", **form)


def test_somebody_new_makes_an_account_and_comes_back_to_it(board):
    with board.client() as client:
        assert "Continue with The clinic" in client.get("/sign-in").text
        assert sign_up(client, name="tarn", team="").status_code == 422
        assert sign_up(client, name="tarn", team="West").headers["location"] == "/account"
        made = find_account(board.store, "tarn")
        assert (made.roles, made.team, made.has_password) == (("submitter",), "West", False)
    with board.client() as client:
        answer = go(client, "/sign-in/clinic?next=/account")
        assert answer.headers["location"] == "/account" and "West" in client.get("/account").text


def test_what_is_asked_of_the_provider_holds_its_answer_to_this_one_attempt(board, provider):
    with board.client() as client:
        asked = parse_qs(urlsplit(client.get("/sign-in/clinic", follow_redirects=False).headers["location"]).query)
    assert asked["code_challenge_method"] == ["S256"] and asked["response_type"] == ["code"]
    assert len(asked["state"][0]) > 40 and len(asked["nonce"][0]) > 20 and "openid" in asked["scope"][0]
    assert SECRET not in str(asked)


@pytest.mark.parametrize(
    "wrong",
    [
        {"iss": "https://evil.example"},
        {"aud": "another client"},
        {"nonce": "another attempt"},
        {"exp": 1_000_000_000},
        {"key": RSAKey.generate_key(2048, {"kid": "one"})},
        {"token": "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0."},
        {"token": "nonsense"},
    ],
    ids=["iss", "aud", "nonce", "exp", "key", "unsigned", "nonsense"],
)
def test_an_answer_that_is_not_the_providers_own_is_refused(board, provider, wrong):
    provider.wrong = wrong
    with board.client() as client:
        answer = go(client)
        assert answer.status_code == 422 and "did not confirm who you are" in answer.text
        assert COOKIE not in client.cookies


def test_a_provider_that_names_another_issuer_or_is_away_is_told(board, provider):
    provider.wrong = {"issuer": "https://evil.example"}
    with board.client() as client:
        answer = client.get("/sign-in/clinic", follow_redirects=False)
        assert answer.status_code == 502 and "another issuer" in answer.text
        assert client.get("/sign-in/nobody").status_code == 404


def test_an_answer_is_good_once_and_in_the_browser_that_began(board):
    with board.client() as client, board.client() as thief:
        leaving = client.get("/sign-in/clinic", follow_redirects=False)
        way = urlsplit(httpx.get(leaving.headers["location"]).headers["location"])
        back = f"{way.path}?{way.query}"
        assert "another browser" in thief.get(back).text
        assert client.get(back, follow_redirects=False).headers["location"] == "/welcome"
        client.cookies.set("medthink_flow", parse_qs(way.query)["state"][0])
        assert "has expired or was started in another browser" in client.get(back).text
        assert client.get("/sign-in/clinic/back?state=&code=x").status_code == 422


def test_a_refusal_by_the_provider_is_told(board):
    with board.client() as client:
        leaving = client.get("/sign-in/clinic", follow_redirects=False)
        state = parse_qs(urlsplit(leaving.headers["location"]).query)["state"][0]
        assert "did not sign you in" in client.get(f"/sign-in/clinic/back?error=access_denied&state={state}").text


def test_by_invitation_one_needs_an_invitation(closed, provider):
    provider.subject = "subject-2"
    with closed.client() as client:
        answer = go(client)
        assert answer.status_code == 403 and "by invitation" in answer.text
        secret = invite(closed.store, ["reader"], actor="boss")
        assert go(client, f"/sign-in/clinic?from=invitation/{secret}").headers["location"] == "/welcome"
        assert send(client, "/welcome", name="reader-2", team="ignored").status_code == 303
        assert find_account(closed.store, "reader-2").roles == ("reader",)
        client.cookies.clear()
        assert go(client).headers["location"] == "/"
    provider.subject = "subject-1"


def test_an_account_is_connected_and_a_closed_one_is_not_opened(closed, provider):
    provider.subject = "subject-3"
    account = closed.add("carl", "submitter")
    with closed.client(account) as client:
        assert go(client, "/sign-in/clinic?from=account").headers["location"] == "/account"
    with closed.client() as client:
        assert go(client).headers["location"] == "/"
        set_disabled(closed.store, account, is_disabled=True, actor="test")
        client.cookies.clear()
        assert go(client).status_code == 403
    provider.subject = "subject-1"


def test_without_the_secret_nobody_leaves(board, monkeypatch):
    monkeypatch.delenv("TEST_CLIENT_SECRET")
    with board.client() as client:
        answer = client.get("/sign-in/clinic")
        assert answer.status_code == 502 and "TEST_CLIENT_SECRET is not set" in answer.text


def test_github_vouches_by_its_own_way(provider, tmp_path, monkeypatch):
    monkeypatch.setenv("TEST_CLIENT_SECRET", SECRET)
    ends = identity_providers._Endpoints(
        issuer="https://github.com",
        authorization_endpoint=f"{provider.address}/authorize",
        token_endpoint=f"{provider.address}/token",
        userinfo_endpoint=f"{provider.address}/user",
    )
    monkeypatch.setattr(identity_providers, "_GITHUB", ends)
    github = IdentityProvider(name="github", kind="github", client_id=CLIENT, secret_env="TEST_CLIENT_SECRET")
    board = Board(tmp_path, settings=ServeSettings(sign_up="open", providers=(github,)))
    with board.client() as client:
        assert go(client, "/sign-in/github").headers["location"] == "/welcome"
        assert send(client, "/welcome", name="tarn", team="West").status_code == 303
    with board.client() as client:
        assert go(client, "/sign-in/github").headers["location"] == "/"
    board.store.close()
