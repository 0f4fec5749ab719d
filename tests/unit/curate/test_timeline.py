"""Timeline: two imaging events set apart in time, and not just time."""

import csv
import json
import tomllib
from pathlib import Path

import pytest

from drafts import draft, rule, try_stage
from judge_server import JudgeServer
from medthink.curate.stages.timeline import read_timeline

TWICE = {
    "interval": "MRI showed a cyst. Six months later, a second look by MRI was unremarkable.",
    "interval, said after": "CT showed a nodule of 4 mm. A CT performed two years later showed 9 mm.",
    "earlier": "On the MRI performed seven years before, a mass was seen. The current MRI shows a scar.",
    "follow-up": "CT revealed a thrombus. Follow-up CT showed its complete resolution.",
    "control": "The radiograph showed a fracture line. A control radiograph showed callus.",
    "comparison": "The chest radiograph shows a mass, which was present on a prior chest radiograph.",
    "compared": "Ultrasound of the liver was done. Compared with the previous scan the lesion is larger.",
    "repeated": "The CT was normal. After a week of fever, another contrast-enhanced CT showed an abscess.",
    "age": "Ultrasound at 12 weeks of gestation showed a mass. At 24 weeks, the mass had doubled.",
    "treatment": "MRI showed a mass in the thigh. Postoperative MRI showed no residual tumour.",
    "years": "CT in 2007 showed a calcified lesion. MRI in 2019 showed the lesion again.",
    "serial": "CT showed a cyst. Serial ultrasound examinations showed no change.",
}
ONCE = {
    "symptoms": "A man with pain for two years. CT showed a mass, and MRI confirmed it.",
    "surgery": "He had a vasectomy 20 years earlier. He underwent a scrotal ultrasound. It showed moving foci.",
    "surgery in one sentence": "A man who had a vasectomy 20 years earlier underwent ultrasound. MRI was normal.",
    "trauma": "Two months after a road accident MRI was done. CT had shown no fracture.",
    "one work-up": "Initial ultrasound showed a mass. Subsequent CT and further MRI confirmed it.",
    "only a follow-up": "A patient with melanoma underwent a follow-up PET/CT. It revealed a gallbladder nodule.",
    "none before": "CT showed a nodule. No previous imaging was available for comparison.",
    "lost": "CT showed a nodule. MRI was not done, as the patient was lost to follow-up.",
    "planned": "CT showed a nodule. A follow-up CT in six months was recommended. Ultrasound was normal.",
    "one examination": "Follow-up CT showed progression.",
    "nothing": "",
}


@pytest.mark.parametrize("text", TWICE.values(), ids=TWICE)
def test_two_imaging_events_are_found(text):
    timeline = read_timeline({"findings": text})
    assert timeline.is_longitudinal and timeline.timepoints == 2
    assert timeline.interval_text


@pytest.mark.parametrize("text", ONCE.values(), ids=ONCE)
def test_time_alone_is_no_second_imaging_event(text):
    timeline = read_timeline({"findings": text})
    assert (timeline.is_longitudinal, timeline.timepoints, timeline.interval_text) == (False, 1, "")


def test_the_interval_is_in_the_texts_own_words_and_counts_every_time():
    text = "CT showed a cyst. Two months later, CT showed growth. A third CT showed a scar. Follow-up MRI was stable."
    timeline = read_timeline({"findings": text})
    assert (timeline.interval_text, timeline.timepoints) == ("Two months", 4)
    first = timeline.events[0]
    assert text[first.start : first.end] == "Two months later, CT showed growth."


def test_history_and_findings_are_read_together():
    texts = {"history": "CT two years ago showed a nodule.", "findings": "CT shows a nodule of 9 mm."}
    assert read_timeline(texts).events[0].field == "history"


@pytest.mark.parametrize(
    ("text", "interval"),
    [
        ("MRI showed a cyst. 1.5 years later, MRI showed growth.", "1.5 years"),
        ("MRI showed a cyst. 1,5 years later, MRI showed growth.", "1,5 years"),
        ("MRI showed a cyst. 1½ years later, MRI showed growth.", "1½ years"),
        ("MRI showed a cyst. 1 1/2 years later, MRI showed growth.", "1 1/2 years"),
        ("MRI showed a cyst. 12–18 months later, MRI showed growth.", "12–18 months"),
        ("MRI showed a cyst. 12 to 18 months later, MRI showed growth.", "12 to 18 months"),
        ("MRI showed a cyst. Two or three weeks later, MRI showed growth.", "Two or three weeks"),
        ("MRI showed a cyst. One and a half years later, MRI showed growth.", "One and a half years"),
        ("MRI showed a cyst. A year and a half later, MRI showed growth.", "A year and a half"),
        ("MRI showed a cyst. 2 yrs later, MRI showed growth.", "2 yrs"),
        ("MRI showed a cyst. 6 wks later, MRI showed growth.", "6 wks"),
        ("CT showed a bleed. 48h later, CT showed growth.", "48h"),
        ("CT showed a bleed. A few days later, CT showed growth.", "A few days"),
        ("A CT performed twenty-four months later showed growth. CT was normal before.", ""),
        ("CT (2015) showed a nodule. CT (2019) showed growth.", "unknown"),
        ("CT (2015) and CT (2019) were compared.", "unknown"),
        ("CT of 14.03.2019 showed a nodule; CT of 02.01.2021 was normal.", "unknown"),
        ("CT of 2019-03-14 showed a nodule. The MRI on 2021-01-02 was normal.", "unknown"),
        ("CT on day 1 was normal. MRI on day 10 showed an infarct.", "unknown"),
    ],
)
def test_a_span_is_read_whole(text, interval):
    found = read_timeline({"IMAGING_FINDINGS": text})
    assert found.interval_text == interval or (not interval and "our months" not in found.interval_text)
    assert found.is_longitudinal or not interval


