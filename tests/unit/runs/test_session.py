"""A run is made, continued, limited, split and merged, and says what it is."""

import asyncio
import base64
import io
import json
import shutil
from types import SimpleNamespace

import msgspec
import pytest
from PIL import Image as Pillow
from PIL.PngImagePlugin import PngInfo

import medthink
from ledger_rows import alter, read_rows
from medthink.cases.images.fact_cache import ImageFacts, find_facts
from medthink.core.errors import DataError, LedgerError, UsageError
from medthink.models.request import Reply, Request, TextPart
from medthink.runs.calls.answerers import CostsNothing
from medthink.runs.calls.asking import LedgerCallMaker, encode_image
from medthink.runs.calls.budget import Budget
from medthink.runs.dry_run import DryRunCallMaker, dry_run, estimate
from medthink.runs.engine import run_to_end
from medthink.runs.ledger.ledger import Ledger
from medthink.runs.manifest import RunSpec
from medthink.runs.selection import Selection, Shard, parse_shard
from medthink.runs.session import run_session
from medthink.runs.shards import merge_shards
from medthink.workflow.condition import Condition
from medthink.workflow.tasks import prompt_versions

TWI = Condition(findings="self", summary="self")


def run_spec(benchmark, out, **changes) -> RunSpec:
    return RunSpec(**({"benchmark": benchmark, "model": "baseline/random", "out": out} | changes))


def test_a_run_leaves_a_manifest_a_ledger_and_a_prediction_for_every_case(benchmark, tmp_path):
    session = run_session(run_spec(benchmark, tmp_path / "run"))
    predictions = list(session.run.predictions())
    assert [p.case for p in predictions] == list(range(100, 112))
    assert all(p.state == "ok" and p.prediction in "ABCDE" and len(p.calls) == 1 for p in predictions)
    progress = session.run.manifest.progress
    assert progress.is_complete
    assert progress.states == {"ok": 12}
    assert progress.reported_models == ("baseline/random",)
    assert session.run.manifest.fingerprint == medthink.Benchmark.open(benchmark)["test"].fingerprint()


def test_a_run_labelled_by_an_earlier_release_is_continued_under_its_old_digest(benchmark, tmp_path):
    out = tmp_path / "run"
    run_session(run_spec(benchmark, out, max_calls=2))
    stored = json.loads((out / "run.json").read_text())
    stored["condition_label"] = "blind · 100 % of images"
    (out / "run.json").write_text(json.dumps(stored))
    before = medthink.Run.open(out).manifest.digest()
    after = run_session(run_spec(benchmark, out)).run
    assert after.manifest.progress.is_complete and after.manifest.digest() == before
    assert "unaided" in repr(after) and "blind" not in repr(after)


def test_a_run_opens_its_own_cases_and_refuses_another_benchmark(benchmark, tmp_path):
    selection = Selection(split="test", cases=(100, 103))
    made = run_session(run_spec(benchmark, tmp_path / "run", selection=selection)).run
    assert list(made.cases()) == [100, 103] and len(made.split()) == 12
    moved = shutil.copytree(benchmark, tmp_path / "moved")
    assert list(made.cases(moved)) == [100, 103]
    rows = (moved / "test.jsonl").read_text().splitlines()
    (moved / "test.jsonl").write_text("\n".join(rows[:-1]) + "\n")
    for open_it in (made.cases, made.split):
        with pytest.raises(UsageError, match=r"moved has changed since .*run was made on it: case 111\n"):
            open_it(moved)
        with pytest.raises(UsageError, match=r"is no longer at"):
            open_it(tmp_path / "gone")


def run_from_python(benchmark, out, **changes):
    return medthink.run(benchmark, **({"model": "baseline/random", "out": out} | changes))


def test_a_benchmark_handed_in_is_what_is_run(benchmark, tmp_path):
    opened = medthink.Benchmark.open(benchmark)
    train = run_from_python(opened["train"], tmp_path / "train")
    assert train.manifest.selection == Selection(split="train")
    some = opened["test"].filter(lambda case: case.id % 3 == 0)
    made = run_from_python(some, tmp_path / "some")
    assert made.manifest.selection == Selection(split="test", cases=(102, 105, 108, 111))
    assert [one.case for one in made.predictions()] == [102, 105, 108, 111] == list(made.cases())
    assert run_from_python(some, tmp_path / "some").manifest.progress.is_complete
    with pytest.raises(LedgerError, match=r"selection\.cases"):
        run_from_python(opened["test"].filter(lambda case: case.id == 102), tmp_path / "some")
    whole = run_from_python(opened, tmp_path / "whole")
    assert whole.manifest.selection == Selection(split="test")


