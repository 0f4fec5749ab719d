"""What one case, file or reply does harms no other: it fails by itself, with its reason, and can be mended."""

import asyncio
import json

import pytest

from ledger_rows import read_rows
from medthink.core.errors import LedgerError, UsageError
from medthink.models.prices import Charge
from medthink.models.request import Attempt, ModelError, Reply, Usage
from medthink.runs.calls.answerers import AddedAnswerer, NoPreflight
from medthink.runs.calls.asking import (
    FIRST_CASES,
    LATER_CASES,
    CallFailed,
    FailureGuard,
    LedgerCallMaker,
    settings_test_request,
)
from medthink.runs.calls.budget import Budget
from medthink.runs.ledger.ledger import Ledger
from medthink.runs.manifest import RunSpec
from medthink.runs.session import run_session
from medthink.workflow.ask import Unanswered
from medthink.workflow.condition import Condition

TWI = Condition(findings="self", summary="self")


def go(benchmark, out, **changes):
    told = {"benchmark": benchmark, "model": "baseline/retrieval", "out": out, "task": "twi", "condition": TWI}
    return run_session(RunSpec(**(told | changes)))


@pytest.mark.parametrize("spoil", [lambda path: path.unlink(), lambda path: path.write_bytes(b"\xff\xd8\xff no")])
def test_an_image_that_cannot_be_used_fails_its_case_alone_and_can_be_mended(benchmark, tmp_path, spoil):
    image = sorted((benchmark / "images/case00105").iterdir())[1]
    good = image.read_bytes()
    spoil(image)
    made = {one.case: one for one in go(benchmark, tmp_path / "run").run.predictions()}
    assert [case for case, one in made.items() if one.state != "ok"] == [105]
    assert (made[105].state, image.name in made[105].detail) == ("failed", True)
    assert read_rows(tmp_path / "run" / "ledger.sqlite", "SELECT count(*) FROM calls WHERE case_id = 105") == [(0,)]
    image.write_bytes(good)
    again = go(benchmark, tmp_path / "run")
    assert again.calls_made == 4
    assert {one.state for one in again.run.predictions()} == {"ok"}
    assert len(again.run.manifest.amendments) == 1
    assert go(benchmark, tmp_path / "run").calls_made == 0


def test_a_change_that_touches_an_answered_case_is_refused_as_ever(benchmark, tmp_path):
    image = sorted((benchmark / "images/case00105").iterdir())[1]
    image.unlink()
    go(benchmark, tmp_path / "run")
    other = sorted((benchmark / "images/case00104").iterdir())[1]
    other.write_bytes(sorted((benchmark / "images/case00103").iterdir())[1].read_bytes())
    with pytest.raises(LedgerError, match=r"the benchmark has changed since: case 104\n"):
        go(benchmark, tmp_path / "run")


def test_a_folder_of_images_that_is_a_link_is_refused_in_words(benchmark, tmp_path):
    (benchmark / "images").rename(tmp_path / "elsewhere")
    (benchmark / "images").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match=r"none of the \d+ images may be read: a symbolic link leads out") as caught:
        go(benchmark, tmp_path / "run")
    assert "replace the link by the folder itself" in caught.value.remedy


def test_a_benchmark_without_any_image_is_refused_at_the_start(benchmark, tmp_path):
    for image in benchmark.glob("images/*/*.jpg"):
        image.unlink()
    with pytest.raises(UsageError, match="all 24 images are missing"):
        go(benchmark, tmp_path / "run")


def error(kind="auth", detail="not for you") -> ModelError:
    return ModelError(kind, detail, status=403)


def test_one_case_that_is_turned_away_stops_nothing():
    streak = FailureGuard()
    for case in range(100):
        assert streak.note_failure(case, error()) is None
        assert streak.note_failure(case, error()) is None, "the same case again is no other case"
        streak.note_answer()


def test_the_first_cases_that_fail_alike_stop_the_run_with_the_providers_words():
    streak = FailureGuard()
    for case in range(FIRST_CASES - 1):
        assert streak.note_failure(case, error()) is None
    stop = streak.note_failure(99, error())
    assert stop is not None and "the first 5 cases failed in the same way: not for you" in str(stop)


def test_another_kind_of_failure_begins_another_streak():
    streak = FailureGuard()
    kinds = ["auth", "server"] * 20
    assert [streak.note_failure(case, error(kind)) for case, kind in enumerate(kinds)] == [None] * 40


def test_after_an_answer_more_is_forgiven_and_what_failed_before_does_not_count():
    streak = FailureGuard(has_answers=True, failed_before=range(1_000))
    assert [streak.note_failure(case, error()) for case in range(1_000)] == [None] * 1_000
    ends = [streak.note_failure(case, error()) for case in range(1_000, 1_000 + LATER_CASES)]
    assert [end is not None for end in ends] == [False] * (LATER_CASES - 1) + [True]


