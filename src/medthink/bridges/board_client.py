"""A served board as a program sees it: send a submission, follow its checks, read what the server says of it."""

import http.client
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from medthink.core.errors import Declined, MedThinkError, OutsideError, UsageError
from medthink.core.files import open_for_reading

TOKEN = "MEDTHINK_BOARD_TOKEN"
PENDING = ("received", "checking")
_API = "/api/v1/submissions"
_TIMEOUT_S = 120.0
_PAUSE_S = 1.0
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_BLOCK = 64 * 1024
_REMEDIES = {
    401: f"make a token on your account's page, and set {TOKEN}",
    403: "the token needs the scopes submit and read",
    404: "is this the address of a board?",
}


class BoardClient:
    """The submissions of a board at an address, for whoever holds the token."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"{url} is not an address", remedy="give one such as https://board.example.org")
        if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
            raise UsageError(f"{url} would send the token unencrypted", remedy="give an address with https")
        self._url = url
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._kind, self._host, self._port = kind, parts.hostname, parts.port
        self._path = parts.path.rstrip("/") + _API
        self._head = {"Authorization": f"Bearer {token}"}

    def send(self, file: Path, about: dict[str, str], sent: Callable[[int], None]) -> dict[str, Any]:
        """Upload the file; the same file again is the same submission. `sent` is told every number of bytes sent."""
        size = file.stat().st_size if file.is_file() else 0
        head = {"Content-Type": "application/x-ndjson", "Content-Length": str(size)}
        with open_for_reading(file) as stream:
            blocks = _told(iter(lambda: stream.read(_BLOCK), b""), sent)
            told: dict[str, Any] = json.loads(self._ask("POST", f"?{urlencode(about)}", blocks, head))
        return told

    def follow(self, token: str) -> Iterator[dict[str, Any]]:
        """The submission's states, until it is checked."""
        while True:
            told = json.loads(self._ask("GET", f"/{quote(token)}"))
            yield told
            if told["status"] not in PENDING:
                return
            time.sleep(_PAUSE_S)

    def problems(self, token: str) -> list[str]:
        """Every problem of the file, by line and field."""
        return self._ask("GET", f"/{quote(token)}/problems").decode().splitlines()

    def page(self, token: str) -> str:
        """Where a person sees the submission."""
        return f"{self._url.rstrip('/')}/submissions/{quote(token)}"

    def _ask(
        self, method: str, path: str, body: Iterator[bytes] | None = None, head: dict[str, str] | None = None
    ) -> bytes:
        connection = self._kind(self._host, self._port, timeout=_TIMEOUT_S)
        try:
            connection.request(method, self._path + path, body, self._head | (head or {}))
            answer = connection.getresponse()
            status, said = answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            problem = f"{self._url} does not answer: {str(error) or type(error).__name__}"
            raise OutsideError(problem, remedy="check the address, then run the same command again") from None
        finally:
            connection.close()
        if status not in (200, 202):
            raise _refusal(self._url, status, said)
        return said


def _told(blocks: Iterator[bytes], sent: Callable[[int], None]) -> Iterator[bytes]:
    for block in blocks:
        yield block
        sent(len(block))


def _refusal(url: str, status: int, said: bytes) -> MedThinkError:
    """The server's answer as an error: its own words where it gave some."""
    try:
        told = json.loads(said)
        problem, remedy = str(told["problem"]), str(told.get("remedy", ""))
    except (ValueError, KeyError, TypeError):
        problem, remedy = http.client.responses.get(status, "an unknown answer"), ""
    kind = OutsideError if status >= 500 else Declined if status in (409, 422) else UsageError
    return kind(f"{url}: {problem} ({status})", remedy=remedy or _REMEDIES.get(status, ""))