def test_a_selection_narrows_the_benchmark_handed_in(benchmark, tmp_path):
    some = medthink.Benchmark.open(benchmark).filter(lambda case: case.id % 3 == 0)
    first = run_from_python(some, tmp_path / "first", selection=Selection(split="test", limit=2))
    assert [one.case for one in first.predictions()] == [102, 105]
    named = run_from_python(some, tmp_path / "named", selection=Selection(split="test", cases=(108,)))
    assert [one.case for one in named.predictions()] == [108]


def test_what_no_selection_can_express_is_refused(benchmark, tmp_path):
    opened, out = medthink.Benchmark.open(benchmark), tmp_path / "run"
    with pytest.raises(UsageError, match="from several: train, test"):
        run_from_python(opened.filter(lambda case: case.id % 3 == 0), out)
    with pytest.raises(UsageError, match="keeps no case"):
        run_from_python(opened["test"].filter(lambda case: False), out)
    with pytest.raises(UsageError, match="leaves out selected cases: 101"):
        run_from_python(
            opened["test"].filter(lambda case: case.id == 100), out, selection=Selection(split="test", cases=(101,))
        )
    with pytest.raises(UsageError, match="no split 'test'"):
        run_from_python(opened["train"], out, selection=Selection(split="test"))
    assert not out.exists()


def test_a_condition_from_python_asks_for_the_steps_of_its_task(benchmark, tmp_path):
    made = run_from_python(
        benchmark, tmp_path / "run", task="twi", condition=Condition(image_share=0.5), model="baseline/retrieval"
    )
    assert made.manifest.condition == Condition(image_share=0.5, findings="self", summary="self")
    assert all(one.prediction_twi.step2_integrated_summary for one in made.predictions())
    plain = run_from_python(benchmark, tmp_path / "plain", condition=Condition(seed=1))
    assert (plain.manifest.condition.findings, plain.manifest.condition.summary) == ("none", "none")


def test_manifest_and_predictions_say_what_was_asked_and_answered(benchmark, tmp_path):
    condition = msgspec.structs.replace(TWI, seed=3)
    made = run_session(
        run_spec(benchmark, tmp_path / "run", task="twi", condition=condition, model="baseline/retrieval")
    ).run
    assert (made.manifest.package, made.manifest.condition) == (medthink.__version__, condition)
    assert made.manifest.prompts == prompt_versions("twi", condition)
    assert set(made.manifest.prompts) == {"findings", "summary", "differential"}
    for prediction in made.predictions():
        steps = prediction.prediction_twi
        assert prediction.parse_mode == "strict" and len(steps.step1_per_image_findings) == 2
        assert steps.step2_integrated_summary
        assert prediction.prediction_rationale == steps.step3_differential_reasoning != ""


def test_replay_does_not_answer_from_a_call_that_failed(benchmark, tmp_path):
    run_session(run_spec(benchmark, tmp_path / "first"))
    alter(tmp_path / "first" / "ledger.sqlite", "UPDATE calls SET state = 'failed'")
    again = run_session(run_spec(benchmark, tmp_path / "again", model=f"replay/{tmp_path / 'first'}"))
    assert {p.state for p in again.run.predictions()} == {"failed"}


def test_a_finished_run_makes_no_calls_and_rewrites_the_same_bytes(benchmark, tmp_path):
    out = tmp_path / "run"
    first = run_session(run_spec(benchmark, out, task="twi", condition=TWI, model="baseline/retrieval"))
    before = {name: (out / name).read_bytes() for name in ("run.json", "predictions.jsonl")}
    second = run_session(run_spec(benchmark, out, task="twi", condition=TWI, model="baseline/retrieval"))
    assert first.calls_made == 12 * 4
    assert second.calls_made == 0
    assert before == {name: (out / name).read_bytes() for name in before}


