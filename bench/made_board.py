"""A board of any size, made without models: rows whose answers are drawn, with slices, steps, usage and conditions."""

import itertools
import sys
from pathlib import Path

import msgspec
import numpy as np

from medthink.board.benchmarks import BoardBenchmark, add_benchmark
from medthink.board.checking import LoadedBenchmark
from medthink.board.moderation import publish, raise_provenance
from medthink.board.queue import Upload, claim, keep_scores, receive
from medthink.board.submissions import LEVELS, ModelDescription, find_submission
from medthink.core.digest import seed_from
from medthink.metrics.answers import CallUsage, summarise_usage
from medthink.scoring.inputs import ScoringInput
from medthink.scoring.score import score
from medthink.scoring.scores import Scores
from medthink.store.engine import Store
from medthink.workflow.condition import Condition
from medthink.workflow.prediction import Prediction, TwiSteps

EFFORTS = ("low", "medium", "high")
FAMILIES = ("Alder", "Birch", "Cedar", "Dogwood", "Elm", "Fir", "Hazel", "Juniper", "Linden", "Maple")
SIZES = (2, 4, 8, 14, 32, 72, 235)


class MadeRow(msgspec.Struct, frozen=True, kw_only=True):
    """What a drawn row is called, how good it is and how it is asked."""

    model: str
    team: str
    skill: float
    usd: float
    about: ModelDescription
    condition: Condition


def made_rows(count: int) -> list[MadeRow]:
    """Families of several sizes; some models at several efforts, some with a part of the images."""
    rng = np.random.default_rng(5)
    rows: list[MadeRow] = []
    for turn in itertools.count():
        family, size = FAMILIES[turn % len(FAMILIES)], SIZES[(turn * 3 + turn // len(FAMILIES)) % len(SIZES)]
        name = f"{family.lower()}-{size}b" + (f"-v{turn // 70}" if turn >= 70 else "")
        offset = float(rng.normal(0, 0.04))
        efforts = EFFORTS if turn % 5 == 1 else ("",)
        shares = (1.0, 0.75, 0.5, 0.25, 0.0) if turn % 7 == 2 else (1.0,)
        for effort in efforts:
            for share in shares:
                rows.append(_row(name, family, size, effort, share, offset))
                if len(rows) == count:
                    return rows
    raise AssertionError


def _row(name: str, family: str, size: int, effort: str, share: float, offset: float) -> MadeRow:
    level = EFFORTS.index(effort) + 1 if effort else 0
    skill = 0.16 + 0.075 * np.log(size) + 0.025 * level + offset - 0.16 * (1 - share)
    return MadeRow(
        model=name,
        team=f"Team {family}",
        skill=float(np.clip(skill, 0.12, 0.9)),
        usd=float(0.0004 * size**1.2 * (1 + level)),
        about=ModelDescription(
            family=family, effort=effort, mode="thinking" if effort else "direct", is_open_weights=size < 100
        ),
        condition=Condition(image_share=share, effort=effort or None, findings="self", summary="self"),
    )  # fmt: skip


def fill_board(store: Store, held: LoadedBenchmark, rows: int, *, texts: bool = True) -> BoardBenchmark:
    """Put so many drawn rows on the board of a benchmark."""
    benchmark = add_benchmark(store, held, "MedThinkVQA")
    hard = {case: seed_from("hard", case) / 2**64 for case in held.cases}
    for place, row in enumerate(made_rows(rows)):
        upload = Upload(
            benchmark_id=benchmark.id, team=row.team, model=row.model, data=b"%d" % place, about=row.about,
        )  # fmt: skip
        token = receive(store, upload).token
        claimed = claim(store, only=find_submission(store, token).id)
        keep_scores(store, claimed, _score(held, row, hard, place, texts), provenance=LEVELS[1 + place % 2])
        publish(store, token, actor="bench")
        if place % 4 == 1:
            raise_provenance(store, token, "ledger", actor="bench", why="added from the run with its ledger")
    return benchmark


def _score(held: LoadedBenchmark, row: MadeRow, hard: dict[int, float], place: int, texts: bool) -> Scores:
    rng = np.random.default_rng(place)
    predictions = [_predict(case, row, hard[number], rng, texts) for number, case in held.cases.items()]
    material = ScoringInput(row.model, None, held.text_fingerprint, held.cases, predictions)
    made = score(material, usage=summarise_usage([_usage(row, rng) for _ in predictions]))
    origin = msgspec.structs.replace(
        made.origin, model=row.model, task="twi", kind="unaided", condition=msgspec.to_builtins(row.condition),
        condition_label=row.condition.label(),
    )  # fmt: skip
    return msgspec.structs.replace(made, origin=origin)


def _predict(case, row, hard, rng, texts) -> Prediction:
    right = rng.random() < np.clip(row.skill + 0.9 * (0.5 - hard), 0.02, 0.98)
    wrong = [letter for letter in case.question.options if letter != case.reference.answer]
    letter = case.reference.answer if right else str(rng.choice(wrong))
    steps = TwiSteps(
        tuple(one.caption[:60] for one in case.reference.images), case.reference.findings[:90], "So it is."
    )
    is_silent = rng.random() < 0.01
    return Prediction(
        case=case.id, split=case.split, sample=0, state="unparsed" if is_silent else "ok",
        prediction=None if is_silent else letter, prediction_twi=steps if texts and not is_silent else None,
        slots=tuple(image.slot for image in case.question.images),
    )  # fmt: skip


def _usage(row: MadeRow, rng: np.random.Generator) -> CallUsage:
    tokens = int(rng.integers(200, 2000))
    return CallUsage(input_tokens=9000, output_tokens=tokens, reasoning_tokens=0, cost_usd=row.usd, latency_s=1.0)


if __name__ == "__main__":
    from medthink.board.results import ensure_rivals
    from medthink.store.engine import store_url

    place, data, count = sys.argv[1:4]
    opened = Store(store_url(place))
    kept = LoadedBenchmark.open(Path(data))
    ensure_rivals(opened, fill_board(opened, kept, int(count)), kept)
    opened.close()
