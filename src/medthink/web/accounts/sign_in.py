"""Signing in, out and up, and the links of invitations."""

from typing import Any
from urllib.parse import quote

import msgspec
from litestar import get, post
from litestar.datastructures import Cookie
from litestar.exceptions import NotFoundException
from litestar.params import FromPath, URLEncodedBody
from litestar.response import Redirect, Response

from medthink.accounts.account import Account, NewAccount, add_account, check_password
from medthink.accounts.invitations import Invitation, accept_invitation, accept_personal_link, find_invitation
from medthink.accounts.roles import MEANINGS, ROLES, SCOPE_MEANINGS, SCOPES
from medthink.accounts.sessions import (
    LONGEST_S,
    ApiToken,
    TooManyAttempts,
    begin_session,
    count_attempt,
    end_session,
    forget_attempts,
    limit_sign_in,
)
from medthink.core.errors import Declined, MedThinkError
from medthink.store.engine import Store
from medthink.web.app.access import COOKIE, SECURE_COOKIE, Asked, caller_of, client_network, needs
from medthink.web.app.application import Feature, html
from medthink.web.app.rendering import render
from medthink.web.serve_app import GivenApp, ServeApp


class FormChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A choice of a form: its name, its label, and whether it is ticked."""

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


class PersonalLinkPage(msgspec.Struct, frozen=True, kw_only=True):
    """The page of a personal link: one button, so that a program that follows links does not sign in."""

    action: str
    shown_name: str
    expires_at: str


class AccountPage(msgspec.Struct, frozen=True, kw_only=True):
    """The account page; `new_token` is shown only once."""

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


_MOST_SIGN_UPS = 20
_WELCOME = "/account"


class NameForm(msgspec.Struct):
    """The fields of the sign-in and sign-up forms."""

    name: str = ""
    shown_name: str = ""
    team: str = ""
    password: str = ""
    next: str = ""


Filled = URLEncodedBody[NameForm]


def provider_choices(app: ServeApp) -> tuple[FormChoice, ...]:
    """The identity providers."""
    return tuple(FormChoice(name=one.name, words=one.words) for one in app.settings.providers)


def sign_in_page(app: ServeApp, *, next: str, name: str = "", problem: str = "") -> str:
    """The sign-in page."""
    page = SignInPage(
        next=local_path(next),
        name=name,
        problem=problem,
        providers=provider_choices(app),
        is_open=app.settings.sign_up == "open",
    )
    return render("sign-in.html", page, app.site)


def sign_up_page(app: ServeApp, page: SignUpPage) -> str:
    """The sign-up page."""
    return render("sign-up.html", page, app.site)


def let_in(app: ServeApp, account: Account, to: str) -> Redirect:
    """Sign a person in with a new session, and redirect them."""
    answer = Redirect(local_path(to), status_code=303)
    answer.set_cookie(make_cookie(app, begin_session(app.store, account), LONGEST_S))
    return answer


def make_cookie(app: ServeApp, value: str, max_age: int) -> Cookie:
    """The session's cookie: not readable by scripts, and sent only over https if the board uses it."""
    secure = app.settings.is_secure
    name = SECURE_COOKIE if secure else COOKIE
    return Cookie(
        key=name, value=value, max_age=max_age, path="/", httponly=True, samesite="lax", secure=secure
    )  # fmt: skip


def site_address(app: ServeApp, request: Asked) -> str:
    """The public address of this site, without a trailing slash."""
    return (app.settings.public_url or str(request.base_url)).rstrip("/")


def invitation_link(app: ServeApp, request: Asked, secret: str) -> str:
    """The address of an invitation."""
    return f"{site_address(app, request)}/invitation/{secret}"


def open_invitation(app: ServeApp, secret: str) -> Invitation:
    """The invitation behind a link, or an error page."""
    found = find_invitation(app.store, secret)
    if found is None:
        raise NotFoundException(detail="This invitation has been used or has expired. Ask for a new one.")
    return found


def local_path(given: str) -> str:
    """A path on this site; anything that could lead elsewhere becomes the home page."""
    is_local = given.startswith("/") and not given.startswith(("//", "/\\")) and given.isprintable()
    return quote(given, safe="/?&=%+-._~:@,;!*'()") if is_local and "\\" not in given else "/"


@get("/sign-in", guards=[needs("visitor")], sync_to_thread=True)
def show_sign_in(request: Asked, app: GivenApp) -> Response[Any]:
    """The sign-in page."""
    to = request.query_params.get("next", "/")
    if caller_of(request).account is not None:
        return Redirect(local_path(to), status_code=303)
    return html(sign_in_page(app, next=to))


