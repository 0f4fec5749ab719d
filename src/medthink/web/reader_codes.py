"""Readers of cases: an account, or a random code in a cookie."""

import secrets
from typing import Any, TypeVar

from litestar.datastructures import Cookie
from litestar.response import Response

from medthink.accounts.account import Account
from medthink.web.access import Asked, caller_of

COOKIE = "medthink_reader"
_YEAR_S = 365 * 86400
_Answer = TypeVar("_Answer", bound=Response[Any])


def reader_of(request: Asked) -> str:
    """The reader's code: that of the account, from the cookie, or a new one."""
    account = caller_of(request).account
    if account is not None:
        return account_reader(account)
    given = request.cookies.get(COOKIE, "")
    return given if len(given) == 32 and given.isalnum() and given.isascii() else secrets.token_hex(16)


def account_reader(account: Account) -> str:
    """The code of an account as a reader."""
    return f"account {account.id}"


def remember_reader(response: _Answer, request: Asked, reader: str) -> _Answer:
    """Store a new reader's code in the browser; no script and no other site can read it."""
    if caller_of(request).account is None and request.cookies.get(COOKIE) != reader:
        response.set_cookie(
            Cookie(key=COOKIE, value=reader, max_age=_YEAR_S, httponly=True, samesite="strict", path="/")
        )
    return response
