"""Whether a server is running, knows the model and accepts the key, checked without a paid call.

`check_server` is called before a run's first call and says what is wrong and what to do about it. `is_alive` is called
while no call gets through: any reply except a server error means that the server is back.
"""

import difflib
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

import aiohttp
import orjson

from medthink.core.errors import OutsideError
from medthink.models.catalog import ApiKey
from medthink.models.wires.failures import find_error_body, one_short_line

CHECK_S = 4.5
_MOST_BYTES = 4 * 1024 * 1024
_MOST_NAMED = 8
_ODD_SERVER = "--no-preflight skips this check"


class ServerAddress(NamedTuple):
    """How to query a server: where its list of models is, and the headers it needs."""

    models_path: str
    headers: Mapping[str, str]
    model: str
    key: ApiKey | None
    key_variable: str
    # Where a one-token test request is free; a provider would charge for it, so it is never sent there.
    chat_path: str | None


class _Heard(NamedTuple):
    """The server's reply; a status of 0 and the reason if there was none."""

    status: int
    body: bytes
    problem: str = ""
    location: str = ""
    is_plain_http: bool = False

    @property
    def is_good(self) -> bool:
        return 200 <= self.status < 300


async def is_alive(session: aiohttp.ClientSession, url: str, proxy: str | None, contact: ServerAddress) -> bool:
    """Whether anything except a server error comes back."""
    heard = await _ask(session, "GET", url + contact.models_path, contact, proxy=proxy)
    return 0 < heard.status < 500


async def check_server(
    session: aiohttp.ClientSession, url: str, proxy: str | None, contact: ServerAddress
) -> OutsideError | None:
    """The problem of this server with this model, if any."""
    heard = await _ask(session, "GET", url + contact.models_path, contact, proxy=proxy)
    plain = f"http://{url.removeprefix('https://')}"
    if heard.is_plain_http or (heard.status == 0 and url != plain and await _is_plain(session, plain, proxy, contact)):
        return OutsideError(f"the server at {url} does not speak https", remedy=f"try --base-url {plain}")
    if heard.status == 0:
        return OutsideError(
            f"no server answers at {url}: {heard.problem}",
            remedy=f"start the server, or check --base-url; {_ODD_SERVER}",
        )
    words = _words(heard, contact)
    if heard.status >= 500:
        return OutsideError(
            f"the server at {url} returned HTTP {heard.status}{words}",
            remedy=f"wait until it is ready, or check its log; {_ODD_SERVER}",
        )
    if heard.status == 401 or (heard.status == 400 and "key" in words.lower()):
        return _bad_key(url, words, contact)
    names = _read_names(heard.body) if heard.is_good else None
    if names is None:
        return await _check_address(session, url, proxy, contact)
    return await _check_model(session, url, proxy, contact, names=names)


async def _is_plain(session: aiohttp.ClientSession, plain: str, proxy: str | None, contact: ServerAddress) -> bool:
    """Whether a server that is silent on https answers without it; it is asked without the key."""
    bare = contact._replace(headers={})
    return (await _ask(session, "GET", plain + contact.models_path, bare, proxy=proxy)).status > 0


def _bad_key(url: str, words: str, contact: ServerAddress) -> OutsideError:
    problem = f"{url} does not accept the key{words}" if contact.key else f"{url} requires a key{words}"
    verb = "check" if contact.key else "set"
    return OutsideError(problem, remedy=f"{verb} {contact.key_variable or 'the key'}")


async def _check_address(
    session: aiohttp.ClientSession, url: str, proxy: str | None, contact: ServerAddress
) -> OutsideError | None:
    """Check the address of a server that has no list of models."""
    nearby = url.removesuffix("/v1") if url.endswith("/v1") else f"{url}/v1"
    heard = await _ask(session, "GET", nearby + contact.models_path, contact, proxy=proxy)
    if (heard.is_good and _read_names(heard.body) is not None) or heard.status == 401:
        return OutsideError(
            f"there is no model server at {url}, but there is one at {nearby}", remedy=f"give --base-url {nearby}"
        )
    if contact.chat_path is None:
        return None
    # A server with this API rejects an empty request; anything else has no such path.
    heard = await _ask(session, "POST", url + contact.chat_path, contact, proxy=proxy, content={})
    if heard.status in (404, 405, 501):
        form = "" if url.endswith("/v1") else ": for most servers it ends in /v1"
        return OutsideError(
            f"there is no model server at {url}: it has neither {contact.models_path} nor {contact.chat_path}",
            remedy=f"check --base-url{form}; {_ODD_SERVER}",
        )
    if 300 <= heard.status < 400:
        return _redirected(url, heard.location.removesuffix(contact.chat_path))
    return None


