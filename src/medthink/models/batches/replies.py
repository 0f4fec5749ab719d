"""What the batch modules have in common: JSON replies, pages of a list, and results as if they came by HTTP."""

from typing import Any
from urllib.parse import urlencode

import orjson

from medthink.models.batches import BatchRequest, Dialogue
from medthink.models.request import ModelError
from medthink.models.wires import HttpReply
from medthink.models.wires.failures import describe_body, failure_of, one_short_line

JSON = {"Content-Type": "application/json"}
_MOST_PAGES = 100


def read_object(reply: HttpReply) -> dict[str, Any]:
    """The JSON object of a good reply, or the ModelError it stands for."""
    if not 200 <= reply.status < 300:
        raise failure_of(reply)
    try:
        value = orjson.loads(reply.body)
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise ModelError("invalid_reply", one_short_line(describe_body(reply)), status=reply.status)
    return value


def read_pages(path: str, query: dict[str, str], *, items: str, cursor: str) -> Dialogue[list[dict[str, Any]]]:
    """All items of a list; `cursor` names the query field that asks for the next page."""
    found: list[dict[str, Any]] = []
    for _ in range(_MOST_PAGES):
        page = read_object((yield BatchRequest("GET", f"{path}?{urlencode(query)}")))
        found += [one for one in page.get(items) or () if isinstance(one, dict)]
        following = page.get("nextPageToken") or (page.get("last_id") if page.get("has_more") else None)
        if not isinstance(following, str):
            break
        query = query | {cursor: following}
    return found


def read_text_or_empty(value: Any) -> str:
    """The value if it is a text, else nothing."""
    return value if isinstance(value, str) else ""


def read_object_or_empty(value: Any) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def read_count(value: Any) -> int:
    """A count, whether as a number or, as Google writes them, as a text; anything else counts as 0."""
    if isinstance(value, str) and value.isascii() and value.isdecimal():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def read_line(line: bytes, key: str) -> tuple[str, dict[str, Any]]:
    """A line of results and its key, or ValueError."""
    value = orjson.loads(line)
    if not isinstance(value, dict) or not isinstance(value.get(key), str):
        raise ValueError(f"no {key} in a line of results")
    return value[key], value


def as_reply(status: int, body: Any) -> HttpReply:
    """A result in the form the wire expects."""
    return HttpReply(status, {"content-type": "application/json"}, orjson.dumps(body))