def test_another_command_on_the_same_run_is_refused_and_named(benchmark, tmp_path):
    run_session(run_spec(benchmark, tmp_path / "run"))
    with pytest.raises(
        LedgerError, match=r"another run: selection\.limit: was None, now 3; condition\.samples: was 1, now 2\n"
    ):
        changed = {"condition": Condition(samples=2), "selection": Selection(split="test", limit=3)}
        run_session(run_spec(benchmark, tmp_path / "run", **changed))


def test_another_task_is_named_without_the_digests_of_its_prompts(benchmark, tmp_path):
    run_session(run_spec(benchmark, tmp_path / "run", model="baseline/retrieval"))
    with pytest.raises(LedgerError, match=r"another run: task: was answer, now discussion\n"):
        run_session(run_spec(benchmark, tmp_path / "run", model="baseline/retrieval", task="discussion"))


@pytest.mark.parametrize(("temperature", "cautions"), [(0, 1), (0.5, 0)])
def test_samples_at_temperature_0_get_a_caution(benchmark, tmp_path, monkeypatch, temperature, cautions):
    monkeypatch.setattr("medthink.runs.calls.answerers.refuse_settings", lambda *_: None)
    condition = Condition(samples=3, temperature=temperature)
    warnings = run_session(run_spec(benchmark, tmp_path / "run", condition=condition)).warnings
    assert sum("--samples 3 at temperature 0" in one for one in warnings) == cautions


def test_a_benchmark_that_changed_since_is_refused_and_named(benchmark, tmp_path):
    run_session(run_spec(benchmark, tmp_path / "run"))
    first, second = sorted((benchmark / "images/case00100").iterdir())
    first.write_bytes(second.read_bytes())
    with pytest.raises(LedgerError, match=r"another run: the benchmark has changed since: case 100\n"):
        run_session(run_spec(benchmark, tmp_path / "run"))


