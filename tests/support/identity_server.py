"""An OpenID Connect provider on the loopback that lets everybody in, and can be told to misbehave."""

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "board", "the client's secret"


class IdentityServer:
    """Its address, whom it names, and what it gets wrong: claims by name, or `key`, `algorithm`, `token`."""

    def __init__(self) -> None:
        self.subject = "subject-1"
        self.name = "tarn"
        self.wrong: dict[str, Any] = {}
        self.key = RSAKey.generate_key(2048, {"kid": "one"})
        self.address = ""
        self.codes: dict[str, dict[str, str]] = {}

    def authorize(self, asked: dict[str, str]) -> str:
        """Where the browser goes after it was let in."""
        code = secrets.token_urlsafe(8)
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def token(self, given: dict[str, str], authorization: str) -> dict[str, Any] | None:
        """The answer to a code, which is good once, for the one who began, with the client's secret."""
        asked = self.codes.pop(given.get("code", ""), None)
        credentials = base64.b64decode(authorization.removeprefix("Basic ")).decode()
        digest = hashlib.sha256(given.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if asked is None or challenge != asked["code_challenge"] or SECRET not in credentials.replace("+", " "):
            return None
        now = int(time.time())
        claims: dict[str, Any] = {
            "iss": self.address,
            "sub": self.subject,
            "aud": CLIENT,
            "iat": now,
            "exp": now + 300,
            "nonce": asked.get("nonce"),
            "preferred_username": self.name,
        }
        claims |= {name: value for name, value in self.wrong.items() if name in claims}
        key = self.wrong.get("key", self.key)
        signed = jwt.encode({"alg": "RS256", "kid": "one"}, claims, key)
        return {"access_token": "a", "token_type": "Bearer", "id_token": self.wrong.get("token", signed)}

    def answer(self, path: str) -> Any:
        """The documents that anybody may read."""
        if path == "/.well-known/openid-configuration":
            return {
                "issuer": self.wrong.get("issuer", self.address),
                "authorization_endpoint": f"{self.address}/authorize",
                "token_endpoint": f"{self.address}/token",
                "jwks_uri": f"{self.address}/keys",
            }
        if path == "/user":
            return {"id": 42, "login": self.name}
        return {"keys": [self.key.as_dict(private=False)]}


@contextmanager
def open_identity_server() -> Iterator[IdentityServer]:
    """A provider that answers until the end of the block."""
    provider = IdentityServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.path == "/authorize":
                asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
                self.send_response(302)
                self.send_header("Location", provider.authorize(asked))
                self.end_headers()
                return
            self._say(200, provider.answer(parts.path))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            given = {name: values[0] for name, values in parse_qs(body).items()}
            made = provider.token(given, self.headers.get("Authorization", ""))
            self._say(400 if made is None else 200, made or {"error": "invalid_grant"})

        def _say(self, status: int, value: Any) -> None:
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield provider
    server.shutdown()
    thread.join()
    server.server_close()
