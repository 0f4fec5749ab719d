"""ICD: candidates from terms and tables, what rules settle, what a model may choose, and labels that always agree."""

import csv
import json
import tomllib
from pathlib import Path

import pytest

from drafts import draft, rule, try_stage
from judge_server import JudgeServer
from medthink.cases.icd import icd_problems, is_category, labels_of, who_tree
from medthink.curate.stages.icd import (
    MOST,
    _entries,
    _tumours,
    find_icd_candidates,
    listed_categories,
    tumour_categories,
)


@pytest.fixture
def model():
    """A model that chooses what `choice` says."""
    told = {"choice": "none of these", "other": ""}
    with JudgeServer(lambda nonce, data, words: json.dumps({"call": nonce} | told)) as server:
        server.told = told
        yield server


def ask(server):
    return {"model": "server/m", "base_url": [server.url]}


def test_the_labels_of_every_category_are_valid_and_nested():
    tree = who_tree()
    categories = [code for code in tree.get_all_codes() if is_category(code)]
    assert len(categories) == 2050
    assert [code for code in categories if icd_problems(*labels_of(code))] == []
    # Blocks are nested: the innermost one is the label.
    assert labels_of("C15").block.startswith("C15-C26 - ")
    assert len({labels_of(code).block for code in categories}) == 263


def test_the_tables_hold_categories_only():
    codes = {code for entries in _entries().values() for _, code in entries}
    codes |= {code for site in _tumours().site for code in site.codes.values()}
    codes |= {code for kind in _tumours().histology for code in (*kind.always, *kind.otherwise)}
    assert [code for code in codes if not is_category(code)] == []


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("Boerhaave syndrome", "K22"),
        ("Ollier’s disease", "Q78"),
        ("Haemangioma of the liver", "D18"),
        ("Leiomyoma of the esophagus", "D13"),
        ("Enchondroma", "D16"),
        ("Pancreatic adenocarcinoma", "C25"),
        ("Hepatic metastases", "C78"),
    ],
)
def test_tables_know_eponyms_spellings_and_sites(name, category):
    found = [hit.category for hit in (*listed_categories([name]), *tumour_categories([name], ""))]
    assert category in found


def test_a_site_is_taken_from_the_findings_where_the_name_has_none():
    findings = "CT showed a mass in the pancreatic body; the pancreas was atrophic. The liver was normal."
    assert tumour_categories(["Adenocarcinoma"], findings)[0] == ("C25", len("adenocarcinoma"), False)
    named = tumour_categories(["Adenocarcinoma of the lung"], findings)
    assert named[0].category == "C34" and named[0].is_sure


@pytest.mark.parametrize(
    ("diagnosis", "settled", "rule"),
    [
        ("Cholera", "A00", "same term"),
        ("Caroli disease", "Q44", "table of names"),
        ("Gallbladder carcinoma", "C23", "table of tumours"),
        ("Carcinoma arising from anal fistula", "C21", "table of tumours"),
        ("Abscess mimicking carcinoma of the lung", "", ""),
        ("Lipoma-like lesion", "", ""),
        ("Haematoma in a patient with colon cancer", "", ""),
        ("Dancing something", "", ""),
    ],
)
def test_rules_settle_only_what_one_table_has_word_by_word(diagnosis, settled, rule):
    coding = find_icd_candidates(diagnosis)
    assert (coding.settled, coding.rule) == (settled, rule)
    assert len(coding.candidates) <= MOST and len({one.category for one in coding.candidates}) == len(coding.candidates)


def test_an_alias_finds_what_the_name_does_not():
    assert "K22" not in [one.category for one in find_icd_candidates("Effort rupture").candidates[:1]]
    assert find_icd_candidates("Effort rupture", aliases=["Boerhaave syndrome"]).candidates[0].category == "K22"