def _redirected(url: str, place: str) -> OutsideError:
    """A redirect is not followed: it would send the key and the images elsewhere."""
    return OutsideError(
        one_short_line(f"{url} redirects to {place or 'another address'}, which is not followed"),
        remedy=f"if that is the right server, give its address as --base-url; {_ODD_SERVER}",
    )


async def _check_model(
    session: aiohttp.ClientSession, url: str, proxy: str | None, contact: ServerAddress, *, names: list[str]
) -> OutsideError | None:
    """An unlisted name may be an alias, and some servers accept any name, so they are asked."""
    if contact.model in names:
        return None
    by_name = f"{url}{contact.models_path}/{quote(contact.model, safe='')}"
    if (await _ask(session, "GET", by_name, contact, proxy=proxy)).is_good:
        return None
    if contact.chat_path is not None:
        question: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
        content = {"model": contact.model} | question
        heard = await _ask(session, "POST", url + contact.chat_path, contact, proxy=proxy, content=content)
        if heard.status not in (400, 404, 422):
            return None
    known = difflib.get_close_matches(contact.model, names, n=3, cutoff=0.4) or names[:_MOST_NAMED]
    listed = (
        f"it has {', '.join(map(one_short_line, known))}" + (" …" if len(names) > len(known) else "")
        if names
        else "it has none"
    )
    return OutsideError(
        f"{url} does not serve the model {contact.model}: {listed}",
        remedy=f"correct the name in --model; {_ODD_SERVER}",
    )


async def _ask(
    session: aiohttp.ClientSession,
    method: str,
    address: str,
    contact: ServerAddress,
    *,
    proxy: str | None,
    content: dict[str, Any] | None = None,
) -> _Heard:
    timeout = aiohttp.ClientTimeout(total=CHECK_S)
    data = None if content is None else orjson.dumps(content)
    headers = dict(contact.headers) | ({} if content is None else {"Content-Type": "application/json"})
    try:
        async with session.request(
            method, address, data=data, headers=headers, timeout=timeout, allow_redirects=False, proxy=proxy
        ) as response:
            body = b""
            async for piece in response.content.iter_any():
                body += piece
                if len(body) > _MOST_BYTES:
                    break
            return _Heard(response.status, body, location=response.headers.get("Location", ""))
    except TimeoutError:
        return _Heard(0, b"", f"no reply within {CHECK_S:g} seconds")
    except (aiohttp.ClientError, OSError) as error:
        if "WRONG_VERSION_NUMBER" in str(error) or "record layer failure" in str(error):
            return _Heard(0, b"", "it does not speak https", is_plain_http=True)
        return _Heard(0, b"", one_short_line(getattr(error, "strerror", None) or str(error) or type(error).__name__))


def _words(heard: _Heard, contact: ServerAddress) -> str:
    """The server's message, without the key."""
    complaint = find_error_body(heard.body)
    if complaint is None or not complaint.message:
        return ""
    message = complaint.message if contact.key is None else contact.key.redact(complaint.message)
    return f": {one_short_line(message)}"


def _read_names(body: bytes) -> list[str] | None:
    """The models that a list names, whichever provider's form it has; None if it is not a list of models."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    listed = value.get("data", value.get("models")) if isinstance(value, dict) else None
    if not isinstance(listed, list):
        return None
    found = [one.get("id") or one.get("name") for one in listed if isinstance(one, dict)]
    return [name.removeprefix("models/") for name in found if isinstance(name, str)]