def test_a_folder_with_something_else_in_it_is_refused(benchmark, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("precious")
    with pytest.raises(UsageError, match=r"thesis\.tex"):
        run_session(run_spec(benchmark, tmp_path / "run"))


def test_the_budget_stops_the_run_and_a_higher_one_continues_it(benchmark, tmp_path):
    stopped = run_session(run_spec(benchmark, tmp_path / "run", max_calls=5))
    assert stopped.stopped_by is not None
    assert stopped.calls_made == 5
    assert not stopped.run.manifest.progress.is_complete
    finished = run_session(run_spec(benchmark, tmp_path / "run"))
    assert (finished.calls_made, finished.stopped_by) == (7, None)
    assert finished.run.manifest.progress.is_complete


def test_a_budget_reached_among_the_images_of_a_case_still_sees_the_calls_it_allowed_to_their_end(benchmark, tmp_path):
    stopped = run_session(run_spec(benchmark, tmp_path / "run", task="twi", condition=TWI, max_calls=1))
    assert stopped.calls_made == 1
    assert stopped.run.manifest.progress.calls == {"done": 1}


def test_an_image_that_a_case_shows_twice_is_asked_about_once(benchmark, tmp_path):
    for folder in (benchmark / "images").iterdir():
        first, second = sorted(folder.iterdir())
        second.write_bytes(first.read_bytes())
    what = run_spec(benchmark, tmp_path / "run", task="twi", condition=TWI, model="baseline/retrieval")
    estimated = estimate(what)
    session = run_session(what)
    assert session.calls_made == 12 * 3 == estimated.calls
    for prediction in session.run.predictions():
        assert len(set(prediction.calls)) == len(prediction.calls) == 3
        assert len(prediction.prediction_twi.step1_per_image_findings) == 2


def test_an_estimate_prices_every_call_by_its_own_length(benchmark, tmp_path):
    prices = tmp_path / "prices.toml"
    tier = "above = 2_000, input_above = 900.0, output_above = 900.0"
    prices.write_text(f'date = "2026-01-01"\n[models]\n"server/m" = {{ input = 1.0, output = 1.0, {tier} }}\n')
    made = estimate(
        run_spec(benchmark, tmp_path / "run", model="server/m", base_urls=("http://127.0.0.1:9",), prices=prices)
    )
    assert made.input_tokens > 2_000 > made.input_tokens / made.calls
    assert made.cost_usd == pytest.approx((made.input_tokens + made.output_tokens) / 1_000_000)


@pytest.mark.parametrize("max_calls", [0, 5, 17, 47])
def test_an_estimate_of_a_run_in_part_done_counts_what_is_left(benchmark, tmp_path, max_calls):
    what = run_spec(benchmark, tmp_path / "run", task="twi", condition=TWI, model="baseline/retrieval")
    whole = estimate(what)
    assert (whole.cases, whole.calls, whole.done) == (12, 48, None)
    run_session(msgspec.structs.replace(what, max_calls=max_calls))
    assert (whole.input_tokens, whole.output_tokens) == (0, 0)  # a reader counts no tokens
    left = estimate(what)
    assert left.done.calls.get("done", 0) == max_calls
    assert left.calls == 48 - max_calls == run_session(what).calls_made
    finished = estimate(what)
    assert (finished.cases, finished.calls, finished.images, finished.output_tokens) == (0, 0, 0, 0)
    assert finished.done.states == {"ok": 12}


def test_an_estimate_counts_calls_that_failed_and_no_case_whose_replies_are_all_there(benchmark, tmp_path):
    first, again = tmp_path / "first", tmp_path / "again"
    run_session(run_spec(benchmark, first, selection=Selection(split="test", cases=(100, 101))))
    what = run_spec(benchmark, again, model=f"replay/{first}")
    run_session(what)
    assert (estimate(what).cases, estimate(what).calls) == (10, 10)
    # What cannot be read is read again, but not asked again.
    alter(again / "ledger.sqlite", "UPDATE predictions SET state = 'unparsed'")
    assert (estimate(what).cases, estimate(what).calls) == (10, 10)


def test_an_estimate_sees_every_image_to_its_end_where_one_was_refused(benchmark, tmp_path):
    what = run_spec(benchmark, tmp_path / "run", task="twi", condition=TWI, model="baseline/retrieval")
    run_session(what)
    ledger = tmp_path / "run/ledger.sqlite"
    (first,), (second,) = read_rows(ledger, "SELECT id FROM calls WHERE case_id = 100 LIMIT 2")
    alter(
        ledger,
        f"UPDATE calls SET reply = json_set(reply, '$.stop', 'refused') WHERE id = {first}",
        f"UPDATE calls SET state = 'failed' WHERE id = {second}",
        "DELETE FROM predictions WHERE case_id = 100",
    )
    assert (estimate(what).cases, estimate(what).calls) == (1, 1) == (1, run_session(what).calls_made)


def test_an_estimate_of_a_run_that_would_be_refused_is_refused(benchmark, tmp_path):
    run_session(run_spec(benchmark, tmp_path / "run"))
    with pytest.raises(LedgerError, match=r"another run: condition\.samples: was 1, now 2\n"):
        estimate(run_spec(benchmark, tmp_path / "run", condition=Condition(samples=2)))
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(UsageError, match="is not empty and holds bench, not a run"):
        estimate(run_spec(benchmark, tmp_path))


def test_samples_are_asked_apart_and_kept_apart(benchmark, tmp_path):
    session = run_session(run_spec(benchmark, tmp_path / "run", condition=Condition(samples=3)))
    predictions = list(session.run.predictions())
    assert [(p.case, p.sample) for p in predictions[:4]] == [(100, 0), (100, 1), (100, 2), (101, 0)]
    assert session.calls_made == 36


def requests_of(benchmark, condition: Condition) -> list[Request]:
    """What would be sent for the first case."""
    asked = []
    data = medthink.Benchmark.open(benchmark)
    desk = DryRunCallMaker("server/m", lambda _, request: asked.append(request))
    what = RunSpec(benchmark=benchmark, model="server/m", condition=condition)
    run_to_end(dry_run(list(data["test"])[:1], what, desk, benchmark=data))
    return asked


def test_each_sample_has_a_model_seed_of_its_own(benchmark):
    asked = requests_of(benchmark, Condition(samples=3, model_seed=5, seed=9))
    assert [(request.sample, request.seed) for request in asked] == [(0, 5), (1, 6), (2, 7)]


def test_a_request_holds_what_the_condition_says_and_nothing_else(benchmark):
    (plain,) = requests_of(benchmark, Condition())
    settings = (plain.temperature, plain.effort, plain.max_tokens, plain.seed)
    assert settings == (None,) * 4 and plain.schema is not None
    (asked,) = requests_of(
        benchmark, Condition(temperature=0.5, effort="low", max_tokens=9, model_seed=0, use_schema=False)
    )
    assert (asked.temperature, asked.effort, asked.max_tokens, asked.seed, asked.schema) == (0.5, "low", 9, 0, None)


def marked_pictures():
    """Images with a mark wherever a file can say something beside its picture."""
    picture = Pillow.new("RGB", (40, 30), "gray")
    exif = Pillow.Exif()
    exif[0x010E] = "MARK description"
    text = PngInfo()
    text.add_text("Comment", "MARK comment")
    for form, options in (
        ("JPEG", {"exif": exif}),
        ("JPEG", {"comment": b"MARK comment"}),
        ("JPEG", {"xmp": b"<x>MARK</x>"}),
        ("PNG", {"pnginfo": text}),
        ("PNG", {"exif": exif}),
    ):
        file = io.BytesIO()
        picture.save(file, form, **options)
        yield file.getvalue()
        yield file.getvalue() + b"MARK after the end"


class OneImage:
    """A store that holds one image under every name."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def read_known(self, path: str) -> tuple[bytes, ImageFacts]:
        return self.data, find_facts(self.data)


@pytest.mark.parametrize("limits", [{}, {"image_max_side": 20}])
def test_what_an_images_file_says_beside_its_picture_is_not_sent(limits):
    for data in marked_pictures():
        assert b"MARK" in data
        part = encode_image(medthink.Image(1, "MARK", "MARK.jpg", OneImage(data)), Condition(**limits))
        assert b"MARK" not in base64.b64decode(part.base64)
        assert "MARK" not in repr(part)


def test_a_place_is_kept_until_the_outcome_is_on_disk(tmp_path):
    """A crash repeats no more calls than may be made at once: those whose outcome was not yet written."""

    class SlowLedger(Ledger):
        async def settle(self, key, reply):
            begun.append("settle")
            await asyncio.sleep(0.05)
            begun.append("settled")
            return await super().settle(key, reply)

    class Answerer(CostsNothing):
        spec, concurrency = "test/m", 1

        async def answer(self, prompt, request, note):
            begun.append("answer")
            return Reply(text="B")

    async def scene():
        desk = LedgerCallMaker(Answerer(), ledger, Budget())
        prompt = SimpleNamespace(kind="answer")
        await asyncio.gather(*(desk.call(prompt, Request(parts=(TextPart(str(n)),)), n) for n in range(3)))

    begun: list[str] = []
    ledger = SlowLedger(tmp_path / "ledger.sqlite")
    asyncio.run(scene())
    ledger.close()
    assert begun == ["answer", "settle", "settled"] * 3


def test_a_run_is_about_its_split(benchmark, tmp_path):
    session = run_session(run_spec(benchmark, tmp_path / "run", selection=Selection(split="train")))
    assert {p.split for p in session.run.predictions()} == {"train"}
    assert session.run.manifest.fingerprint == medthink.Benchmark.open(benchmark)["train"].fingerprint()


def test_letters_come_back_in_the_lettering_of_the_file(benchmark, tmp_path):
    shown = run_session(run_spec(benchmark, tmp_path / "a", model="baseline/longest"))
    turned = run_session(
        run_spec(benchmark, tmp_path / "b", model="baseline/longest", condition=Condition(option_order=2))
    )
    for one, two in zip(shown.run.predictions(), turned.run.predictions(), strict=True):
        assert one.letter_shown == one.prediction
        assert "ABCDE"[("ABCDE".index(two.prediction) + 2) % 5] == two.letter_shown


def test_only_the_chosen_images_are_asked_about(benchmark, tmp_path):
    half = msgspec.structs.replace(TWI, image_share=0.5)
    session = run_session(run_spec(benchmark, tmp_path / "run", task="twi", condition=half, model="baseline/retrieval"))
    assert all(p.slots == (1,) for p in session.run.predictions())
    assert all(len(p.prediction_twi.step1_per_image_findings) == 1 for p in session.run.predictions())


def test_shards_are_disjoint_complete_and_merge_into_the_whole(benchmark, tmp_path):
    whole = run_session(run_spec(benchmark, tmp_path / "whole", model="baseline/retrieval"))
    parts = []
    for number in (1, 2, 3):
        part = tmp_path / f"part{number}"
        selection = Selection(split="test", shard=Shard(number, 3))
        run_session(run_spec(benchmark, part, model="baseline/retrieval", selection=selection))
        parts.append(part)
    merged = merge_shards(tmp_path / "merged", parts)
    assert merged.manifest.digest() == whole.run.manifest.digest()
    assert [_said(p) for p in merged.predictions()] == [_said(p) for p in whole.run.predictions()]
    _refer_to_their_own_calls(tmp_path / "merged")
    again = run_session(run_spec(benchmark, tmp_path / "merged", model="baseline/retrieval"))
    assert again.calls_made == 0


def _said(prediction):
    return msgspec.structs.replace(prediction, calls=(), latency_s=0.0)


def _refer_to_their_own_calls(run):
    cases = dict(read_rows(run / "ledger.sqlite", "SELECT id, case_id FROM calls"))
    for line in (run / "predictions.jsonl").read_text().splitlines():
        prediction = json.loads(line)
        (call,) = prediction["calls"]
        assert cases[call] == prediction["case"]


def test_shards_that_do_not_make_a_whole_are_refused(benchmark, tmp_path):
    for number in (1, 2):
        selection = Selection(split="test", shard=Shard(number, 3))
        run_session(run_spec(benchmark, tmp_path / f"part{number}", selection=selection))
    with pytest.raises(UsageError, match="are not complete"):
        merge_shards(tmp_path / "merged", [tmp_path / "part1", tmp_path / "part2"])
    assert not (tmp_path / "merged").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"model": "baseline/longest"},
        {"condition": Condition(image_share=0.5)},
        {"selection": Selection(split="test", shard=Shard(2, 2), limit=5)},
        {"selection": Selection(split="train", shard=Shard(2, 2))},
        {"selection": Selection(split="test")},
    ],
)
def test_shards_of_different_runs_are_refused_and_nothing_is_written(benchmark, tmp_path, change):
    halves = [{"selection": Selection(split="test", shard=Shard(number, 2))} for number in (1, 2)]
    run_session(run_spec(benchmark, tmp_path / "one", **halves[0]))
    run_session(run_spec(benchmark, tmp_path / "two", **(halves[1] | change)))
    with pytest.raises(UsageError, match=r"not a shard of the same run|is a complete run, not a shard"):
        merge_shards(tmp_path / "whole", [tmp_path / "one", tmp_path / "two"])
    assert not (tmp_path / "whole").exists()


def test_an_unfinished_shard_is_refused(benchmark, tmp_path):
    for number in (1, 2):
        selection = Selection(split="test", shard=Shard(number, 2))
        run_session(run_spec(benchmark, tmp_path / f"part{number}", selection=selection, max_calls=1))
    with pytest.raises(UsageError, match="not finished"):
        merge_shards(tmp_path / "merged", [tmp_path / "part1", tmp_path / "part2"])


def make_halves(benchmark, tmp_path):
    parts = [tmp_path / "half1", tmp_path / "half2"]
    for number, part in enumerate(parts, start=1):
        run_session(run_spec(benchmark, part, selection=Selection(split="test", shard=Shard(number, 2))))
    return parts


def test_a_shard_without_its_ledger_is_refused_and_nothing_is_written(benchmark, tmp_path):
    first, second = make_halves(benchmark, tmp_path)
    (second / "ledger.sqlite").unlink()
    with pytest.raises(LedgerError, match="half2: it has no ledger"):
        merge_shards(tmp_path / "merged", [first, second])
    assert not (tmp_path / "merged").exists()
    assert not (second / "ledger.sqlite").exists()


def test_shards_whose_records_overlap_are_refused_and_nothing_is_written(benchmark, tmp_path):
    first, second = make_halves(benchmark, tmp_path)
    (second / "ledger.sqlite").write_bytes((first / "ledger.sqlite").read_bytes())
    with pytest.raises(LedgerError, match="half2: cannot be merged: UNIQUE"):
        merge_shards(tmp_path / "merged", [first, second])
    assert not (tmp_path / "merged").exists()


def test_shards_are_not_merged_into_a_run_that_is_there(benchmark, tmp_path):
    parts = make_halves(benchmark, tmp_path)
    with pytest.raises(DataError, match="the folder is not empty"):
        merge_shards(parts[0], parts)


@pytest.mark.parametrize("text", ["", "1", "0/2", "3/2", "a/b", "1/0", "1/2/3"])
def test_a_bad_shard_is_refused(text):
    with pytest.raises(UsageError, match="not a shard"):
        parse_shard(text)


def test_an_unknown_case_is_refused_before_anything_is_written(benchmark, tmp_path):
    with pytest.raises(UsageError, match="9999"):
        run_session(run_spec(benchmark, tmp_path / "run", selection=Selection(split="test", cases=(100, 9999))))
    assert not (tmp_path / "run").exists()


def test_replay_answers_from_another_run(benchmark, tmp_path):
    first = run_session(run_spec(benchmark, tmp_path / "first"))
    model = f"replay/{tmp_path / 'first'}"
    again = run_session(run_spec(benchmark, tmp_path / "again", model=model))
    assert [p.prediction for p in again.run.predictions()] == [p.prediction for p in first.run.predictions()]


def test_replay_fails_what_was_never_asked(benchmark, tmp_path):
    run_session(run_spec(benchmark, tmp_path / "first", selection=Selection(split="test", limit=6)))
    again = run_session(run_spec(benchmark, tmp_path / "again", model=f"replay/{tmp_path / 'first'}"))
    assert again.run.manifest.progress.states == {"ok": 6, "failed": 6}
    failed = [p for p in again.run.predictions() if p.state == "failed"]
    assert all(p.prediction is None and "did not send" in p.detail for p in failed)


def test_run_works_from_python_inside_a_running_loop(benchmark, tmp_path):
    async def notebook():
        return medthink.run(benchmark, model="baseline/random", out=tmp_path / "run")

    made = asyncio.run(notebook())
    assert len(list(made.predictions())) == 12


def test_limits_hold_from_python_too(benchmark, tmp_path):
    made = medthink.run(benchmark, model="baseline/random", out=tmp_path / "run", max_calls=5)
    assert made.manifest.progress.calls == {"done": 5} and not made.manifest.progress.is_complete
    with pytest.raises(UsageError, match=r"(?s)--max-usd needs a price.*--price 5/30"):
        medthink.run(benchmark, model="server/m", out=tmp_path / "dear", base_urls=("http://127.0.0.1:9",), max_usd=1.0)


def test_swapped_images_come_from_another_case(benchmark, tmp_path):
    session = run_session(run_spec(benchmark, tmp_path / "run", condition=Condition(swap_images=True)))
    own = {case.id: {i.digest() for i in case.question.images} for case in medthink.Benchmark.open(benchmark)["test"]}
    for case_id, request in read_rows(tmp_path / "run" / "ledger.sqlite", "SELECT case_id, request FROM calls"):
        sent = {part[2] for part in json.loads(request)["parts"] if part[0] == "image"}
        assert sent
        assert not sent & own[case_id]
    assert session.run.manifest.progress.is_complete


def test_blind_runs_leave_nothing_withheld_in_the_ledgers_requests(benchmark, tmp_path):
    for task, condition in (("answer", Condition()), ("twi", TWI), ("discussion", Condition())):
        # The words of retrieval are those of the train split, and stand in its own later prompts.
        model = "baseline/retrieval" if task == "discussion" else "baseline/random"
        run_session(run_spec(benchmark, tmp_path / task, task=task, condition=condition, model=model))
        requests = str(read_rows(tmp_path / task / "ledger.sqlite", "SELECT request FROM calls"))
        assert "WITHHELD" not in requests
        assert "case00" not in requests


def _rewrite_predictions(run, old: str, new: str) -> None:
    alter(run / "ledger.sqlite", "UPDATE predictions SET body = replace(body, ?, ?)", values=(old, new))


def test_a_case_that_ended_well_is_read_again_only_by_another_release(benchmark, tmp_path):
    out = tmp_path / "run"
    run_session(run_spec(benchmark, out))
    made = (out / "predictions.jsonl").read_bytes()
    _rewrite_predictions(out, '"split":"test"', '"split":"kept"')
    assert run_session(run_spec(benchmark, out)).calls_made == 0
    assert (out / "predictions.jsonl").read_bytes() == made.replace(b'"test"', b'"kept"')
    manifest = json.loads((out / "run.json").read_bytes())
    (out / "run.json").write_text(json.dumps(manifest | {"package": "0.0.1"}))
    assert run_session(run_spec(benchmark, out)).calls_made == 0
    assert (out / "predictions.jsonl").read_bytes() == made
