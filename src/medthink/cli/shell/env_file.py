"""The keys of providers and boards, from the environment or from a file `.env`."""

import os
import re
from pathlib import Path

from medthink.core.errors import DataError

FILE = Path(".env")
# Each key variable with its purpose.
KEYS = {
    "OPENAI_API_KEY": "openai/…",
    "ANTHROPIC_API_KEY": "anthropic/…",
    "GEMINI_API_KEY": "google/…",
    "GOOGLE_API_KEY": "google/…",
    "MEDTHINK_SERVER_KEY": "server/…, if the server requires one",
    "MEDTHINK_BOARD_TOKEN": "medthink submit",
    "HF_TOKEN": "medthink data pull, if the hub requires one",
}
_LINE = re.compile(r"(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*)")
_QUOTED = re.compile(r"(['\"])(.*)\1(?:\s+#.*)?")


def load_env_file(file: Path = FILE) -> None:
    """Set key variables from the file, unless the environment sets them."""
    if not file.is_file():
        return
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", file=file, remedy="correct or remove it") from None
    except UnicodeDecodeError as error:
        raise DataError(f"not UTF-8 at byte {error.start}", file=file, remedy="save the file as UTF-8") from None
    for name, value in read_assignments(text).items():
        if name in KEYS and value and not os.environ.get(name):
            os.environ[name] = value


def read_assignments(text: str) -> dict[str, str]:
    """The `NAME=value` lines; quotes and comments are removed, and nothing is expanded."""
    found = (_LINE.fullmatch(line.strip()) for line in text.splitlines())
    return {match[1]: _unquote(match[2].strip()) for match in found if match is not None}


def _unquote(value: str) -> str:
    quoted = _QUOTED.fullmatch(value)
    return quoted[2] if quoted is not None else re.split(r"\s+#", value, maxsplit=1)[0]
