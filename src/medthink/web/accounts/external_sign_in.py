"""Signing in through an identity provider: the redirect, the callback, and the account."""

from typing import Any

import msgspec
from litestar import get, post
from litestar.datastructures import Cookie
from litestar.exceptions import NotFoundException
from litestar.params import FromPath
from litestar.response import Redirect, Response

from medthink.accounts.account import Account, NewAccount, add_account
from medthink.accounts.identity_providers import (
    Identity,
    IdentityProvider,
    complete_sign_in,
    find_by_identity,
    link_identity,
    pending_identity,
    save_pending_identity,
    start_sign_in,
)
from medthink.accounts.invitations import accept_invitation
from medthink.core.errors import Declined, MedThinkError, UsageError
from medthink.web.accounts.sign_in import (
    Filled,
    NameForm,
    SignUpPage,
    admit_sign_up,
    error_sentence,
    form_again,
    let_in,
    local_path,
    open_invitation,
    sign_in_page,
    sign_up_page,
    site_address,
)
from medthink.web.app.access import Asked, caller_of, needs
from medthink.web.app.application import Feature, html
from medthink.web.serve_app import GivenApp, ServeApp

FLOW_COOKIE = "medthink_flow"
_FLOW_S = 600
_INVITATION = "invitation/"


@get("/sign-in/{provider:str}", guards=[needs("visitor")], sync_to_thread=True)
def redirect_to_provider(provider: FromPath[str], request: Asked, app: GivenApp) -> Response[Any]:
    """Redirect the browser to the provider; a cookie identifies the attempt."""
    asked = request.query_params
    detail = {"next": local_path(asked.get("next", "/")), "from": asked.get("from", "")[:200]}
    try:
        begun = start_sign_in(
            app.store,
            _provider(app, provider),
            callback=_callback(app, request, provider),
            detail=detail,
        )
    except MedThinkError as error:
        return html(sign_in_page(app, next=detail["next"], problem=error_sentence(error)), status=502)
    answer = Redirect(begun.address, status_code=303)
    answer.set_cookie(_flow_cookie(app, begun.state))
    return answer


@get("/sign-in/{provider:str}/back", guards=[needs("visitor")], sync_to_thread=True)
def provider_callback(provider: FromPath[str], request: Asked, app: GivenApp) -> Response[Any]:
    """Handle the provider's answer: sign in, link an account, or offer to create one."""
    asked = request.query_params
    try:
        state = asked.get("state", "")
        if not state or state != request.cookies.get(FLOW_COOKIE):
            raise UsageError("this sign-in was started in another browser", remedy="start again")
        if asked.get("error"):
            raise Declined(f"{provider} did not sign you in", remedy="try again, or sign in in another way")
        identity, detail = complete_sign_in(
            app.store,
            _provider(app, provider),
            callback=_callback(app, request, provider),
            state=state,
            code=asked.get("code", ""),
        )
    except MedThinkError as error:
        return html(sign_in_page(app, next="/", problem=error_sentence(error)), status=422)
    return _admit(app, request, identity, detail)


def _admit(app: ServeApp, request: Asked, identity: Identity, detail: dict[str, str]) -> Response[Any]:
    caller = caller_of(request)
    known = find_by_identity(app.store, identity)
    if detail["from"] == "account" and caller.account is not None:
        if known is None:
            link_identity(app.store, caller.account, identity)
        return Redirect("/account", status_code=303)
    if known is not None:
        return let_in(app, known, detail["next"])
    if app.settings.sign_up != "open" and not detail["from"].startswith(_INVITATION):
        said = "You have no account here yet. Accounts are by invitation only."
        return html(sign_in_page(app, next=detail["next"], problem=said), status=403)
    answer = Redirect("/welcome", status_code=303)
    answer.set_cookie(_flow_cookie(app, save_pending_identity(app.store, identity, detail["from"])))
    return answer


@get("/welcome", guards=[needs("visitor")], sync_to_thread=True)
def show_confirmed_sign_up(request: Asked, app: GivenApp) -> Response[str]:
    """Ask a confirmed person for the account's name."""
    return html(sign_up_page(app, _welcome_page(app, request)))


@post("/welcome", guards=[needs("visitor")], sync_to_thread=True)
def create_confirmed_account(request: Asked, app: GivenApp, data: Filled) -> Response[Any]:
    """Create the account of a confirmed person."""
    page = _welcome_page(app, request)
    identity, origin = _held(app, request)
    try:
        admit_sign_up(app.store, request)
        account = _make_account(app, data, origin)
    except MedThinkError as error:
        return html(sign_up_page(app, form_again(page, data, error)), status=422)
    link_identity(app.store, account, identity)
    return let_in(app, account, "/account")


def _make_account(app: ServeApp, data: NameForm, origin: str) -> Account:
    new = NewAccount(name=data.name, shown_name=data.shown_name, team=data.team, roles=("submitter",))
    if origin.startswith(_INVITATION):
        return accept_invitation(app.store, origin.removeprefix(_INVITATION), new)
    if app.settings.sign_up != "open":
        raise Declined("accounts are by invitation only", remedy="ask the maintainers for one")
    if not data.team.strip():
        raise Declined("a team is needed", remedy="submissions are listed under its name")
    return add_account(app.store, new, actor=data.name[:100], is_team_new=True)


def _welcome_page(app: ServeApp, request: Asked) -> SignUpPage:
    identity, origin = _held(app, request)
    page = SignUpPage(action="welcome", title="Welcome", vouched=_words(app, identity), shown_name=identity.name)
    if not origin.startswith(_INVITATION):
        return page
    found = open_invitation(app, origin.removeprefix(_INVITATION))
    return msgspec.structs.replace(
        page, fixed_team=found.team or "", asks_team=found.team is None and "submitter" in found.roles
    )


def _held(app: ServeApp, request: Asked) -> tuple[Identity, str]:
    found = pending_identity(app.store, request.cookies.get(FLOW_COOKIE, ""))
    if found is None:
        raise NotFoundException(detail="This took too long. Sign in again.")
    return found


def _words(app: ServeApp, identity: Identity) -> str:
    known = (one.words for one in app.settings.providers if one.issuer.rstrip("/") == identity.issuer.rstrip("/"))
    return next(known, identity.issuer)


def _provider(app: ServeApp, name: str) -> IdentityProvider:
    found = app.settings.provider(name)
    if found is None:
        raise NotFoundException(detail="There is no identity provider of that name.")
    return found


def _callback(app: ServeApp, request: Asked, provider: str) -> str:
    return f"{site_address(app, request)}/sign-in/{provider}/back"


def _flow_cookie(app: ServeApp, value: str) -> Cookie:
    # Lax: the callback from the provider is a visit from another site.
    return Cookie(
        key=FLOW_COOKIE,
        value=value,
        max_age=_FLOW_S,
        path="/",
        httponly=True,
        samesite="lax",
        secure=app.settings.is_secure,
    )


vouching_feature = Feature(
    routes=[redirect_to_provider, provider_callback, show_confirmed_sign_up, create_confirmed_account]
)