@post("/sign-in", guards=[needs("visitor")], sync_to_thread=True)
def sign_in(request: Asked, app: GivenApp, data: Filled) -> Response[Any]:
    """Sign in by name and password."""
    address = client_network(request)
    try:
        limit_sign_in(app.store, data.name, address)
    except TooManyAttempts as error:
        page = sign_in_page(app, next=data.next, name=data.name, problem=error_sentence(error))
        answer = html(page, status=429)
        answer.set_header("Retry-After", str(error.wait_s))
        return answer
    account = check_password(app.store, data.name, data.password)
    if account is None:
        said = "The name or the password is wrong."
        return html(sign_in_page(app, next=data.next, name=data.name, problem=said), status=422)
    forget_attempts(app.store, data.name, address)
    return let_in(app, account, data.next)


@post("/sign-out", guards=[needs("visitor")], sync_to_thread=True)
def sign_out(request: Asked, app: GivenApp) -> Redirect:
    """End this session."""
    caller = caller_of(request)
    if caller.session:
        end_session(app.store, caller.session)
    answer = Redirect("/", status_code=303)
    answer.set_cookie(make_cookie(app, "", 0))
    return answer


@get("/sign-up", guards=[needs("visitor")], sync_to_thread=True)
def show_sign_up(app: GivenApp) -> Response[str]:
    """The sign-up page, if sign-up is open."""
    return html(sign_up_page(app, _open_page(app)))


@post("/sign-up", guards=[needs("visitor")], sync_to_thread=True)
def sign_up(request: Asked, app: GivenApp, data: Filled) -> Response[Any]:
    """Create an account for a new team."""
    page = _open_page(app)
    new = NewAccount(
        name=data.name, shown_name=data.shown_name, team=data.team, password=data.password, roles=("submitter",)
    )
    try:
        admit_sign_up(app.store, request)
        if not data.team.strip():
            raise Declined("a team is needed", remedy="submissions are listed under its name")
        account = add_account(app.store, new, actor=data.name[:100], is_team_new=True)
    except MedThinkError as error:
        return html(sign_up_page(app, form_again(page, data, error)), status=422)
    return let_in(app, account, _WELCOME)


@get("/invitation/{secret:str}", guards=[needs("visitor")], sync_to_thread=True)
def show_invitation(secret: FromPath[str], app: GivenApp) -> Response[str]:
    """The page of an invitation."""
    found = open_invitation(app, secret)
    if found.is_personal:
        page = PersonalLinkPage(action=f"invitation/{secret}", shown_name=found.note, expires_at=found.expires_at[:10])
        return html(render("enter.html", page, app.site))
    return html(sign_up_page(app, _invited_page(app, found, secret)))


@post("/invitation/{secret:str}", guards=[needs("visitor")], sync_to_thread=True)
def take_invitation(secret: FromPath[str], app: GivenApp, data: Filled) -> Response[Any]:
    """Sign in by a personal link, or create the invited account."""
    found = open_invitation(app, secret)
    if found.is_personal:
        account = accept_personal_link(app.store, secret)
        if account is None:
            raise NotFoundException(detail="This account is disabled.")
        return let_in(app, account, "/")
    new = NewAccount(name=data.name, shown_name=data.shown_name, team=data.team, password=data.password, roles=())
    try:
        account = accept_invitation(app.store, secret, new)
    except MedThinkError as error:
        return html(sign_up_page(app, form_again(_invited_page(app, found, secret), data, error)), status=422)
    return let_in(app, account, _WELCOME)


def admit_sign_up(store: Store, request: Asked) -> None:
    """Limit the number of new accounts per address."""
    address = client_network(request)
    if not count_attempt(store, f"sign-up/{address}", _MOST_SIGN_UPS):
        raise Declined("too many accounts were created from your address", remedy="try again later")


def _open_page(app: ServeApp) -> SignUpPage:
    if app.settings.sign_up != "open":
        raise NotFoundException(detail="Accounts are by invitation only.")
    return SignUpPage(
        action="sign-up",
        title="Create an account",
        intro="With an account you can submit predictions for a team. Nothing is public until you publish it.",
        providers=provider_choices(app),
    )


def _invited_page(app: ServeApp, found: Invitation, secret: str) -> SignUpPage:
    return SignUpPage(
        action=f"invitation/{secret}",
        title="You are invited",
        intro=f"{found.made_by} invites you as {' and '.join(found.roles)}, until {found.expires_at[:10]}.",
        fixed_team=found.team or "",
        asks_team=found.team is None and "submitter" in found.roles,
        providers=provider_choices(app),
    )


def form_again(page: SignUpPage, data: NameForm, error: MedThinkError) -> SignUpPage:
    """The form as filled in, with the error."""
    return msgspec.structs.replace(
        page, name=data.name, shown_name=data.shown_name, team=data.team, problem=error_sentence(error)
    )


def error_sentence(error: MedThinkError) -> str:
    """An error as a sentence for a page."""
    said = f"{error.problem}: {error.remedy}" if error.remedy else error.problem
    return f"{said[:1].upper()}{said[1:]}."


sign_in_feature = Feature(
    routes=[show_sign_in, sign_in, sign_out, show_sign_up, sign_up, show_invitation, take_invitation]
)
