"""`medthink accounts` makes and changes people, and `medthink serve` opens wider only where somebody keeps the door."""

import json

import pytest

from medthink.accounts.account import check_password, list_accounts
from medthink.cli.command import run_command
from medthink.store.engine import Store, store_url

pytestmark = pytest.mark.usefixtures("cheap_passwords")
PASSWORD = "tarn lantern cobalt"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MEDTHINK_STORE", raising=False)
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    return tmp_path


def do(*words):
    return run_command(list(words))


def add(*words):
    return do("accounts", "add", *words, "--password-file", "password")


def test_the_first_maintainer_is_made_by_a_command(here, capsys):
    assert add("ann", "--role", "maintainer", "--team", "North") == 0
    assert capsys.readouterr().out == "ann is maintainer of North.\n"
    store = Store(store_url(here / "board.sqlite"))
    assert check_password(store, "ann", PASSWORD).roles == ("maintainer",)
    store.close()
    assert add("ann", "--role", "submitter") == 2
    assert "the name ann is taken" in capsys.readouterr().err
    assert do("accounts", "list") == 0
    assert "ann" in (shown := capsys.readouterr().out) and PASSWORD not in shown
    assert do("accounts", "list", "--json") == 0
    assert json.loads(capsys.readouterr().out)[0]["name"] == "ann"


def test_accounts_are_changed_and_the_last_maintainer_stays(here, capsys):
    add("ann", "--role", "maintainer")
    add("bob", "--role", "submitter")
    (here / "password").write_text("granite window seven\n")
    assert do("accounts", "edit", "bob", "--role", "reader", "--disable", "--password-file", "password") == 0
    store = Store(store_url(here / "board.sqlite"))
    bob = list_accounts(store)[1]
    assert bob.roles == ("reader",) and bob.disabled_at
    assert do("accounts", "edit", "bob", "--enable") == 0
    assert check_password(store, "bob", "granite window seven")
    store.close()
    assert do("accounts", "edit", "ann", "--role", "reader") == 1
    assert do("accounts", "edit", "eve", "--disable") == 2
    assert "no account eve" in capsys.readouterr().err


def test_an_invitation_is_a_link(here, capsys):
    assert do("accounts", "invite", "--role", "submitter", "--url", "https://board.example/") == 0
    assert capsys.readouterr().out.startswith("https://board.example/invitation/")


def test_others_reach_the_board_only_where_somebody_keeps_it(here, capsys):
    wide = ("serve", "--no-browser", "--host", "0.0.0.0")
    assert do(*wide) == 2
    assert "medthink accounts add NAME --role maintainer" in capsys.readouterr().err
    add("ann", "--role", "maintainer")
    assert do(*wide) == 2
    assert "public_url" in capsys.readouterr().err
    (here / "serve.toml").write_text("colour = 'red'")
    assert do(*wide, "--settings", "serve.toml") == 2
    assert "colour" in capsys.readouterr().err