@pytest.mark.parametrize(
    "text",
    [
        "A 45-year-old man. CT showed a nodule. MRI showed the same.",
        "CT on 14.03.2019 and MRI on 14.03.19 showed a cyst.",
        "CT on 14.03.2019 and MRI on 2019-03-14 showed a cyst.",
        "CT on day 1 was normal. Surgery was done on day 10.",
        "Surgery on 12.03.2019. CT and MRI on 14.03.2019 showed a cyst.",
        "CT showed L4/5 stenosis of 1.5 mm. MRI showed a 2.5 cm cyst.",
    ],
)
def test_one_time_stays_one_time(text):
    assert not read_timeline({"IMAGING_FINDINGS": text}).is_longitudinal


class TestStage:
    def test_rules_label_with_quotes_that_stand(self, tmp_path):
        drafts = [draft(1, findings=TWICE["follow-up"]), draft(2, findings=ONCE["surgery"])]
        trial = try_stage("timeline", tmp_path, drafts)
        first, second = (trial.kept[number].case.reference for number in (1, 2))
        assert (first.is_longitudinal, first.timepoint_count, first.interval_text) == (True, 2, "unknown")
        assert (second.is_longitudinal, second.timepoint_count, second.interval_text) == (False, 1, "")
        quote = trial.decisions[1].evidence[0]
        assert quote.field == "IMAGING_FINDINGS" and quote.text == "Follow-up CT showed its complete resolution."
        assert trial.decisions[1].by == "rule follow-up"
        assert trial.stage.not_covered()

    def test_a_label_that_the_source_gives_stays(self, tmp_path):
        given = draft(1, findings=ONCE["surgery"]).with_reference(
            is_longitudinal=True, timepoint_count=3, interval_text="a year"
        )
        trial = try_stage("timeline", tmp_path, [given])
        assert trial.kept[1] == given and trial.decisions[1].reason == "had-label"

    @pytest.mark.parametrize(
        ("events", "verdict", "count"),
        [
            (["CT revealed a thrombus", "Follow-up CT showed"], "changed", 2),
            (["CT revealed a thrombus"], "undecided", None),
            ([], "in", 1),
            (["CT revealed a thrombus", "MRI a year later"], "undecided", None),
        ],
        ids=["two", "one", "none", "a quote that does not stand"],
    )
    def test_a_model_is_asked_where_rules_find_something_and_must_quote(self, tmp_path, events, verdict, count):
        def answer(nonce, data, outside):
            told = [{"quote": quote, "when": "then"} for quote in events]
            return json.dumps({"call": nonce, "events": told, "interval": ""})

        drafts = [draft(1, findings=TWICE["follow-up"]), draft(2, findings=ONCE["surgery"])]
        with JudgeServer(answer) as server:
            trial = try_stage("timeline", tmp_path, drafts, model="server/m", base_url=(server.url,))
            assert len(server.bodies) == 1  # of the first case only
        assert trial.decisions[1].verdict == verdict
        assert trial.decisions[2].verdict == "in"
        if count is not None:
            assert trial.kept[1].case.reference.timepoint_count == count

    def test_the_embedded_model_agrees_with_the_rules(self, tmp_path):
        drafts = [draft(1, findings=TWICE["follow-up"])]
        trial = try_stage("timeline", tmp_path, drafts, model="baseline/rules")
        assert trial.kept[1].case.reference.timepoint_count == 2

    @pytest.mark.parametrize(("value", "count"), [("3", 3), ("", 1), ("two", None), ("²", None), ("0", None)])
    def test_a_person_counts_in_whole_numbers(self, tmp_path, value, count):
        def answer(nonce, data, outside):
            return json.dumps({"call": nonce, "events": [{"quote": data["texts"][0], "when": ""}], "interval": ""})

        given = [draft(1, findings=TWICE["interval"])]
        with JudgeServer(answer) as server:
            settings = {"model": "server/m", "base_url": (server.url,)}
            rule(try_stage("timeline", tmp_path, given, **settings), reason="one-event", value=value)
            trial = try_stage("timeline", tmp_path, given, **settings)
        if count is None:
            assert trial.decisions[1].odd == f"{value!r} is not a number of time points"
            return
        reference = trial.kept[1].case.reference
        assert (reference.timepoint_count, reference.is_longitudinal) == (count, count > 1)
        assert reference.interval_text == ("Six months" if count > 1 else "")


SAMPLE = Path(__file__).resolve().parents[4] / "shared/data/eurorad_sample.csv"
LABELS = Path(__file__).resolve().parents[3] / "bench/labels_of_sample.toml"


@pytest.mark.skipif(not SAMPLE.exists(), reason="the real cases are not here")
def test_real_cases_are_told_apart():
    labels = tomllib.loads(LABELS.read_text())["timeline"]
    said = set()
    for row in csv.DictReader(SAMPLE.read_text(encoding="utf-8").splitlines(keepends=True)):
        history, _, findings = row["PostDescription"].partition("Imaging Findings:")
        if read_timeline({"history": history, "findings": findings}).is_longitudinal:
            said.add(int(float(row["case_id"])))
    true = set(labels["several"])
    said -= set(labels["arguable"])
    assert len(said & true) >= 0.75 * max(len(said), len(true))
