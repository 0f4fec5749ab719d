"""All accounts, for maintainers: roles, invitations, disabling."""

import msgspec
from litestar import get, post
from litestar.exceptions import NotFoundException
from litestar.params import URLEncodedBody
from litestar.response import Redirect, Response

from medthink.accounts.account import Account, list_accounts, set_disabled, set_roles
from medthink.accounts.invitations import invite, list_invitations, revoke_invitation
from medthink.accounts.roles import ROLES, GivenRole
from medthink.core.errors import Declined, MedThinkError
from medthink.web.accounts.own_account import Ticked, listed
from medthink.web.accounts.sign_in import PeoplePage, PersonLine, error_sentence, invitation_link, role_choices
from medthink.web.app.access import Asked, RowNumber, account_of, needs
from medthink.web.app.application import Feature, html
from medthink.web.app.rendering import render
from medthink.web.serve_app import GivenApp, ServeApp


class RolesForm(msgspec.Struct):
    """The roles that are ticked."""

    roles: Ticked = ()


class InviteForm(RolesForm):
    """An invitation: roles, team, and a note on who it is for."""

    team: str = ""
    note: str = ""


class OpenForm(msgspec.Struct):
    """The form to disable or enable an account."""

    open: str = ""


@get("/people", guards=[needs("maintainer")], sync_to_thread=True)
def show_people(app: GivenApp) -> Response[str]:
    """Show all accounts."""
    return _show(app)


@post("/people/invite", guards=[needs("maintainer")], sync_to_thread=True)
def invite_person(request: Asked, app: GivenApp, data: URLEncodedBody[InviteForm]) -> Response[str]:
    """Create an invitation link, and show it once."""
    roles = _roles(data)
    try:
        if not roles:
            raise Declined("no role is ticked", remedy="choose at least one role")
        secret = invite(
            app.store, roles, actor=account_of(request).name, team=data.team, about=data.note.strip()
        )  # fmt: skip
    except MedThinkError as error:
        return _show(app, problem=error_sentence(error), status=422)
    return _show(app, new_link=invitation_link(app, request, secret))


@post("/people/{number:int}/roles", guards=[needs("maintainer")], sync_to_thread=True)
def change_roles(
    number: RowNumber,
    request: Asked,
    app: GivenApp,
    data: URLEncodedBody[RolesForm],
) -> Response[str] | Redirect:
    """Change an account's roles."""
    try:
        set_roles(app.store, _find(app, number), _roles(data), actor=account_of(request).name)
    except Declined as error:
        return _show(app, problem=error_sentence(error), status=422)
    return Redirect("/people", status_code=303)


@post("/people/{number:int}/open", guards=[needs("maintainer")], sync_to_thread=True)
def open_or_close(
    number: RowNumber,
    request: Asked,
    app: GivenApp,
    data: URLEncodedBody[OpenForm],
) -> Response[str] | Redirect:
    """Disable an account, or enable it again."""
    try:
        set_disabled(app.store, _find(app, number), is_disabled=data.open != "yes", actor=account_of(request).name)
    except Declined as error:
        return _show(app, problem=error_sentence(error), status=422)
    return Redirect("/people", status_code=303)


@post("/people/invitations/{number:int}/revoke", guards=[needs("maintainer")], sync_to_thread=True)
def end_invitation(number: RowNumber, request: Asked, app: GivenApp) -> Redirect:
    """Revoke a link."""
    if not revoke_invitation(app.store, number, actor=account_of(request).name):
        raise NotFoundException(detail="There is no such invitation.")
    return Redirect("/people", status_code=303)


def _show(app: ServeApp, *, new_link: str = "", problem: str = "", status: int = 200) -> Response[str]:
    people = list_accounts(app.store)
    page = PeoplePage(
        people=tuple(PersonLine(account=one, roles=role_choices(one)) for one in people),
        invitations=tuple(one for one in list_invitations(app.store) if not one.is_over and not one.is_personal),
        roles=role_choices(),
        new_link=new_link,
        problem=problem,
    )
    return html(render("people.html", page, app.site, here="people"), status=status)


def _find(app: ServeApp, number: int) -> Account:
    found = next((one for one in list_accounts(app.store) if one.id == number), None)
    if found is None:
        raise NotFoundException(detail="There is no such account.")
    return found


def _roles(data: RolesForm) -> tuple[GivenRole, ...]:
    return tuple(role for role in ROLES if role in listed(data.roles))


people_feature = Feature(routes=[show_people, invite_person, change_roles, open_or_close, end_invitation])
