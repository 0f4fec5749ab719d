"""Answers of people in the store, on SQLite and PostgreSQL."""

import secrets
from concurrent.futures import ThreadPoolExecutor

import sqlalchemy as sa

from medthink.store import tables
from medthink.web.cases import answers
from medthink.web.cases.answers import HumanAnswers, Reader


def visitor(origin: str) -> Reader:
    return Reader(code=secrets.token_hex(16), origin=origin, is_known=False)


def test_at_once_and_without_cookies_a_browser_counts_once_for_each_case(store):
    kept = HumanAnswers(store)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda n: kept.commit(visitor("10.0.0.1 browser"), "b", n % 2, "A", None), range(24)))
    kept.commit(visitor("10.0.0.2 browser"), "b", 0, "B", None)
    account = Reader(code="account 1", origin=None, is_known=True)
    kept.commit(account, "b", 0, "C", None)
    found = kept.of_all("b")
    assert sorted((one.case, one.letter) for one in found) == [(0, "A"), (0, "B"), (0, "C"), (1, "A")]
    assert [one.letter for one in found if one.is_by_account] == ["C"]


def test_a_day_s_secret_is_forgotten_and_the_digest_is_another(store, monkeypatch):
    kept = HumanAnswers(store)
    for day in ("2026-01-01T10:00:00Z", "2026-01-02T10:00:00Z"):
        monkeypatch.setattr(answers, "now_utc", lambda day=day: day)
        kept.commit(visitor("10.0.0.1 browser"), "b", 0, "A", None)
    assert len({one.source for one in kept.of_all("b")}) == 2
    with store.read() as connection:
        assert connection.execute(sa.select(tables.day_secrets.c.day)).scalars().all() == ["2026-01-02"]
