"""Accounts, passwords, sessions, tokens and invitations: what opens a door, and what no longer does."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from medthink.accounts.account import (
    NewAccount,
    add_account,
    check_password,
    find_account,
    has_maintainer,
    list_accounts,
    normalise_sign_in_name,
    set_disabled,
    set_password,
    set_roles,
)
from medthink.accounts.invitations import (
    accept_invitation,
    accept_personal_link,
    find_invitation,
    invite,
    invite_reader,
    list_invitations,
    renew_link,
    revoke_invitation,
)
from medthink.accounts.passwords import hash_password
from medthink.accounts.roles import ROLES, includes
from medthink.accounts.sessions import (
    TooManyAttempts,
    begin_session,
    end_session,
    end_sessions,
    find_session,
    find_token,
    forget_attempts,
    limit_sign_in,
    list_tokens,
    make_token,
    remove_token,
    revoke_token,
)
from medthink.core.errors import Declined, UsageError
from medthink.store import tables
from medthink.store.backup import write_backup

pytestmark = pytest.mark.usefixtures("cheap_passwords")
PASSWORD = "tarn lantern cobalt"
LONG_AGO = "2000-01-01T00:00:00Z"


def add(store, name="ann", *roles, password=PASSWORD, **fields):
    return add_account(store, NewAccount(name=name, roles=roles, password=password, **fields), actor="test")


def expire(store, table, **values):
    with store.write() as connection:
        connection.execute(table.update().values(values))


@pytest.mark.parametrize(
    ("held", "wanted", "may"),
    [
        ((), "visitor", True),
        ((), "member", True),
        ((), "submitter", False),
        (("submitter",), "submitter", True),
        (("submitter",), "reader", False),
        (("reader",), "coordinator", False),
        (("coordinator",), "reader", True),
        (("coordinator",), "submitter", False),
        (("coordinator",), "maintainer", False),
        *((("maintainer",), role, True) for role in ROLES),
    ],
)
def test_what_a_role_may_do(held, wanted, may):
    assert includes(held, wanted) is may


def test_the_right_password_alone_opens_an_account(store):
    made = add(store, "Ann@Clinic", "submitter", team="North")
    assert (made.name, made.team, made.roles) == ("ann@clinic", "North", ("submitter",))
    assert check_password(store, " ANN@clinic", PASSWORD) == made
    for name, given in (
        ("ann@clinic", "tarn lantern"),
        ("ann@clinic", ""),
        ("bob", PASSWORD),
        ("ann@clinic", "x" * 999),
    ):
        assert check_password(store, name, given) is None
    with store.read() as connection:
        kept = connection.execute(sa.select(tables.accounts.c.password)).scalar_one()
    assert kept.startswith("$argon2id$") and PASSWORD not in kept


def test_passwords_are_hashed_as_the_standard_asks():
    from argon2 import PasswordHasher
    from argon2.profiles import RFC_9106_LOW_MEMORY

    # What `medthink.accounts.passwords` makes, which the other tests replace by something quicker.
    made = PasswordHasher()
    chosen = RFC_9106_LOW_MEMORY
    assert (made.type, made.memory_cost, made.time_cost) == (chosen.type, chosen.memory_cost, chosen.time_cost)


def test_an_account_without_a_password_is_opened_by_none(store):
    add(store, "ann", "reader", password=None)
    assert check_password(store, "ann", "nobody has this password") is None
    assert check_password(store, "ann", "") is None


@pytest.mark.parametrize("password", ["short", "aaaaaaaaaaaaaaaa", "ann.smith and more", "x" * 201])
def test_a_password_that_is_easily_guessed_is_refused(password):
    with pytest.raises(UsageError, match="password"):
        hash_password(password, name="ann.smith")


@pytest.mark.parametrize("name", ["", "a", "Ann Smith", "ann\nb", "<b>", "a" * 101, ".ann", "änn"])
def test_a_name_that_cannot_be_typed_is_refused(name):
    with pytest.raises(UsageError, match="name"):
        normalise_sign_in_name(name)


def test_a_name_and_a_team_are_taken_once(store):
    add(store, "ann", "submitter", team="North")
    with pytest.raises(UsageError, match="taken"):
        add(store, "ANN", "submitter")
    new = NewAccount(name="bob", roles=("submitter",), team=" north ", password=PASSWORD)
    with pytest.raises(UsageError, match="there is already a team"):
        add_account(store, new, actor="test", is_team_new=True)
    assert find_account(store, "bob") is None
    assert add_account(store, new, actor="test").team == "North"


SPELLINGS = ["north  star lab", "NORTH STAR LAB", "North\u00a0Star\tLab", "\uff2eorth Star Lab", " North Star Lab "]


@pytest.mark.parametrize("spelled", SPELLINGS)
def test_no_spelling_of_a_team_s_name_joins_it_at_sign_up(store, spelled):
    add(store, "ann", "submitter", team="North Star Lab")
    new = NewAccount(name="eve", roles=("submitter",), team=spelled, password=PASSWORD)
    with pytest.raises(UsageError, match="there is already a team"):
        add_account(store, new, actor="test", is_team_new=True)
    secret = invite(store, ("submitter",), actor="ann", team=spelled)
    assert accept_invitation(store, secret, new).team == "North Star Lab"


@pytest.mark.parametrize("name", ["No\u200brth", "No\x00rth", "\u202eNorth", "North\nStar\x07", "N" * 201])
def test_a_team_s_name_is_visible(store, name):
    with pytest.raises(UsageError, match="team's name"):
        add(store, "ann", "submitter", team=name)


def test_a_new_team_belongs_to_one_of_two_who_sign_up_at_once(store):
    start = threading.Barrier(4)

    def sign_up(number):
        new = NewAccount(name=f"p{number}", roles=("submitter",), team="South", password=PASSWORD)
        start.wait()
        try:
            return add_account(store, new, actor="test", is_team_new=True).name
        except UsageError:
            return None

    with ThreadPoolExecutor(4) as pool:
        assert sum(name is not None for name in pool.map(sign_up, range(4))) == 1


def test_of_many_who_take_a_name_at_once_one_has_it(store):
    start = threading.Barrier(6)

    def take(_: int) -> bool:
        start.wait(timeout=60)
        try:
            add(store, "ann", "submitter", password=None)
        except UsageError:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(take, range(6))) == 1


def test_the_last_maintainer_stays(store):
    assert not has_maintainer(store)
    ann, bob = add(store, "ann", "maintainer"), add(store, "bob", "maintainer", password=None)
    set_disabled(store, bob, is_disabled=True, actor="ann")
    with pytest.raises(Declined, match="only maintainer"):
        set_roles(store, ann, ("submitter",), actor="ann")
    with pytest.raises(Declined, match="only maintainer"):
        set_disabled(store, ann, is_disabled=True, actor="ann")
    set_disabled(store, bob, is_disabled=False, actor="ann")
    set_roles(store, ann, ("submitter",), actor="ann")
    assert [one.name for one in list_accounts(store, role="maintainer")] == ["bob"] and has_maintainer(store)


def test_a_session_ends_when_signed_out_or_old_or_its_account_is_closed(store):
    ann = add(store, "ann", "submitter")
    first, second = begin_session(store, ann), begin_session(store, ann)
    assert [find_session(store, one) for one in (first, first + "x", second)] == [ann, None, ann]
    end_session(store, first)
    assert find_session(store, first) is None and find_session(store, second) == ann
    expire(store, tables.sessions, seen_at=LONG_AGO)
    assert find_session(store, second) is None
    third = begin_session(store, ann)
    expire(store, tables.sessions, expires_at=LONG_AGO)
    assert find_session(store, third) is None
    fourth = begin_session(store, ann)
    end_sessions(store, ann)
    assert find_session(store, fourth) is None


def test_closing_an_account_or_changing_its_password_ends_what_was_open(store):
    add(store, "boss", "maintainer", password=None)
    ann = add(store, "ann", "submitter")
    session, token = begin_session(store, ann), make_token(store, ann, "ci", ["submit"], days=3)
    set_password(store, ann, "another lantern cobalt", actor="ann")
    assert find_session(store, session) is None and find_token(store, token) is not None
    assert check_password(store, "ann", PASSWORD) is None
    session = begin_session(store, ann)
    set_disabled(store, ann, is_disabled=True, actor="boss")
    assert find_session(store, session) is None and find_token(store, token) is None
    assert check_password(store, "ann", "another lantern cobalt") is None


def test_a_session_that_is_used_lives_on(store):
    ann = add(store, "ann", "submitter", password=None)
    secret = begin_session(store, ann)
    with store.write() as connection:
        from medthink.core.clock import utc_in

        connection.execute(tables.sessions.update().values(seen_at=utc_in(-86400)))
    assert find_session(store, secret) == ann
    with store.read() as connection:
        assert connection.execute(sa.select(tables.sessions.c.seen_at)).scalar_one() > utc_in(-60)


def test_a_token_is_shown_once_and_worthless_when_revoked_or_over(store):
    ann, bob = add(store, "ann", "submitter", password=None), add(store, "bob", "submitter", password=None)
    secret = make_token(store, ann, "nightly", ["read", "submit"], days=30)
    account, token = find_token(store, secret)
    assert (account, token.scopes, token.label) == (ann, ("read", "submit"), "nightly")
    assert secret.startswith(token.hint) and len(token.hint) < 10
    assert not revoke_token(store, bob, token.id)
    assert find_token(store, secret) is not None
    assert revoke_token(store, ann, token.id)
    assert find_token(store, secret) is None and list_tokens(store, ann)[0].is_over
    other = make_token(store, ann, "", ["read"], days=1)
    expire(store, tables.api_tokens, expires_at=LONG_AGO)
    assert find_token(store, other) is None
    for scopes, days in (([], 1), (["read"], 0), (["read"], 999)):
        with pytest.raises(UsageError):
            make_token(store, ann, "x", scopes, days=days)


def test_tokens_that_are_over_leave_room_for_others_and_can_be_removed(store):
    ann, bob = add(store, "ann", "submitter", password=None), add(store, "bob", "submitter", password=None)
    for _ in range(50):
        make_token(store, ann, "old", ["read"], days=1)
    with pytest.raises(UsageError, match="50 tokens"):
        make_token(store, ann, "new", ["read"], days=1)
    expire(store, tables.api_tokens, expires_at=LONG_AGO)
    make_token(store, ann, "new", ["read"], days=1)
    new, *old = list_tokens(store, ann)
    assert not remove_token(store, ann, new.id) and not remove_token(store, bob, old[0].id)
    assert remove_token(store, ann, old[0].id) and len(list_tokens(store, ann)) == 50


def test_an_invitation_makes_one_account_with_its_roles_and_team(store):
    secret = invite(store, ["submitter"], actor="boss", team="North", about="a colleague")
    assert find_invitation(store, secret).team == "North"
    asked = NewAccount(name="ann", roles=("maintainer",), team="South", password=PASSWORD)
    made = accept_invitation(store, secret, asked)
    assert (made.roles, made.team) == (("submitter",), "North")
    assert find_invitation(store, secret) is None
    with pytest.raises(Declined, match="has been used or has expired"):
        accept_invitation(store, secret, NewAccount(name="bob", roles=(), password=PASSWORD))
    assert find_account(store, "bob") is None


def test_of_many_who_accept_one_invitation_one_does(store):
    secret = invite(store, ["reader"], actor="boss")
    start = threading.Barrier(6)

    def take(number: int) -> bool:
        start.wait(timeout=60)
        try:
            accept_invitation(store, secret, NewAccount(name=f"ann{number}", roles=()))
        except Declined:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(take, range(6))) == 1
    assert len(list_accounts(store)) == 1


def test_an_invitation_that_fails_can_be_tried_again(store):
    secret = invite(store, ["reader"], actor="boss")
    with pytest.raises(UsageError):
        accept_invitation(store, secret, NewAccount(name="not a name", roles=()))
    assert accept_invitation(store, secret, NewAccount(name="ann", roles=())).roles == ("reader",)


def test_a_readers_personal_link_opens_until_it_is_renewed_or_revoked(store):
    reader, secret = invite_reader(store, "reader-1", shown_name="Dr. Tarn", actor="coordinator")
    assert (reader.roles, reader.shown_name, reader.has_password) == (("reader",), "Dr. Tarn", False)
    assert accept_personal_link(store, secret) == accept_personal_link(store, secret) == reader
    with pytest.raises(Declined):
        accept_invitation(store, secret, NewAccount(name="ann", roles=()))
    other = renew_link(store, reader, actor="coordinator")
    assert accept_personal_link(store, secret) is None and accept_personal_link(store, other) == reader
    number = list_invitations(store)[0].id
    assert revoke_invitation(store, number, actor="coordinator") and accept_personal_link(store, other) is None
    assert not revoke_invitation(store, 999, actor="coordinator")
    third = renew_link(store, reader, actor="coordinator")
    set_disabled(store, reader, is_disabled=True, actor="coordinator")
    assert accept_personal_link(store, third) is None and accept_personal_link(store, "nothing") is None


def test_guessing_is_slowed_down_by_name_and_by_address(store):
    for _ in range(10):
        limit_sign_in(store, "ann", "192.0.2.1")
    with pytest.raises(TooManyAttempts, match="too many"):
        limit_sign_in(store, "ANN ", "192.0.2.1")
    limit_sign_in(store, "ann", "192.0.2.2")
    forget_attempts(store, "ann", "192.0.2.1")
    limit_sign_in(store, "ann", "192.0.2.1")
    for number in range(48):
        limit_sign_in(store, f"name{number}", "192.0.2.1")
    with pytest.raises(TooManyAttempts):
        limit_sign_in(store, "another", "192.0.2.1")
    expire(store, tables.attempts, since=LONG_AGO)
    limit_sign_in(store, "another", "192.0.2.1")


def test_nothing_that_opens_a_door_is_in_the_store(store, tmp_path):
    ann = add(store, "ann", "submitter")
    secrets = [
        PASSWORD,
        begin_session(store, ann),
        make_token(store, ann, "ci", ["read"], days=1),
        invite(store, ["reader"], actor="ann"),
        invite_reader(store, "reader-1", actor="ann")[1],
    ]
    with store.read() as connection:
        rows = [connection.execute(sa.select(table)).all() for table in tables.metadata.sorted_tables]
    write_backup(store, tmp_path / "backup.zip")
    assert [secret for secret in secrets if secret in str(rows) or secret[8:] in str(rows)] == []
