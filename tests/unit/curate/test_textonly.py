"""Text-only: the probes it runs, the rule it keeps to, failed calls, and letters dealt anew."""

import json
from collections import Counter

from drafts import draft, try_stage
from judge_server import JudgeServer
from medthink.curate.stages.textonly import CONDITIONS, ProbeOutcome, decide_case


def _cases(count, gold="Right thing"):
    made = []
    for number in range(1, count + 1):
        letter = "ABCDE"[number % 5]
        options = {one: f"Wrong {one} of {number}" for one in "ABCDE"} | {letter: f"{gold} {number}"}
        made.append(draft(number, history=f"History {number}.", diagnosis=f"{gold} {number}", options=options))
    return made


class ChatServer(JudgeServer):
    """Answers with the letter that `choose` names from the words of the request."""

    def __init__(self, choose):
        super().__init__(lambda *_: "")
        self.choose = choose

    def reply(self, body):
        text = json.dumps(body, ensure_ascii=False)
        message = {"role": "assistant", "content": json.dumps({"answer": self.choose(text), "explanation": "so"})}
        return {
            "id": "j", "object": "chat.completion", "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
        }  # fmt: skip


def _number(text):
    return int(text.split("Wrong ")[1].split(" of ")[1].split("\\n")[0].split('"')[0].split(" ")[0])


def _solves(numbers):
    def choose(text):
        number = _number(text)
        right = "ABCDE"[number % 5]
        return right if number in numbers else "ABCDE"[(number + 1) % 5]

    return choose


def test_a_case_goes_when_as_many_probes_solve_it_as_the_rule_says(tmp_path):
    with ChatServer(_solves({1, 2, 3})) as first, ChatServer(_solves({2, 3, 4})) as second:
        everyone = try_stage("textonly", tmp_path, _cases(10), guessers=[], model=["server/a"], base_url=[first.url])
        assert sorted(one for one, said in everyone.decisions.items() if said.verdict == "out") == [1, 2, 3]
        assert everyone.decisions[1].reason == "solved-without-looking"
        assert all("image_url" not in json.dumps(body) for body in first.bodies)
        other = try_stage(
            "textonly",
            tmp_path / "b",
            _cases(10),
            guessers=[],
            model=["server/b"],
            base_url=[second.url],
            views=["options"],
        )
        assert sorted(one for one, said in other.decisions.items() if said.verdict == "out") == [2, 3, 4]
        assert all("History" not in json.dumps(body) for body in second.bodies)
    letters = Counter(one.case.reference.answer for one in everyone.kept.values())
    assert max(letters.values()) - min(letters[letter] for letter in "ABCDE") <= 1
    for one in everyone.kept.values():
        assert one.case.question.options[one.case.reference.answer] == one.case.reference.answer_text


def test_a_failed_call_leaves_exactly_its_case_open_and_a_second_run_settles_it(tmp_path):
    with ChatServer(_solves({1, 2})) as server:
        server.fails = lambda body: _number(json.dumps(body, ensure_ascii=False)) in (2, 5)
        asked = {"guessers": [], "model": ["server/a"], "base_url": [server.url], "concurrency": 1}
        first = try_stage("textonly", tmp_path, _cases(10), **asked)
        assert sorted(one for one, said in first.decisions.items() if said.verdict == "undecided") == [2, 5]
        assert first.end.counts.unfinished == 2
        server.fails, before = None, len(server.bodies)
        second = try_stage("textonly", tmp_path, _cases(10), **asked)
        assert len(server.bodies) - before == 2
    assert second.end.counts.undecided == 0
    assert sorted(one for one, said in second.decisions.items() if said.verdict == "out") == [1, 2]


def test_more_cases_do_not_have_the_old_ones_asked_again(tmp_path):
    with ChatServer(_solves({1})) as server:
        asked = {"guessers": [], "model": ["server/a"], "base_url": [server.url]}
        try_stage("textonly", tmp_path, _cases(10), **asked)
        before = len(server.bodies)
        try_stage("textonly", tmp_path, _cases(12), **asked)
        assert len(server.bodies) - before == 2


def test_a_guesser_that_learns_a_shortcut_throws_the_case_out(tmp_path):
    trial = try_stage("textonly", tmp_path, _cases(60), guessers=["options"], repeats=1)
    assert trial.end.counts.out == 60
    assert "solved by guesser on options" in trial.stage.report()


def test_too_few_cases_for_a_guesser_are_said_and_nothing_is_dropped(tmp_path):
    trial = try_stage("textonly", tmp_path, _cases(10))
    assert trial.end.counts.passed == 10
    assert "too few" in " ".join(trial.stage.not_covered())


def test_an_unknown_answer_counts_only_where_it_could_make_the_difference():
    probes = [ProbeOutcome("a", frozenset({1, 2})), ProbeOutcome("b", frozenset({1}), {2: "failed", 3: "failed"})]
    assert [decide_case(case, probes, 2) for case in (1, 2, 3)] == ["solved", "unknown", "unsolved"]
    assert [decide_case(case, probes, 1) for case in (2, 3)] == ["solved", "unknown"]


def test_views_hide_what_they_say():
    assert not CONDITIONS["options"].show_history and CONDITIONS["options"].image_share == 0
    assert CONDITIONS["question"].show_history and CONDITIONS["question"].image_share == 0
    assert not CONDITIONS["image"].show_history and CONDITIONS["image"].image_share == 1
    assert CONDITIONS["one-image"].image_share > 0


def test_the_prompts_of_its_probes_decide_whether_it_runs_again(tmp_path):
    asking = try_stage("textonly", tmp_path, _cases(4), guessers=[], model=["baseline/random"]).stage
    assert asking.prompts().keys() == {"question"} and asking.prompts()["question"]["answer"]
    assert try_stage("textonly", tmp_path / "b", _cases(4), guessers=[]).stage.prompts() is None