class TestStage:
    def test_a_rule_labels_all_three_levels_with_evidence(self, tmp_path):
        trial = try_stage("icd", tmp_path, [draft(1, diagnosis="Caroli disease")])
        reference = trial.kept[1].case.reference
        assert reference.icd_category.startswith("Q44 - ") and reference.icd_chapter.startswith("Chapter XVII - ")
        assert not icd_problems(reference.icd_chapter, reference.icd_block, reference.icd_category)
        decision = trial.decisions[1]
        assert (decision.reason, decision.by) == ("coded", "rule table of names")
        assert decision.evidence[0].text == "Caroli disease"

    def test_without_a_model_the_rest_is_kept_unlabelled_or_held_and_never_called_clean(self, tmp_path):
        drafts = [draft(1, diagnosis="Dancing something")]
        trial = try_stage("icd", tmp_path / "a", drafts)
        assert trial.kept[1].case.reference.icd_category == "" and trial.kept[1].notes.marks["icd"]["candidates"]
        assert trial.decisions[1].reason == "uncoded" and "likeliest:" in trial.decisions[1].detail
        assert "no model was asked" in trial.stage.not_covered()[0]
        held = try_stage("icd", tmp_path / "b", drafts, uncoded="hold")
        assert (held.decisions[1].verdict, held.kept) == ("undecided", {})
        assert is_category(held.decisions[1].proposal)

    def test_labels_that_agree_stay_and_others_are_made_anew(self, tmp_path):
        right, wrong = labels_of("K50"), labels_of("K50")._replace(chapter="Chapter II - Neoplasms")
        drafts = [
            draft(number, diagnosis="Caroli disease").with_reference(
                icd_chapter=one.chapter, icd_block=one.block, icd_category=one.category
            )
            for number, one in ((1, right), (2, wrong))
        ]
        trial = try_stage("icd", tmp_path, drafts)
        assert [trial.decisions[number].reason for number in (1, 2)] == ["had-labels", "coded"]
        assert trial.kept[1].case.reference.icd_category.startswith("K50")
        assert trial.kept[2].case.reference.icd_category.startswith("Q44")

    def test_a_model_chooses_among_the_candidates(self, tmp_path, model):
        drafts = [draft(1, diagnosis="Dancing something", findings="Ultrasound of the scrotum.")]
        code = find_icd_candidates("Dancing something", context="Ultrasound of the scrotum.").candidates[3].category
        model.told["choice"] = code
        trial = try_stage("icd", tmp_path, drafts, **ask(model))
        assert trial.kept[1].case.reference.icd_category.startswith(code)
        assert trial.decisions[1].by == "model server/m" and trial.stage.not_covered() == ()
        assert len(model.bodies) == 1

    @pytest.mark.parametrize(
        ("told", "verdict", "category"),
        [
            ({"choice": "none of these", "other": "n50"}, "changed", "N50"),
            ({"choice": "none of these", "other": "XX9"}, "undecided", ""),
            ({"choice": "cannot tell", "other": "N50"}, "undecided", ""),
        ],
    )
    def test_none_of_these_needs_a_category_that_exists(self, tmp_path, model, told, verdict, category):
        model.told |= told
        trial = try_stage("icd", tmp_path, [draft(1, diagnosis="Dancing something")], **ask(model))
        assert trial.decisions[1].verdict == verdict
        kept = trial.kept.get(1)
        assert (kept.case.reference.icd_category[:3] if kept else "") == category

    def test_a_failed_call_leaves_the_case_undecided(self, tmp_path, model):
        model.fails = lambda body: "Dancing" in json.dumps(body)
        drafts = [draft(1, diagnosis="Dancing something"), draft(2, diagnosis="Caroli disease")]
        trial = try_stage("icd", tmp_path, drafts, **ask(model))
        assert [trial.decisions[number].verdict for number in (1, 2)] == ["undecided", "changed"]
        assert trial.decisions[1].reason == "call-failed" and trial.end.counts.unfinished == 1
        model.fails, model.told["choice"] = None, find_icd_candidates("Dancing something").candidates[0].category
        again = try_stage("icd", tmp_path, tmp_path / "work/cases/given.jsonl", **ask(model))
        assert again.end.counts.undecided == 0

    def test_a_person_may_name_a_category_and_nothing_else(self, tmp_path):
        given = [draft(1, diagnosis="Dancing something")]
        named = {"n50 - something": "N50 - ", "none": "", "Cholera": None}
        for number, (value, category) in enumerate(named.items()):
            folder = tmp_path / str(number)
            rule(try_stage("icd", folder, given, uncoded="hold"), value=value)
            again = try_stage("icd", folder, given, uncoded="hold")
            if category is None:
                assert "not a category" in again.decisions[1].odd
            else:
                assert again.kept[1].case.reference.icd_category.startswith(category)
                assert bool(again.kept[1].case.reference.icd_category) == bool(category)

    def test_naming_no_category_agrees_with_the_one_proposed(self, tmp_path):
        given = [draft(1, diagnosis="Dancing something")]
        asked = try_stage("icd", tmp_path, given, uncoded="hold")
        proposed = asked.decisions[1].proposal
        rule(asked)
        again = try_stage("icd", tmp_path, given, uncoded="hold").kept[1]
        assert proposed and again.case.reference.icd_category[:3] == proposed


SAMPLE = Path(__file__).resolve().parents[4] / "shared/data/eurorad_sample.csv"
LABELS = Path(__file__).resolve().parents[3] / "bench/labels_of_sample.toml"


@pytest.mark.skipif(not SAMPLE.exists(), reason="the real cases are not here")
def test_real_diagnoses_have_their_category_among_the_candidates():
    accepted = tomllib.loads(LABELS.read_text())["icd"]
    rows = list(csv.DictReader(SAMPLE.read_text(encoding="utf-8").splitlines(keepends=True)))
    found = wrong = 0
    for row in rows:
        coding = find_icd_candidates(row["FinalDiagnosis"], context=row["PostDescription"])
        due = accepted[str(int(float(row["case_id"])))].split()
        found += any(one.category in due for one in coding.candidates)
        wrong += bool(coding.settled) and coding.settled not in due
    assert len(rows) == 70 and found >= 0.9 * len(rows) and wrong == 0
