"""Discussion: dropped diagnoses leave it by whole sentences, and nothing else changes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drafts import draft, rule, try_stage
from judge_server import JudgeServer
from medthink.curate.stages.discussion import dropped_names, read_sentences, without_sentences
from medthink.workflow.sentences import split_sentences

OPTIONS = {"A": "Lipoma", "B": "Schwannoma", "C": "Ganglion cyst", "D": "Myxoma", "E": "Haemangioma"}
LISTED = "Lipoma, Schwannoma, Ganglion cyst, Myxoma, Haemangioma, Synovial sarcoma, Desmoid tumour"
TEXT = """Background
Lipoma is the most common soft tissue tumour. Synovial sarcoma is rare.

Differential diagnosis:
1. Schwannoma follows a nerve.
2. Desmoid tumor is dark on T2-weighted images. It recurs.
3. Myxoma is bright on T2-weighted images.

Clinical Significance: No treatment is needed.
Teaching Points: Fat suppression tells. Unlike synovial sarcomas, lipoma does not enhance."""


def case(number=1, text=TEXT, **fields):
    return draft(number, diagnosis="Lipoma", differential=LISTED, options=OPTIONS, discussion=text, **fields)


def test_names_that_an_option_says_too_are_not_looked_for():
    listed = ["Osteosarcoma", "Parosteal osteosarcoma", "Chondrosarcoma", "Ewing sarcoma (ES)"]
    found = dropped_names(listed, ["Parosteal osteosarcoma", "Ewing sarcoma"])
    assert (found.sought, found.unsearchable) == (("Chondrosarcoma",), ("Osteosarcoma",))


@given(
    st.lists(st.sampled_from(["One thing is seen.", "Two are not!", "A third (rare) one, e.g. here.", "1. A point."])),
    st.lists(st.sampled_from([" ", "\n", "\n\n", "\n- "])),
    st.sets(st.integers(0, 8)),
)
def test_whatever_goes_the_rest_stays_letter_by_letter_and_in_order(sentences, gaps, removed):
    text = "".join(sentence + gap for sentence, gap in zip(sentences, [*gaps, *[" "] * len(sentences)], strict=False))
    spans = split_sentences(text)
    gone = {number for number in removed if number < len(spans)}
    pruned = without_sentences(text, spans, gone)
    kept = [text[span.start : span.end] for number, span in enumerate(spans) if number not in gone]
    left = [pruned[span.start : span.end] for span in split_sentences(pruned)]
    # A mark such as "- 1." may pass for a sentence; with its words it goes.
    assert [one for one in left if one[-2:-1].isalpha()] == [one for one in kept if one[-2:-1].isalpha()]


class TestStage:
    def test_sentences_that_name_a_dropped_diagnosis_go_with_what_only_announced_them(self, tmp_path):
        trial = try_stage("discussion", tmp_path, [case()])
        pruned = trial.kept[1].case.reference.discussion
        assert pruned == (
            "Background\nLipoma is the most common soft tissue tumour.\n\nDifferential diagnosis:\n"
            "1. Schwannoma follows a nerve.\n2. It recurs.\n3. Myxoma is bright on T2-weighted images.\n\n"
            "Clinical Significance: No treatment is needed.\nTeaching Points: Fat suppression tells."
        )
        decision = trial.decisions[1]
        assert (decision.verdict, decision.reason) == ("changed", "pruned")
        assert [quote.text[:17] for quote in decision.evidence] == [
            "Synovial sarcoma ", "Desmoid tumor is ", "Unlike synovial s",
        ]  # fmt: skip
        assert "1 of them named an option, too" in decision.detail
        mark = trial.kept[1].notes.marks["discussion"]
        assert mark == {"sections": ["background", "clinical_significance", "teaching_points"], "removed": 3}
        assert "no model was asked" in trial.stage.not_covered()[0]

    def test_a_heading_of_which_nothing_is_left_goes_too(self, tmp_path):
        text = "Lipoma is common.\nIt is soft.\n\nMalignant tumours:\nSynovial sarcoma is rare.\n\nOutcome: None."
        trial = try_stage("discussion", tmp_path, [case(text=text)])
        assert trial.kept[1].case.reference.discussion == "Lipoma is common.\nIt is soft.\n\n\nOutcome: None."

    def test_an_alias_is_a_name(self, tmp_path):
        aliases = {"Desmoid tumour": ("aggressive fibromatosis",)}
        one = case(text="Lipoma is common. It is soft. Aggressive fibromatosis recurs.", aliases=aliases)
        trial = try_stage("discussion", tmp_path, [one])
        assert trial.kept[1].case.reference.discussion == "Lipoma is common. It is soft."

    def test_nothing_to_do_is_said_and_changes_no_text(self, tmp_path):
        drafts = [
            case(1, text=""),
            case(2, text="Lipoma is common."),
            draft(3, diagnosis="Lipoma", options=OPTIONS, discussion="Any text."),
        ]
        trial = try_stage("discussion", tmp_path, drafts)
        assert [trial.decisions[n].reason for n in (1, 2, 3)] == ["no-discussion", "names-none", "nothing-dropped"]
        assert [trial.kept[n].case.reference.discussion for n in (1, 2, 3)] == ["", "Lipoma is common.", "Any text."]

    def test_much_to_remove_is_a_persons_decision(self, tmp_path):
        text = "Synovial sarcoma is rare. Desmoid tumour recurs. Lipoma is common."
        trial = try_stage("discussion", tmp_path, [case(text=text)])
        assert (trial.decisions[1].verdict, trial.decisions[1].reason) == ("undecided", "much-removed")
        assert trial.kept == {}
        for value, left in {"": "Lipoma is common.", "prune": "Lipoma is common.", "keep": text, "keeep": None}.items():
            folder = tmp_path / (value or "nothing")
            rule(try_stage("discussion", folder, [case(text=text)]), value=value)
            again = try_stage("discussion", folder, [case(text=text)])
            if left is None:
                assert again.decisions[1].odd == "'keeep' is neither prune nor keep"
            else:
                assert again.kept[1].case.reference.discussion == left

    @pytest.mark.parametrize(
        ("cut", "detail"),
        [
            (lambda text, spans, removed: text, "still named: Synovial sarcoma, Desmoid tumour"),
            (lambda text, spans, removed: "Lipoma is common.", "a sentence that should stay would change"),
        ],
    )
    def test_a_result_that_cannot_be_verified_is_not_taken(self, tmp_path, monkeypatch, cut, detail):
        monkeypatch.setattr("medthink.curate.stages.discussion.without_sentences", cut)
        trial = try_stage("discussion", tmp_path, [case()])
        assert (trial.decisions[1].reason, trial.decisions[1].detail, trial.kept) == ("not-verified", detail, {})

    def test_a_model_adds_sentences_that_go_on_about_a_dropped_one(self, tmp_path):
        with JudgeServer(lambda nonce, data, _: json.dumps({"call": nonce, "remove": told})) as server:
            told = [1, 5, 6]  # 1: lipoma, the right diagnosis, stays
            trial = try_stage("discussion", tmp_path, [case()], model="server/m", base_url=(server.url,))
        pruned = trial.kept[1].case.reference.discussion
        assert "It recurs." not in pruned and "Lipoma is the most common" in pruned
        assert trial.decisions[1].by == "model server/m" and trial.stage.not_covered() == ()

    @pytest.mark.parametrize("reply", ['{"remove": [99]}', "no", '{"remove": "all"}'])
    def test_a_reply_that_cannot_be_used_leaves_the_case_open(self, tmp_path, reply):
        def answer(nonce, data, outside):
            return json.dumps({"call": nonce} | json.loads(reply)) if reply.startswith("{") else reply

        with JudgeServer(answer) as server:
            trial = try_stage("discussion", tmp_path, [case()], model="server/m", base_url=(server.url,))
        assert (trial.decisions[1].verdict, trial.decisions[1].reason) == ("undecided", "call-failed")


def test_every_name_is_gone_from_what_is_kept():
    names = dropped_names(LISTED.split(", "), list(OPTIONS.values()))
    sentences = read_sentences(TEXT, names.sought, list(OPTIONS.values()), {})
    gone = {number for number, sentence in enumerate(sentences) if sentence.dropped}
    pruned = without_sentences(TEXT, [sentence.span for sentence in sentences], gone)
    assert not any(one.dropped for one in read_sentences(pruned, names.sought, list(OPTIONS.values()), {}))