class Paid(NoPreflight):
    """An answerer whose attempts are scripted: each is an outcome and its tokens; a token costs a cent."""

    spec, concurrency, first_phase, is_remote = "server/m", 2, "asking", True

    def __init__(self, *attempts: tuple[str, int]) -> None:
        self.attempts = attempts
        self.sent = 0

    async def answer(self, prompt, request, log):
        for number, (outcome, tokens) in enumerate(self.attempts, start=1):
            if number > 1:
                await log.again()
            self.sent += 1
            usage = Usage(input=tokens)
            log.note(Attempt(number=number, endpoint="", outcome=outcome, is_sent=True, latency_s=0.0, usage=usage))
        if outcome != "ok":
            raise ModelError(outcome, "no", usage=usage)
        return Reply(text="A", usage=usage, model=f"m{self.sent}")

    def cost_usd(self, usage):
        return usage.input / 100 if usage else None

    def worst_cost_usd(self, request):
        return 0.1


class Asked:
    kind = "answer"


def ask(tmp_path, answerer, budget, cases=(1,)):
    async def scene():
        ledger = Ledger(tmp_path / "ledger.sqlite")
        desk = LedgerCallMaker(answerer, ledger, budget)
        try:
            calls = (desk.call(Asked(), settings_test_request(Condition()), case) for case in cases)
            return desk, await asyncio.gather(*calls, return_exceptions=True)
        finally:
            ledger.close()

    return asyncio.run(scene())


def test_every_attempt_is_paid_from_the_budget_and_none_is_sent_that_it_does_not_allow(tmp_path):
    answerer = Paid(*[("invalid_json", 10)] * 5)
    budget = Budget(max_usd=0.25)
    _, (end,) = ask(tmp_path, answerer, budget)
    assert "--max-usd" in str(end)
    assert answerer.sent == 2
    assert budget.spent_usd == pytest.approx(0.2)
    kind, cost = read_rows(tmp_path / "ledger.sqlite", "SELECT error_kind, total(cost_usd) FROM calls, attempts")[0]
    assert (kind, cost) == ("budget", pytest.approx(0.2))


def test_a_model_that_answers_under_another_name_is_pointed_out_once(tmp_path):
    desk, ends = ask(tmp_path, Paid(("ok", 1)), Budget(), cases=(1, 2))
    assert not [end for end in ends if isinstance(end, Exception)]
    assert desk.tracker.counts.warnings == ["the provider now reports the model m2; earlier replies came from m1"]


def test_the_desk_stops_when_the_first_cases_fail_alike(tmp_path):
    _, ends = ask(tmp_path, Paid(("auth", 0)), Budget(), cases=range(30))
    kinds = {type(end) for end in ends}
    assert kinds == {CallFailed, ModelError}
    assert sum(isinstance(end, Unanswered) for end in ends) <= FIRST_CASES + 1


class Foreign:
    """A model of another package, which breaks in its own way where it is told to."""

    def __init__(self, *faults: BaseException | None) -> None:
        self.faults = list(faults)

    async def generate(self, request):
        if (fault := self.faults.pop(0)) is not None:
            raise fault
        return Reply(text="A", usage=Usage(input=1))


def test_whatever_another_packages_model_raises_ends_its_call_alone(tmp_path):
    faults = (KeyError("choices"), None, ModelError("server", "busy"))
    _, ends = ask(tmp_path, AddedAnswerer("parrot/x", Foreign(*faults), None), Budget(), cases=(1, 2, 3))
    assert [isinstance(end, Unanswered) for end in ends] == [True, False, True]
    assert "parrot/x failed: KeyError: 'choices'" in ends[0].detail
    rows = read_rows(tmp_path / "ledger.sqlite", "SELECT state, error_kind FROM calls ORDER BY case_id")
    assert rows == [("failed", "invalid_reply"), ("done", None), ("failed", "server")]


def test_what_concerns_the_whole_run_goes_through_another_packages_model(tmp_path):
    _, (end,) = ask(tmp_path, AddedAnswerer("parrot/x", Foreign(UsageError("no weights")), None), Budget())
    assert isinstance(end, UsageError)


def test_replies_that_never_came_make_the_cost_a_lower_bound(benchmark, tmp_path):
    out = tmp_path / "run"
    run = go(benchmark, out).run
    assert run.manifest.progress.uncounted_replies == 0
    ledger = Ledger(out / "ledger.sqlite")
    key = read_rows(out / "ledger.sqlite", "SELECT key FROM calls LIMIT 1")[0][0]

    async def lose():
        lost = Attempt(number=0, endpoint="", outcome="unknown", is_sent=True, latency_s=0.0)
        ledger.note_attempt(key, lost, Charge(0.5, is_least=True))

    asyncio.run(lose())
    ledger.close()
    assert go(benchmark, out).run.manifest.progress.uncounted_replies == 1
    assert json.loads((out / "run.json").read_text())["progress"]["uncounted_replies"] == 1
