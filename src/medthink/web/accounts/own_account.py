"""The account page: password, sessions and API tokens."""

from typing import Any

import msgspec
from litestar import get, post
from litestar.exceptions import NotFoundException
from litestar.params import URLEncodedBody
from litestar.response import Redirect, Response

from medthink.accounts.account import Account, check_password, set_password
from medthink.accounts.roles import SCOPES
from medthink.accounts.sessions import end_sessions, list_tokens, make_token, remove_token, revoke_token
from medthink.core.errors import Declined, MedThinkError
from medthink.web.accounts.sign_in import (
    AccountPage,
    error_sentence,
    let_in,
    provider_choices,
    role_choices,
    scope_choices,
)
from medthink.web.app.access import Asked, RowNumber, account_of, needs
from medthink.web.app.application import Feature, html
from medthink.web.app.rendering import render
from medthink.web.serve_app import GivenApp, ServeApp

Ticked = tuple[str, ...] | str


class PasswordForm(msgspec.Struct):
    """The old password and the new one."""

    old: str = ""
    password: str = ""


class TokenForm(msgspec.Struct):
    """The form of a new token: its purpose, its scopes, and its validity."""

    label: str = ""
    days: str = ""
    scopes: Ticked = ()


def listed(given: Ticked) -> tuple[str, ...]:
    """The ticked values: one box gives a string, several give a list."""
    return (given,) if isinstance(given, str) else given


@get("/account", guards=[needs("member")], sync_to_thread=True)
def show_account(request: Asked, app: GivenApp) -> Response[str]:
    """Show the account page."""
    return _show(app, account_of(request))


@post("/account/password", guards=[needs("member")], sync_to_thread=True)
def change_password(request: Asked, app: GivenApp, data: URLEncodedBody[PasswordForm]) -> Response[Any]:
    """Change the password; all sessions end except the new one."""
    account = account_of(request)
    try:
        if account.has_password and check_password(app.store, account.name, data.old) is None:
            raise Declined("the old password is wrong", remedy="enter your current password")
        set_password(app.store, account, data.password, actor=account.name)
    except MedThinkError as error:
        return _show(app, account, problem=error_sentence(error), status=422)
    return let_in(app, account, "/account")


@post("/account/tokens", guards=[needs("member")], sync_to_thread=True)
def add_token(request: Asked, app: GivenApp, data: URLEncodedBody[TokenForm]) -> Response[str]:
    """Create a token, and show it once."""
    account = account_of(request)
    offered = {choice.name for choice in scope_choices(account)}
    scopes = [scope for scope in SCOPES if scope in listed(data.scopes) and scope in offered]
    try:
        made = make_token(app.store, account, data.label, scopes, days=_number(data.days))
    except MedThinkError as error:
        return _show(app, account, problem=error_sentence(error), status=422)
    return _show(app, account, new_token=made)


@post("/account/tokens/{number:int}/revoke", guards=[needs("member")], sync_to_thread=True)
def end_token(number: RowNumber, request: Asked, app: GivenApp) -> Redirect:
    """Revoke a token."""
    if not revoke_token(app.store, account_of(request), number):
        raise NotFoundException(detail="You have no such token.")
    return Redirect("/account", status_code=303)


@post("/account/tokens/{number:int}/remove", guards=[needs("member")], sync_to_thread=True)
def drop_token(number: RowNumber, request: Asked, app: GivenApp) -> Redirect:
    """Remove a token that is no longer valid from the list."""
    if not remove_token(app.store, account_of(request), number):
        raise NotFoundException(detail="You have no such token, or it is still valid.")
    return Redirect("/account", status_code=303)


@post("/account/sign-out-everywhere", guards=[needs("member")], sync_to_thread=True)
def sign_out_everywhere(request: Asked, app: GivenApp) -> Redirect:
    """End every session."""
    end_sessions(app.store, account_of(request))
    return Redirect("/sign-in", status_code=303)


def _show(
    app: ServeApp, account: Account, *, new_token: str = "", problem: str = "", status: int = 200
) -> Response[str]:
    page = AccountPage(
        account=account,
        roles=tuple(choice for choice in role_choices(account) if choice.is_on),
        tokens=tuple(list_tokens(app.store, account)),
        scopes=scope_choices(account),
        providers=provider_choices(app),
        new_token=new_token,
        problem=problem,
    )
    return html(render("account.html", page, app.site, here="account"), status=status)


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 6 else 0


account_feature = Feature(routes=[show_account, change_password, add_token, end_token, drop_token, sign_out_everywhere])
