"""Sign-in through an external provider: OpenID Connect or GitHub, with `authlib`.

A sign-in begins with `start_sign_in`, which stores the secrets of this one attempt, and ends with
`complete_sign_in`, which removes them again: a provider's answer can be used once, within ten minutes, and only by the
browser that began.
"""

import json
import os
import secrets
from collections.abc import Mapping
from typing import Any

import httpx
import msgspec
import sqlalchemy as sa
from authlib.common.errors import AuthlibBaseError
from authlib.common.security import generate_token
from authlib.integrations.httpx_client import OAuth2Client
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from medthink.accounts.account import Account, find_account_in
from medthink.accounts.passwords import digest_secret, make_secret
from medthink.core.clock import now_utc, utc_in
from medthink.core.errors import OutsideError, UsageError
from medthink.store import tables
from medthink.store.engine import Store, insert_if_missing, record_event

_FLOW_S = 600
# No provider can have this name.
_HELD = "/"
_TIMEOUT_S = 10
_LEEWAY_S = 60
_SIGNATURES = ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA"]


class IdentityProvider(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An external identity provider.

    `issuer` is used for OpenID Connect discovery; GitHub, which has none, is named by `kind`. The secret is in the
    environment variable `secret_env`.
    """

    name: str
    client_id: str
    secret_env: str
    issuer: str = ""
    label: str = ""
    kind: str = "oidc"

    @property
    def words(self) -> str:
        """The label of the button."""
        return self.label or self.name

    @property
    def secret(self) -> str:
        """The client secret, or UsageError if it is not set."""
        found = os.environ.get(self.secret_env, "")
        if not found:
            raise UsageError(f"{self.secret_env} is not set", remedy=f"set it to the client secret of {self.words}")
        return found


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """A person's identity at a provider; `name` is a suggestion for the account."""

    issuer: str
    subject: str
    name: str = ""


class PendingSignIn(msgspec.Struct, frozen=True):
    """A sign-in in progress: the address that the browser is sent to, and the state that it must return."""

    address: str
    state: str


class _Endpoints(msgspec.Struct, frozen=True, kw_only=True):
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str = ""
    userinfo_endpoint: str = ""


_GITHUB = _Endpoints(
    issuer="https://github.com",
    authorization_endpoint="https://github.com/login/oauth/authorize",
    token_endpoint="https://github.com/login/oauth/access_token",
    userinfo_endpoint="https://api.github.com/user",
)


def start_sign_in(
    store: Store, provider: IdentityProvider, *, callback: str, detail: Mapping[str, str]
) -> PendingSignIn:
    """Begin a sign-in; `detail` is returned when it is finished."""
    ends = _endpoints(provider)
    state, nonce, verifier = make_secret(), secrets.token_urlsafe(24), generate_token(64)
    with _client(provider, callback) as client:
        extra = {"nonce": nonce} if provider.kind == "oidc" else {}
        address, _ = client.create_authorization_url(
            ends.authorization_endpoint, state=state, code_verifier=verifier, **extra
        )
    _keep_flow(store, state, provider.name, {"nonce": nonce, "verifier": verifier, "detail": dict(detail)})
    return PendingSignIn(address, state)


def complete_sign_in(
    store: Store, provider: IdentityProvider, *, callback: str, state: str, code: str
) -> tuple[Identity, dict[str, str]]:
    """The identity confirmed by the provider, and the stored detail; OutsideError if the answer is invalid."""
    kept = _take_flow(store, provider, state)
    ends = _endpoints(provider)
    try:
        with _client(provider, callback) as client:
            token = client.fetch_token(ends.token_endpoint, code=code, code_verifier=kept["verifier"])
            if provider.kind == "github":
                identity = _github_identity(client, ends)
            else:
                identity = _identity(token, ends, provider, kept["nonce"])
    except (httpx.HTTPError, AuthlibBaseError, JoseError, json.JSONDecodeError, KeyError, ValueError) as error:
        raise _no_good(provider, type(error).__name__) from None
    return identity, kept["detail"]


def save_pending_identity(store: Store, identity: Identity, origin: str) -> str:
    """Store an identity while its owner creates an account; returns the secret for their browser.

    `origin` is returned later.
    """
    secret = make_secret()
    kept = {"identity": msgspec.to_builtins(identity), "origin": origin}
    _keep_flow(store, secret, _HELD, kept)
    return secret


def pending_identity(store: Store, secret: str) -> tuple[Identity, str] | None:
    """The identity of someone creating an account, if it was stored recently."""
    table = tables.flows
    where = sa.and_(table.c.digest == digest_secret(secret), table.c.provider == _HELD, table.c.expires_at > now_utc())
    with store.read() as connection:
        found = connection.execute(sa.select(table.c.detail).where(where)).scalar()
    return None if found is None else (msgspec.convert(found["identity"], Identity), found["origin"])


def _keep_flow(store: Store, secret: str, provider: str, detail: dict[str, Any]) -> None:
    row = {"digest": digest_secret(secret), "provider": provider, "detail": detail, "expires_at": utc_in(_FLOW_S)}
    with store.write() as connection:
        connection.execute(tables.flows.delete().where(tables.flows.c.expires_at <= now_utc()))
        connection.execute(tables.flows.insert().values(row))


def _take_flow(store: Store, provider: IdentityProvider, state: str) -> dict[str, Any]:
    table = tables.flows
    where = sa.and_(table.c.digest == digest_secret(state), table.c.provider == provider.name)
    with store.write() as connection:
        row = connection.execute(sa.select(table).where(where).with_for_update()).mappings().first()
        connection.execute(table.delete().where(where))
    if row is None or row["expires_at"] <= now_utc():
        raise UsageError("this sign-in has expired or was started in another browser", remedy="start again")
    kept: dict[str, Any] = row["detail"]
    return kept


def _endpoints(provider: IdentityProvider) -> _Endpoints:
    if provider.kind == "github":
        return _GITHUB
    address = provider.issuer.rstrip("/") + "/.well-known/openid-configuration"
    try:
        found = msgspec.convert(_get_json(address), _Endpoints)
    except (httpx.HTTPError, ValueError) as error:
        raise _no_good(provider, type(error).__name__) from None
    if found.issuer.rstrip("/") != provider.issuer.rstrip("/"):
        raise _no_good(provider, "it names another issuer")
    return found


def _get_json(address: str) -> Any:
    answer = httpx.get(address, timeout=_TIMEOUT_S)
    answer.raise_for_status()
    return answer.json()


def _client(provider: IdentityProvider, callback: str) -> OAuth2Client:
    scope = "read:user" if provider.kind == "github" else "openid profile"
    return OAuth2Client(
        client_id=provider.client_id,
        client_secret=provider.secret,
        scope=scope,
        redirect_uri=callback,
        code_challenge_method="S256",
        timeout=_TIMEOUT_S,
    )


def _identity(token: Mapping[str, Any], ends: _Endpoints, provider: IdentityProvider, nonce: str) -> Identity:
    """The identity in a signed ID token, after all checks required by OpenID Connect."""
    keys = KeySet.import_key_set(_get_json(ends.jwks_uri))
    decoded = jwt.decode(token["id_token"], keys, algorithms=_SIGNATURES)
    options = {"iss": {"values": [ends.issuer]}, "aud": {"values": [provider.client_id]}}
    params = {"nonce": nonce, "client_id": provider.client_id, "access_token": token.get("access_token")}
    claims = CodeIDToken(decoded.claims, decoded.header, options, params)
    claims.validate(leeway=_LEEWAY_S)
    name = claims.get("preferred_username") or claims.get("name") or ""
    return Identity(issuer=ends.issuer, subject=str(claims["sub"]), name=str(name))


def _github_identity(client: OAuth2Client, ends: _Endpoints) -> Identity:
    person = client.get(ends.userinfo_endpoint).raise_for_status().json()
    return Identity(issuer=ends.issuer, subject=str(person["id"]), name=str(person.get("login", "")))


def _no_good(provider: IdentityProvider, why: str) -> OutsideError:
    return OutsideError(f"{provider.words} did not confirm who you are ({why})", remedy="try again in a while")


def find_by_identity(store: Store, identity: Identity) -> Account | None:
    """The account of this person, if there is one and it is open."""
    table = tables.identities
    same = sa.and_(table.c.issuer == identity.issuer, table.c.subject == identity.subject)
    with store.read() as connection:
        number = connection.execute(sa.select(table.c.account_id).where(same)).scalar()
        found = None if number is None else find_account_in(connection, tables.accounts.c.id == number)
    return found if found is not None and found.disabled_at is None else None


def link_identity(store: Store, account: Account, identity: Identity) -> None:
    """Link this person to the account; someone already linked to another account keeps that one."""
    row = {
        "issuer": identity.issuer,
        "subject": identity.subject,
        "account_id": account.id,
        "added_at": now_utc(),
    }
    with store.write() as connection:
        connection.execute(insert_if_missing(connection, tables.identities, row))
        record_event(connection, None, account.name, "identity linked", {"issuer": identity.issuer})
