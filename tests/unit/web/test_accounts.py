"""The door of a served board: who is let in, by what, and who is not."""

import re

import pytest
from litestar import get
from litestar.testing import TestClient

from medthink.accounts.account import find_account
from medthink.accounts.invitations import invite, invite_reader
from medthink.accounts.sessions import find_session, make_token
from medthink.core.errors import DataError
from medthink.web.accounts.sign_in import local_path
from medthink.web.app.access import COOKIE, SECURE_COOKIE, needs
from medthink.web.app.application import Feature, make_application
from medthink.web.app.rendering import Link, Site
from medthink.web.app.server import ServeSettings, read_settings
from people import FROM_HERE, OWN, PASSWORD, Board, send

pytestmark = pytest.mark.usefixtures("cheap_passwords")


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    board = Board(tmp_path_factory.mktemp("accounts"))
    board.boss = board.add("boss", "maintainer", password=PASSWORD)
    board.ann = board.add("ann", "submitter", team="North")
    yield board
    board.store.close()


@pytest.fixture
def visitor(board):
    with board.client() as client:
        yield client


def test_signing_in_leads_back_to_where_one_wanted_to_go(board, visitor):
    answer = visitor.get("/people", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in?next=%2Fpeople")
    assert 'name="next" value="/people"' in visitor.get(answer.headers["location"]).text
    answer = send(visitor, "/sign-in", name="boss", password=PASSWORD, next="/people")
    assert (answer.status_code, answer.headers["location"]) == (303, "/people")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=lax" in cookie and PASSWORD not in cookie
    page = visitor.get("/people").text
    assert "Disable the account" in page and ">boss<" in page


def test_signing_out_ends_the_session_and_not_only_the_cookie(board):
    with board.client(board.ann) as client:
        session = client.cookies[COOKIE]
        assert client.get("/account").status_code == 200
        assert send(client, "/sign-out").headers["location"] == "/"
    assert find_session(board.store, session) is None


def test_a_wrong_password_and_an_unknown_name_are_told_alike(visitor):
    said = {
        send(visitor, "/sign-in", name=name, password="not this one at all").text.replace(name, "")
        for name in ("boss", "nobody")
    }
    assert len(said) == 1 and "is wrong" in said.pop()


def test_guessing_ends_with_429_even_for_the_right_password(board, visitor):
    board.add("guessed", "submitter", password=PASSWORD)
    for _ in range(10):
        answer = send(visitor, "/sign-in", name="guessed", password="")
    assert answer.status_code == 422
    answer = send(visitor, "/sign-in", name="guessed", password=PASSWORD)
    assert answer.status_code == 429 and answer.headers["retry-after"] == "900" and "set-cookie" not in answer.headers


def test_addresses_of_one_ipv6_network_are_counted_together(tmp_path):
    board = Board(tmp_path)
    hosts = [f"2001:db8:1:2::{number:x}" for number in range(12)]

    async def from_host(scope, receive, send):
        await board.app(scope | {"client": (hosts[0], 1)}, receive, send)

    client, said = TestClient(from_host, base_url=OWN), []
    while hosts:
        said.append(send(client, "/sign-in", name="guessed", password="").status_code)
        hosts.pop(0)
    board.store.close()
    assert said == [422] * 10 + [429] * 2


@pytest.mark.parametrize(
    "given",
    [
        "//evil.example",
        "/\\evil.example",
        "https://evil.example",
        "javascript:alert(1)",
        "",
        "/a\r\nSet-Cookie: x",
        "\t//x",
    ],
)
def test_one_is_never_led_to_another_site(given):
    assert local_path(given) == "/"


def test_a_path_of_our_own_is_kept():
    assert local_path("/cases/ab12?q=x&page=2") == "/cases/ab12?q=x&page=2"


@pytest.mark.parametrize("address", ["/sign-in", "/sign-out", "/account/password", "/account/tokens", "/people/invite"])
@pytest.mark.parametrize("headers", [{}, {"origin": "https://evil.example"}, {"origin": "null"}])
def test_a_form_of_another_site_is_refused(board, address, headers):
    with board.client(board.boss) as client:
        assert client.post(address, data={"name": "boss"}, headers=headers).status_code == 403


def test_one_without_the_role_is_told_so(board):
    with board.client(board.ann) as client:
        answer = client.get("/people")
        assert answer.status_code == 403 and "for a maintainer" in answer.text and "boss" not in answer.text
        assert send(client, "/people/invite", roles="maintainer").status_code == 403
        assert "People" not in client.get("/").text


def test_an_invited_person_makes_an_account_of_the_invited_kind(board, visitor):
    secret = invite(board.store, ["submitter"], actor="boss", team="South")
    page = visitor.get(f"/invitation/{secret}").text
    assert "boss invites you as submitter" in page and "South" in page
    assert send(visitor, f"/invitation/{secret}", name="bob", password="short").status_code == 422
    answer = send(visitor, f"/invitation/{secret}", name="bob", password=PASSWORD, team="North", roles="maintainer")
    assert answer.status_code == 303
    made = find_account(board.store, "bob")
    assert (made.team, made.roles) == ("South", ("submitter",))
    assert "South" in visitor.get("/account").text
    assert visitor.get(f"/invitation/{secret}").status_code == 404


def test_a_personal_link_enters_on_a_button_and_not_on_a_look(board, visitor):
    _, secret = invite_reader(board.store, "reader-1", shown_name="Dr. Tarn", actor="boss")
    answer = visitor.get(f"/invitation/{secret}")
    assert "Welcome, Dr. Tarn" in answer.text and "set-cookie" not in answer.headers
    assert send(visitor, f"/invitation/{secret}").status_code == 303
    assert "Dr. Tarn" in visitor.get("/account").text


def test_accounts_are_by_invitation_unless_the_board_is_open(tmp_path, visitor):
    assert visitor.get("/sign-up").status_code == 404
    assert send(visitor, "/sign-up", name="eve", password=PASSWORD, team="East").status_code == 404
    board = Board(tmp_path, settings=ServeSettings(sign_up="open"))
    with board.client() as client:
        assert send(client, "/sign-up", name="eve", password=PASSWORD).status_code == 422
        assert send(client, "/sign-up", name="eve", password=PASSWORD, team="East").status_code == 303
        assert find_account(board.store, "eve").roles == ("submitter",)
        client.cookies.clear()
        answer = send(client, "/sign-up", name="mallory", password=PASSWORD, team="east")
        assert answer.status_code == 422 and "There is already a team" in answer.text
    board.store.close()


def test_a_token_is_made_shown_once_used_and_revoked(board):
    with board.client(board.ann) as client:
        answer = send(client, "/account/tokens", label="nightly", days="30", scopes=["read", "submit", "maintain"])
        secret = re.search(r"mt_[\w-]+", answer.text)[0]
        page = client.get("/account").text
        assert secret not in page and secret[:8] in page and "read, submit<" in page
        assert send(client, "/account/tokens", label="x", days="many", scopes="read").status_code == 422
        number = re.search(r"/account/tokens/(\d+)/revoke", page)[1]
    bearer = {"authorization": f"Bearer {secret}"}
    with board.client() as client:
        assert client.get("/", headers=bearer).status_code == 403, "pages are for people"
        with board.client(board.boss) as other:
            assert send(other, f"/account/tokens/{number}/revoke").status_code == 404
        with board.client(board.ann) as owner:
            assert send(owner, f"/account/tokens/{number}/revoke").status_code == 303
        answer = client.get("/", headers=bearer)
        assert answer.status_code == 401 and answer.headers["www-authenticate"] == "Bearer"


def test_a_program_never_acts_by_a_cookie(board):
    with board.client(board.boss) as client:
        for given in ("Bearer nonsense", "Basic Ym9zczpib3Nz", ""):
            assert client.get("/people", headers={"authorization": given}).status_code == 401
        token = make_token(board.store, board.ann, "x", ["read"], days=1)
        bearer = {"authorization": f"Bearer {token}"}
        assert client.post("/people/invite", data={"roles": "maintainer"}, headers=bearer).status_code == 403


def test_another_password_needs_the_old_one_and_ends_other_sessions(board):
    account = board.add("carl", "submitter", password=PASSWORD)
    with board.client(account) as client, board.client(account) as elsewhere:
        new = "granite window seven"
        assert send(client, "/account/password", old="wrong", password=new).status_code == 422
        assert send(client, "/account/password", old=PASSWORD, password=new).status_code == 303
        assert client.get("/account").status_code == 200
        assert elsewhere.get("/account", follow_redirects=False).status_code == 303


def test_a_maintainer_invites_changes_roles_and_closes(board, visitor):
    other = board.add("dora", "submitter")
    with board.client(board.boss) as client, board.client(other) as dora:
        link = re.search(rf"{OWN}(/invitation/[\w-]+)", send(client, "/people/invite", roles="reader", note="x").text)[
            1
        ]
        assert visitor.get(link).status_code == 200
        assert send(client, "/people/invite", note="nobody").status_code == 422
        number = re.search(r"/people/invitations/(\d+)/revoke", client.get("/people").text)[1]
        assert send(client, f"/people/invitations/{number}/revoke").status_code == 303
        assert visitor.get(link).status_code == 404
        assert send(client, f"/people/{other.id}/roles", roles=["submitter", "maintainer"]).status_code == 303
        assert dora.get("/people").status_code == 200
        assert send(client, f"/people/{other.id}/open").status_code == 303
        assert dora.get("/people", follow_redirects=False).status_code == 303
        assert send(client, f"/people/{other.id}/open", open="yes").status_code == 303
        assert send(client, f"/people/{other.id}/roles").status_code == 303
        assert find_account(board.store, "dora").roles == ()
        assert send(client, f"/people/{board.boss.id}/roles", roles="reader").status_code == 422
        assert send(client, "/people/999/open").status_code == 404


def test_by_https_the_cookie_is_for_https_alone(tmp_path):
    board = Board(tmp_path, settings=ServeSettings(public_url="https://board.example"))
    board.add("ann", "submitter", password=PASSWORD)
    with board.client() as client:
        headers = {"host": "board.example", "origin": "https://board.example"}
        answer = client.post(
            "/sign-in", data={"name": "ann", "password": PASSWORD}, headers=headers, follow_redirects=False
        )
        assert (
            answer.headers["set-cookie"].startswith(f"{SECURE_COOKIE}=") and "; Secure" in answer.headers["set-cookie"]
        )
        assert client.get("/", headers={"host": "elsewhere.example"}).status_code == 403
    board.store.close()


def test_a_route_that_declares_no_role_does_not_start():
    @get("/forgotten", sync_to_thread=False)
    def forgotten() -> str:
        return ""

    @get("/declared", guards=[needs("coordinator")], sync_to_thread=False)
    def declared() -> str:
        return ""

    site = Site(links=(Link("", "Home"),))
    make_application([Feature(routes=[declared])], site, hosts=[], identify=lambda app: app)
    with pytest.raises(TypeError, match="/forgotten"):
        make_application([Feature(routes=[forgotten])], site, hosts=[], identify=lambda app: app)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sign_up = 'everybody'", "sign_up"),
        ("colour = 1", "colour"),
        ("= 2", "TOML"),
        ("public_url = 'board'", "public_url"),
    ],
)
def test_settings_that_mean_nothing_are_named(tmp_path, text, said):
    path = tmp_path / "serve.toml"
    path.write_text(text)
    with pytest.raises(DataError, match=said):
        read_settings(path)


def test_the_own_page_needs_somebody(visitor):
    assert visitor.get("/account", follow_redirects=False).headers["location"] == "/sign-in?next=%2Faccount"
    assert visitor.post("/account/tokens", data={}, headers=FROM_HERE).status_code == 401
