"""Names that people type: the same to a reader's eye is the same to the program."""

import re
import unicodedata

from medthink.core.errors import UsageError

_PERSON = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}")


def is_person_name(name: str) -> bool:
    """Whether this can name an account or a reader: on a command line, in a file's name, and as an e-mail address."""
    return _PERSON.fullmatch(name) is not None


def name_key(name: str) -> str:
    """What two spellings of one name have in common: letters' case, width and composition, and spaces do not count."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def read_name(given: str, *, what: str, longest: int) -> str:
    """A name as it is shown, or UsageError: at most `longest` characters on one line, all of them visible."""
    name = " ".join(unicodedata.normalize("NFC", given).split())
    if not name or len(name) > longest or not name.isprintable():
        raise UsageError(
            f"the {what} is missing, too long or has invisible characters",
            remedy=f"use 1 to {longest} visible characters on one line",
        )
    return name
