"""Signing in, out and up, and the links of invitations."""

from typing import Any
from urllib.parse import quote

import msgspec
from litestar import get, post
from litestar.datastructures import Cookie
from litestar.di import NamedDependency
from litestar.exceptions import NotFoundException
from litestar.params import FromPath, SkipValidation, URLEncodedBody
from litestar.response import Redirect, Response

from medthink.accounts.account import Account
from medthink.accounts.attempts import TooManyAttempts, admit_sign_in, count_attempt, forget_attempts
from medthink.accounts.invitations import Invitation, accept, enter, find_invitation
from medthink.accounts.people import NewAccount, add_account, check_password
from medthink.accounts.sessions import LONGEST_S, begin_session, end_session
from medthink.board.store import BoardStore
from medthink.core.errors import Declined, MedThinkError
from medthink.web.access import Asked, caller_of, needs
from medthink.web.application import html
from medthink.web.feature import Feature
from medthink.web.identify import COOKIE, SECURE_COOKIE
from medthink.web.pages.people import EnterPage, FormChoice, SignInPage, SignUpPage
from medthink.web.rendering import Site, render
from medthink.web.settings import ServeSettings

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


class Entrance:
    """Sign-in and sign-up of a board."""

    def __init__(self, store: BoardStore, site: Site, settings: ServeSettings) -> None:
        self.store = store
        self.site = site
        self.settings = settings

    def providers(self) -> tuple[FormChoice, ...]:
        """The identity providers."""
        return tuple(FormChoice(name=one.name, words=one.words) for one in self.settings.providers)

    def show_sign_in(self, *, next: str, name: str = "", problem: str = "") -> str:
        """The page to sign in on."""
        page = SignInPage(
            next=local_path(next),
            name=name,
            problem=problem,
            providers=self.providers(),
            is_open=self.settings.sign_up == "open",
        )
        return render("sign-in.html", page, self.site)

    def show_sign_up(self, page: SignUpPage) -> str:
        """The sign-up page."""
        return render("sign-up.html", page, self.site)

    def let_in(self, account: Account, to: str) -> Redirect:
        """Sign a person in with a new session, and redirect them."""
        answer = Redirect(local_path(to), status_code=303)
        answer.set_cookie(self.cookie(begin_session(self.store, account), LONGEST_S))
        return answer

    def cookie(self, value: str, max_age: int) -> Cookie:
        """The session's cookie: not readable by scripts, and sent only by https if the board uses it."""
        secure = self.settings.is_secure
        name = SECURE_COOKIE if secure else COOKIE
        return Cookie(
            key=name, value=value, max_age=max_age, path="/", httponly=True, samesite="lax", secure=secure
        )  # fmt: skip

    def address(self, request: Asked) -> str:
        """The public address of this site, without a trailing slash."""
        return (self.settings.public_url or str(request.base_url)).rstrip("/")

    def link(self, request: Asked, secret: str) -> str:
        """The address to give to somebody who is invited."""
        return f"{self.address(request)}/invitation/{secret}"

    def invitation(self, secret: str) -> Invitation:
        """The invitation behind a link, or an error page."""
        found = find_invitation(self.store, secret)
        if found is None:
            raise NotFoundException(detail="This invitation has been used or has expired. Ask for a new one.")
        return found


GivenEntrance = NamedDependency[SkipValidation[Entrance]]


def local_path(given: str) -> str:
    """A path on this site; anything that could lead elsewhere becomes the home page."""
    is_local = given.startswith("/") and not given.startswith(("//", "/\\")) and given.isprintable()
    return quote(given, safe="/?&=%+-._~:@,;!*'()") if is_local and "\\" not in given else "/"


@get("/sign-in", guards=[needs("visitor")], sync_to_thread=True)
def show_sign_in(request: Asked, entrance: GivenEntrance) -> Response[Any]:
    """The page to sign in on."""
    to = request.query_params.get("next", "/")
    if caller_of(request).account is not None:
        return Redirect(local_path(to), status_code=303)
    return html(entrance.show_sign_in(next=to))


@post("/sign-in", guards=[needs("visitor")], sync_to_thread=True)
def sign_in(request: Asked, entrance: GivenEntrance, data: Filled) -> Response[Any]:
    """Sign in by name and password."""
    address = request.client.host if request.client else ""
    try:
        admit_sign_in(entrance.store, data.name, address)
    except TooManyAttempts as error:
        page = entrance.show_sign_in(next=data.next, name=data.name, problem=tell(error))
        answer = html(page, status=429)
        answer.set_header("Retry-After", str(error.wait_s))
        return answer
    account = check_password(entrance.store, data.name, data.password)
    if account is None:
        said = "The name or the password is wrong."
        return html(entrance.show_sign_in(next=data.next, name=data.name, problem=said), status=422)
    forget_attempts(entrance.store, data.name, address)
    return entrance.let_in(account, data.next)


