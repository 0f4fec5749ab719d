"""API keys that are never shown."""

import base64
import re
from urllib.parse import quote

_SHOWN = 8
_MASK = "[key]"


class Key:
    """A secret that no repr, error or log contains."""

    __slots__ = ("_forms", "_secret", "source")

    def __init__(self, secret: str, source: str) -> None:
        self._secret = secret
        self.source = source
        encoded = base64.b64encode(secret.encode()).decode().rstrip("=")
        # The beginning identifies a key, and providers echo keys with the middle masked.
        starts = [re.escape(form[:_SHOWN]) + r"[^\s\"',;]*" for form in (secret, quote(secret, safe=""), encoded)]
        self._forms = re.compile("|".join(dict.fromkeys(starts)))

    def reveal(self) -> str:
        """The secret itself, for the header that carries it."""
        return self._secret

    def redact(self, text: str) -> str:
        """The text without the key, whole, quoted, in base64 or cut off."""
        return self._forms.sub(_MASK, text)

    def __repr__(self) -> str:
        return f"Key({self.source})"
