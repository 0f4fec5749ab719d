"""Answers of people in the case explorer: one for each reader and case, stored before anything is revealed.

A reader is a random code in a cookie, or an account. The time when a case was first opened is stored here, so that
response times are measured by the server; only for a reader who comes back, so that a mere visit stores nothing. An
answer cannot be changed. Whoever clears cookies becomes another reader, but the baseline counts one answer to a case
for each account, and one for each browser, address and day.
"""

import hmac
import secrets
import time
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec
import sqlalchemy as sa
from litestar.datastructures import Cookie
from litestar.response import Response

from medthink.cases.case import Case
from medthink.core.clock import now_utc
from medthink.readers.studies.setup import cases_still_to_read
from medthink.store import tables
from medthink.store.engine import Store, insert_if_missing
from medthink.web.app.access import Asked, caller_of, client_network
from medthink.web.app.benchmarks import LoadedSplit


class HumanAnswer(msgspec.Struct, frozen=True):
    """One reader's answer; `letter` is None if the case was revealed without one."""

    reader: str
    case: int
    letter: str | None
    confidence: int | None
    seconds: float | None
    source: str

    @property
    def is_by_account(self) -> bool:
        """Whether the reader was signed in."""
        return self.reader.startswith(_ACCOUNT)


class Reader(msgspec.Struct, frozen=True, kw_only=True):
    """A reader's code, the browser and address if there is no account, and whether the request had the code."""

    code: str
    origin: str | None
    is_known: bool


class HumanAnswers:
    """The answers in a board's store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def open_case(self, reader: Reader, benchmark: str, case_id: int) -> None:
        """Record when the reader first saw the case, unless the reader's first visit to the site is this one."""
        if reader.is_known:
            row = {"reader": reader.code, "benchmark": benchmark, "case_id": case_id, "at": time.time()}
            with self._store.write() as connection:
                connection.execute(insert_if_missing(connection, tables.openings, row))

    def commit(self, reader: Reader, benchmark: str, case_id: int, letter: str | None, confidence: int | None) -> None:
        """Store the reader's answer, or its absence; the first one counts."""
        now, table = time.time(), tables.openings
        key = {"reader": reader.code, "benchmark": benchmark, "case_id": case_id}
        same = sa.and_(*(table.c[name] == value for name, value in key.items()))
        with self._store.write() as connection:
            opened_at = connection.execute(sa.select(table.c.at).where(same)).scalar()
            row = key | {
                "letter": letter,
                "confidence": confidence,
                "seconds": None if opened_at is None else now - opened_at,
                "at": now,
                "source": _source(connection, reader),
            }
            connection.execute(insert_if_missing(connection, tables.answers, row))

    def of_reader(self, reader: str, benchmark: str) -> dict[int, HumanAnswer]:
        """Everything that this reader committed, by case."""
        return {one.case: one for one in self._read(benchmark, tables.answers.c.reader == reader)}

    def of_all(self, benchmark: str) -> list[HumanAnswer]:
        """The first answer of each source to each case of a benchmark, except those without a letter."""
        first: dict[tuple[str, int], HumanAnswer] = {}
        for one in self._read(benchmark, tables.answers.c.letter.is_not(None)):
            first.setdefault((one.source, one.case), one)
        return list(first.values())

    def _read(self, benchmark: str, where: sa.ColumnElement[bool]) -> list[HumanAnswer]:
        table = tables.answers
        columns = (table.c.reader, table.c.case_id, table.c.letter, table.c.confidence, table.c.seconds, table.c.source)
        query = sa.select(*columns).where(table.c.benchmark == benchmark, where).order_by(table.c.at)
        with self._store.read() as connection:
            return [HumanAnswer(*row) for row in connection.execute(query)]


def _source(connection: sa.Connection, reader: Reader) -> str:
    """The account, or a digest of the browser and address with a secret that is forgotten after the day."""
    if reader.origin is None:
        return reader.code
    table, today = tables.day_secrets, now_utc()[:10]
    connection.execute(table.delete().where(table.c.day < today))
    new = {"day": today, "secret": secrets.token_hex(32)}
    connection.execute(insert_if_missing(connection, table, new))
    secret: str = connection.execute(sa.select(table.c.secret).where(table.c.day == today)).scalar_one()
    return hmac.new(secret.encode(), reader.origin.encode("utf-8", "surrogatepass"), "sha256").hexdigest()


COOKIE = "medthink_reader"
_ACCOUNT = "account "
_YEAR_S = 365 * 86400
_Answer = TypeVar("_Answer", bound=Response[Any])


def reader_of(request: Asked) -> Reader:
    """The reader with the code of the account, from the cookie, or a new one."""
    account = caller_of(request).account
    if account is not None:
        return Reader(code=f"{_ACCOUNT}{account.id}", origin=None, is_known=True)
    given = request.cookies.get(COOKIE, "")
    is_known = len(given) == 32 and given.isalnum() and given.isascii()
    origin = f"{client_network(request)} {request.headers.get('user-agent', '')}"
    return Reader(code=given if is_known else secrets.token_hex(16), origin=origin, is_known=is_known)


def remember_reader(response: _Answer, reader: Reader, *, is_secure: bool) -> _Answer:
    """Store a new reader's code in the browser; no script and no other site can read it."""
    if not reader.is_known:
        response.set_cookie(
            Cookie(
                key=COOKIE,
                value=reader.code,
                max_age=_YEAR_S,
                httponly=True,
                samesite="strict",
                path="/",
                secure=is_secure,
            )
        )
    return response


class RevealedCases:
    """The part of a benchmark that one reader may see."""

    def __init__(self, bench: LoadedSplit, numbers: Mapping[int, object]) -> None:
        self._bench = bench
        self._numbers = numbers

    def cases(self) -> Iterator[Case]:
        """The revealed cases, in the order of their numbers."""
        return (self._bench.cases[number] for number in sorted(self._numbers) if number in self._bench.cases)

    def code(self, case: Case) -> str:
        """The name of a case in addresses."""
        return self._bench.code(case.id)

    def image_ids(self, case: Case) -> tuple[str, ...]:
        """The first images of a case."""
        return tuple(self._bench.id_of(image) for image in case.question.images[:4])


class Reveals:
    """The parts of a benchmark that each reader may see, except cases still to be read in a study."""

    def __init__(self, bench: LoadedSplit, store: Store) -> None:
        self.bench = bench
        self._store = store

    def answers(self, request: Asked) -> dict[int, HumanAnswer]:
        """The calling reader's answers, by case: the cases that are revealed to them."""
        found = HumanAnswers(self._store).of_reader(reader_of(request).code, self.bench.text_fingerprint)
        awaited = self._awaited(request)
        return {number: one for number, one in found.items() if number not in awaited}

    def awaits(self, request: Asked, number: int) -> bool:
        """Whether the calling account still has to read this case in a study."""
        return number in self._awaited(request)

    def _awaited(self, request: Asked) -> set[int]:
        account = caller_of(request).account
        if account is None:
            return set()
        with self._store.read() as connection:
            return cases_still_to_read(connection, account.name, self.bench.benchmark.path)

    def of(self, request: Asked) -> RevealedCases:
        """The part that the calling reader may see."""
        return RevealedCases(self.bench, self.answers(request))