@post("/sign-out", guards=[needs("visitor")], sync_to_thread=True)
def sign_out(request: Asked, entrance: GivenEntrance) -> Redirect:
    """End this session."""
    caller = caller_of(request)
    if caller.session:
        end_session(entrance.store, caller.session)
    answer = Redirect("/", status_code=303)
    answer.set_cookie(entrance.cookie("", 0))
    return answer


@get("/sign-up", guards=[needs("visitor")], sync_to_thread=True)
def show_sign_up(entrance: GivenEntrance) -> Response[str]:
    """The sign-up page, if sign-up is open."""
    return html(entrance.show_sign_up(_open_page(entrance)))


@post("/sign-up", guards=[needs("visitor")], sync_to_thread=True)
def sign_up(request: Asked, entrance: GivenEntrance, data: Filled) -> Response[Any]:
    """Make an account for a new team."""
    page = _open_page(entrance)
    new = NewAccount(
        name=data.name, shown_name=data.shown_name, team=data.team, password=data.password, roles=("submitter",)
    )
    try:
        admit_sign_up(entrance.store, request)
        if not data.team.strip():
            raise Declined("a team is needed", remedy="submissions are listed under its name")
        account = add_account(entrance.store, new, actor=data.name[:100], is_team_new=True)
    except MedThinkError as error:
        return html(entrance.show_sign_up(again(page, data, error)), status=422)
    return entrance.let_in(account, _WELCOME)


@get("/invitation/{secret:str}", guards=[needs("visitor")], sync_to_thread=True)
def show_invitation(secret: FromPath[str], entrance: GivenEntrance) -> Response[str]:
    """The page of an invitation."""
    found = entrance.invitation(secret)
    if found.is_personal:
        page = EnterPage(action=f"invitation/{secret}", shown_name=found.note, expires_at=found.expires_at[:10])
        return html(render("enter.html", page, entrance.site))
    return html(entrance.show_sign_up(_invited_page(entrance, found, secret)))


@post("/invitation/{secret:str}", guards=[needs("visitor")], sync_to_thread=True)
def take_invitation(secret: FromPath[str], entrance: GivenEntrance, data: Filled) -> Response[Any]:
    """Sign in by a personal link, or create the invited account."""
    found = entrance.invitation(secret)
    if found.is_personal:
        account = enter(entrance.store, secret)
        if account is None:
            raise NotFoundException(detail="This account is closed.")
        return entrance.let_in(account, "/")
    new = NewAccount(name=data.name, shown_name=data.shown_name, team=data.team, password=data.password, roles=())
    try:
        account = accept(entrance.store, secret, new)
    except MedThinkError as error:
        return html(entrance.show_sign_up(again(_invited_page(entrance, found, secret), data, error)), status=422)
    return entrance.let_in(account, _WELCOME)


def admit_sign_up(store: BoardStore, request: Asked) -> None:
    """Limit the number of new accounts per address."""
    address = request.client.host if request.client else ""
    if not count_attempt(store, f"sign-up/{address}", _MOST_SIGN_UPS):
        raise Declined("too many accounts were created from your address", remedy="try again later")


def _open_page(entrance: Entrance) -> SignUpPage:
    if entrance.settings.sign_up != "open":
        raise NotFoundException(detail="Accounts are by invitation only.")
    return SignUpPage(
        action="sign-up",
        title="Make an account",
        intro="With an account you can submit predictions for a team. Nothing is public until you publish it.",
        providers=entrance.providers(),
    )


def _invited_page(entrance: Entrance, found: Invitation, secret: str) -> SignUpPage:
    return SignUpPage(
        action=f"invitation/{secret}",
        title="You are invited",
        intro=f"{found.made_by} invites you as {' and '.join(found.roles)}, until {found.expires_at[:10]}.",
        fixed_team=found.team or "",
        asks_team=found.team is None and "submitter" in found.roles,
        providers=entrance.providers(),
    )


def again(page: SignUpPage, data: NameForm, error: MedThinkError) -> SignUpPage:
    """The page as filled in, with the error."""
    return msgspec.structs.replace(
        page, name=data.name, shown_name=data.shown_name, team=data.team, problem=tell(error)
    )


def tell(error: MedThinkError) -> str:
    """An error as one sentence of a page."""
    said = f"{error.problem}: {error.remedy}" if error.remedy else error.problem
    return f"{said[:1].upper()}{said[1:]}."


def entrance_feature(entrance: Entrance) -> Feature:
    """Signing in, out and up."""
    routes = [show_sign_in, sign_in, sign_out, show_sign_up, sign_up, show_invitation, take_invitation]
    return Feature(routes=routes, shared={"entrance": entrance})
