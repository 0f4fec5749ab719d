"""The pages about people: signing in and up, one's own account, and all accounts for maintainers."""

import msgspec

from medthink.accounts.account import Account
from medthink.accounts.invitations import Invitation
from medthink.accounts.roles import MEANINGS, ROLES, SCOPE_MEANINGS, SCOPES
from medthink.accounts.tokens import ApiToken


class FormChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Something to tick or press: its name in the form, its words, and whether it is ticked."""

    name: str
    words: str
    is_on: bool = False


class SignInPage(msgspec.Struct, frozen=True, kw_only=True):
    """The sign-in page."""

    next: str
    name: str = ""
    problem: str = ""
    providers: tuple[FormChoice, ...] = ()
    is_open: bool = False


class SignUpPage(msgspec.Struct, frozen=True, kw_only=True):
    """The sign-up form; `action` is its target, `vouched` the provider that confirmed the person."""

    action: str
    title: str
    intro: str = ""
    name: str = ""
    shown_name: str = ""
    team: str = ""
    fixed_team: str = ""
    asks_team: bool = True
    vouched: str = ""
    problem: str = ""
    providers: tuple[FormChoice, ...] = ()


class EnterPage(msgspec.Struct, frozen=True, kw_only=True):
    """A personal link: one button, so that a program that follows links does not sign in."""

    action: str
    shown_name: str
    expires_at: str


class AccountPage(msgspec.Struct, frozen=True, kw_only=True):
    """One's own account; `new_token` is shown only once."""

    account: Account
    roles: tuple[FormChoice, ...]
    tokens: tuple[ApiToken, ...]
    scopes: tuple[FormChoice, ...]
    providers: tuple[FormChoice, ...]
    new_token: str = ""
    problem: str = ""
    done: str = ""


class PersonLine(msgspec.Struct, frozen=True, kw_only=True):
    """A person in the maintainers' list."""

    account: Account
    roles: tuple[FormChoice, ...]


class PeoplePage(msgspec.Struct, frozen=True, kw_only=True):
    """All accounts and invitations; `new_link` is shown only once."""

    people: tuple[PersonLine, ...]
    invitations: tuple[Invitation, ...]
    roles: tuple[FormChoice, ...]
    new_link: str = ""
    problem: str = ""


def role_choices(account: Account | None = None) -> tuple[FormChoice, ...]:
    """Every role with its meaning, those of the account ticked."""
    held = account.roles if account else ()
    return tuple(FormChoice(name=role, words=MEANINGS[role], is_on=role in held) for role in ROLES)


def scope_choices(account: Account) -> tuple[FormChoice, ...]:
    """The scopes that a token of this account may have."""
    offered = [scope for scope in SCOPES if scope != "maintain" or account.may("maintainer")]
    return tuple(FormChoice(name=scope, words=SCOPE_MEANINGS[scope], is_on=scope == "read") for scope in offered)
