from itertools import cycle

from msgspec.structs import replace

from medthink.core.numbers import count_of
from medthink.report.summary import name_some, summarise_group
from medthink.scoring.compare import detectable_difference


def test_counts_and_names_read_as_language():
    assert [count_of(1, "case"), count_of(2, "case"), count_of(1200, "case")] == ["1 case", "2 cases", "1,200 cases"]
    assert [name_some(["a"]), name_some(["a", "b"]), name_some(["a", "b", "c"])] == ["a", "a and b", "a, b and c"]
    assert name_some(list("abcdefg")) == "a, b, c, d and 3 more"


def test_the_summary_says_what_was_run_what_came_out_and_what_it_took(blind):
    sentences = summarise_group(blind)
    text = " ".join(sentences)
    best = blind.lettered[0]
    assert sentences[0].startswith("8 runs of 5 models")
    assert f"that of {best.label}: {best.accuracy.value * 100:.1f} %" in text
    assert "guessing by chance gets 20 %" in text
    assert "2 of 108 predictions have no letter (2 unparsed)" in text
    assert "for $0.25; the cost of 2 runs is unknown" in text
    assert "distinguish" in text


def test_a_submission_file_is_no_task(blind):
    files = [one._replace(manifest=replace(one.manifest, task="submission")) for one in blind.entries[:2]]
    first = summarise_group(blind._replace(entries=(*files, *blind.entries[2:])))[0]
    assert ", 2 submission files, all on" in first and "and submission" not in first


def test_ties_are_said(blind):
    sentence = summarise_group(blind)[2]
    assert ("do not distinguish the 7 runs" in sentence) == (not any(pair.is_different for pair in blind.ranking.pairs))


def test_runs_that_ask_the_same_are_offered_as_samples(blind):
    first, *rest = blind.lettered
    again = first._replace(
        label="again", scores=replace(first.scores, origin=replace(first.scores.origin, name="runs/again"))
    )
    told = " ".join(summarise_group(blind._replace(entries=(first, again, *rest))))
    assert f"{first.label} and again asked the same of one model: as samples of one run, its accuracy is" in told
    assert "asked the same" not in " ".join(summarise_group(blind))


def test_a_leader_stands_alone_only_when_its_rank_is_certain(blind):
    def ranked(worst: int) -> str:
        places = [replace(place, is_leader=k == 0) for k, place in enumerate(blind.ranking.runs)]
        runs = (replace(places[0], worst=worst), *places[1:])
        return summarise_group(blind._replace(ranking=replace(blind.ranking, runs=runs)))[2]

    assert "Every other run is shown to be worse (95 %)" in ranked(1)
    assert "Every other run" not in ranked(2)
    assert "Its rank lies within 1–2 of 7" in ranked(2)


def test_only_leaders_share_the_lead(blind):
    places = [replace(place, is_leader=k < 2) for k, place in enumerate(blind.ranking.runs)]
    second = blind.lettered[places[1].run].label
    runs = (replace(places[0], worst=2), *places[1:])
    told = summarise_group(blind._replace(ranking=replace(blind.ranking, runs=runs)))[2]
    assert f"It shares the lead with {second}: no run is shown" in told


def test_what_the_cases_could_show_is_that_of_the_middle_run(blind):
    def answered(rights):
        cases = tuple(replace(case, case=k, right=right) for k, (case, right) in enumerate(zip(cycle(some), rights)))
        return replace(blind.lettered[0].scores, cases=cases)

    some = blind.lettered[0].scores.cases
    n = 400
    leader = [1.0] * n
    others = [[float(k >= wrong) for k in range(n)] for wrong in (20, 80, 160)]
    entries = [blind.lettered[0]._replace(scores=answered(rights)) for rights in (leader, *others)]
    runs = tuple(replace(place, run=k) for k, place in enumerate(blind.ranking.runs[:4]))
    made = blind._replace(entries=tuple(entries), ranking=replace(blind.ranking, runs=runs))
    (sentence,) = [one for one in summarise_group(made) if one.startswith("With ")]
    assert "disagree on 20 % of them" in sentence
    assert (
        f"{detectable_difference(leader, others[1], threshold=blind.ranking.threshold).difference * 100:.1f} points"
        in sentence
    )


def test_a_single_run_is_not_compared(groups):
    text = " ".join(summarise_group(groups[1]))
    assert "distinguish" not in text and "tie" not in text
    assert "Expert text was shown" in text
    assert "All 12 predictions have a letter." in text
