import re
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure
from msgspec.structs import replace

from made_runs import make_run
from medthink.core.errors import UsageError
from medthink.report.figures.accuracy import _beside, accuracy_drawing, chance, letters_drawing
from medthink.report.figures.curves import cost_drawing, curve_panel, curve_panels, curves_drawing
from medthink.report.figures.overview import overview_drawing
from medthink.report.figures.slices import one_per_model, slices_drawing, steps_drawings
from medthink.report.figures.style import draw_markup, save_drawing
from medthink.report.runs import group_entries, load_entries
from medthink.report.series import find_curves, plot_entry, price_runs
from medthink.report.tables import tokens_per_case
from medthink.stats.estimate import Undefined


def test_only_curves_with_data_are_drawn(blind, groups):
    assert [panel.key for panel in curve_panels(blind)] == ["share", "effort", "tokens", "size"]
    assert curve_panels(groups[1]) == []
    assert accuracy_drawing(groups[1]) is None and cost_drawing(groups[1]) is None


def test_a_curve_joins_runs_that_differ_in_one_thing_alone(blind):
    shares = curve_panel("share", blind).series
    assert [curve.name for curve in shares.curves] == ["big"]
    assert [point.x for point in shares.curves[0].points] == [0.0, 1.0]
    sizes = curve_panel("size", blind).series
    assert [[point.x for point in curve.points] for curve in sizes.curves] == [[4, 27]]
    tokens = curve_panel("tokens", blind).series
    assert [[(point.x, point.run.effort) for point in curve.points] for curve in tokens.curves] == [
        [(100, "low"), (900, "high")]
    ]
    names = {entry.label: entry.name for entry in blind.entries}
    assert {names[point.run.label] for point in tokens.alone} == {"share-100", "thrice"}


def plotted(blind, **fields):
    return plot_entry(blind.entries[0])._replace(team="", effort="", condition={}, **fields)


def test_a_curve_is_named_after_what_its_runs_share_and_never_like_another(blind):
    made = [
        plotted(blind, model="lab/deep", label=f"deep, share {share}, {history}")._replace(
            condition={"image_share": share, "show_history": history}, effort="high"
        )
        for share in (0.5, 1.0)
        for history in (True, False)
    ]
    assert [one.name for one in find_curves("share", made[::2], 6).curves] == ["deep · high"]
    assert [one.name for one in find_curves("share", made, 6).curves] == [
        "deep, share 0.5, True",
        "deep, share 0.5, False",
    ]


def test_no_effort_that_no_curve_has_is_on_the_axis(blind):
    made = [plotted(blind, model=model, label=model)._replace(effort=effort) for model, effort in
            (("a", "low"), ("b", "medium"), ("a", "high"))]  # fmt: skip
    series = find_curves("effort", made, 6)
    assert series.ticks == ("low", "high") and [point.x for point in series.points] == [0, 1]


def test_only_the_highest_curves_are_drawn(blind):
    made = [
        plotted(blind, model=f"m{rank}", label=f"m{rank} {share}")._replace(
            condition={"image_share": share}, accuracy=Undefined(reason="made", n=1, value=rank / 10)
        )
        for rank in range(4)
        for share in (0, 1)
    ]
    assert [curve.name for curve in find_curves("share", made, 2).curves] == ["m3", "m2"]


def test_sizes_under_unlike_conditions_are_not_joined(bench, tmp_path):
    made = {"4b": "low", "27b": "high"}
    paths = [make_run(tmp_path / n, bench, model=f"server/kin-{n}", effort=effort) for n, effort in made.items()]
    (group,) = group_entries(load_entries(paths))
    panel = curve_panel("size", group).series
    assert panel.curves == () and {point.x for point in panel.alone} == {4, 27}


def test_a_run_that_cost_nothing_has_no_place_on_a_scale_of_costs(bench, tmp_path):
    skills = {0.0: 0.9, 0.1: 0.5, 0.2: 0.6}
    paths = [
        make_run(tmp_path / f"{usd}", bench, model=f"server/{usd}", usd=usd, skill=skill)
        for usd, skill in skills.items()
    ]
    (group,) = group_entries(load_entries(paths))
    # It counts all the same: what is dearer and less accurate is not in the Pareto set.
    priced = price_runs([plot_entry(entry) for entry in group.entries])
    assert (priced[0].run.model, priced[0].is_best) == ("server/0.0", True)
    assert not any(one.is_best for one in priced[1:])
    message = cost_drawing(group).message
    assert "1 of 3 runs with a known cost are in the Pareto set" in message and "1 of them costs nothing" in message
    assert len(cost_drawing(group).table.rows) == 3


def test_output_tokens_per_case_do_not_shrink_with_the_samples(bench, tmp_path):
    run = make_run(tmp_path / "many", bench, tokens=100, samples=3)
    (entry,) = load_entries([run])
    assert tokens_per_case(entry) == 300


def test_the_best_run_of_each_model_is_drawn_before_second_ones(blind):
    chosen = one_per_model(blind.lettered)
    models = [entry.manifest.model for entry in blind.lettered]
    best = [entry for k, entry in enumerate(blind.lettered) if entry.manifest.model not in models[:k]]
    assert chosen == best[:4]


def test_small_slices_are_hollow_and_the_smallest_not_drawn(blind):
    drawing = slices_drawing(blind)
    figure = Figure()
    drawing.draw(figure)
    dots = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 1 and line.get_marker() != "None"]
    assert dots and {line.get_markerfacecolor() for line in dots} == {"none"}
    assert all(row[1].endswith(" (small)") for row in drawing.table.rows)
    few = [
        entry._replace(scores=replace(entry.scores, slices=tuple(replace(one, n=4) for one in entry.scores.slices)))
        for entry in blind.entries
    ]
    assert slices_drawing(blind._replace(entries=tuple(few))) is None


def test_steps_are_drawn_from_these_quantiles(blind):
    (drawing,) = steps_drawings(blind)
    assert drawing.table.columns[3:] == ("5 %", "25 %", "50 %", "75 %", "95 %")


def test_chance_is_a_mean_over_the_options_of_each_case(blind):
    entry = blind.entries[0]
    cases = {
        number: replace(case, question=replace(case.question, options={"A": "a", "B": "b"})) if k < 6 else case
        for k, (number, case) in enumerate(entry.material.cases.items())
    }
    made = blind._replace(entries=(entry._replace(material=entry.material._replace(cases=cases)),))
    assert chance(made) == pytest.approx((0.5 + 0.2) / 2)


def test_many_tokens_are_written_out(bench, tmp_path):
    made = {"low": 12_345, "high": 90}
    paths = [make_run(tmp_path / effort, bench, effort=effort, tokens=n) for effort, n in made.items()]
    (group,) = group_entries(load_entries(paths))
    assert [row[1] for row in curves_drawing(curve_panel("tokens", group)).table.rows] == ["90", "12,345"]


def test_the_pareto_set_holds_what_no_other_run_beats(blind):
    def price(*made):
        runs = [plotted(blind, usd=usd, accuracy=Undefined(reason="made", n=1, value=value)) for usd, value in made]
        return [(one.usd, one.run.value) for one in price_runs(runs) if one.is_best]

    assert price((1, 0.5), (2, 0.4), (2, 0.7), (3, 0.7), (3, 0.7)) == [(1, 0.5), (2, 0.7)]
    assert price((1, 0.5), (1, 0.5)) == [(1, 0.5), (1, 0.5)]


def test_runs_without_a_price_are_not_on_the_cost_figure(blind):
    labels = {row[0] for row in cost_drawing(blind).table.rows}
    assert labels == {entry.label for entry in blind.lettered} - {"kin-4b", "kin-27b"}


def drawings(group):
    found = [accuracy_drawing(group), slices_drawing(group), letters_drawing(group), *steps_drawings(group)]
    return [*found, cost_drawing(group)]


def test_every_figure_has_its_numbers(blind):
    for drawing in drawings(blind):
        assert drawing.table.rows, drawing.key
        assert all(len(row) == len(drawing.table.columns) for row in drawing.table.rows), drawing.key


def test_letters_count_every_prediction(blind):
    table = letters_drawing(blind).table
    total = sum(int(cell) for row in table.rows for cell in row[2:])
    assert total == sum(entry.scores.answers.n_predictions for entry in blind.lettered)
    assert "unparsed" in table.columns


def test_all_states_without_a_letter_are_one_column_of_the_picture(blind):
    entry = blind.lettered[0]
    confusion = {"A": {"A": 3, "failed": 1, "refused": 2, "truncated": 4, "unparsed": 5}}
    scores = replace(entry.scores, answers=replace(entry.scores.answers, confusion=confusion))
    drawing = letters_drawing(blind._replace(entries=(entry._replace(scores=scores),)))
    assert drawing.table.columns[2:] == ("A", "failed", "refused", "truncated", "unparsed")
    markup = draw_markup(drawing, prefix="x")
    assert ">none<" in markup and ">12<" in markup and "truncated" not in markup


def test_a_figure_is_the_same_bytes_twice_and_points_nowhere(blind):
    drawing = accuracy_drawing(blind)
    first, second = (draw_markup(drawing, prefix="g") for _ in range(2))
    assert first == second
    assert "http" not in first and "<script" not in first
    ids = re.findall(r' id="([^"]+)"', first)
    assert len(ids) == len(set(ids)) and all(name.startswith("g-accuracy") for name in ids)
    for target in re.findall(r'(?:href="|url\()#([^")]+)', first):
        assert target in ids
    assert 'role="img"' in first and "<title" in first and "<desc" in first


def test_the_page_decides_the_colours(blind):
    svg = draw_markup(accuracy_drawing(blind), prefix="g")
    assert "var(--series-0)" in svg and "var(--ink)" in svg
    assert not re.search(r"(fill|stroke): #(?!ffffff)", svg)


def test_no_series_is_told_apart_by_its_colour_alone(blind):
    for drawing in (slices_drawing(blind), cost_drawing(blind)):
        figure = Figure()
        drawing.draw(figure)
        drawn = [line for line in figure.axes[0].lines if line.get_marker() not in ("None", " ", "")]
        colours = {line.get_color() for line in drawn}
        assert len(colours) > 1, drawing.key
        assert len({line.get_marker() for line in drawn}) == len(colours), drawing.key


def test_no_number_stands_on_the_line_of_chance():
    assert _beside(0.15, 0.2) == 0.2
    assert _beside(0.25, 0.2) == 0.25 and _beside(0.05, 0.2) == 0.05


@pytest.mark.parametrize("name", ["server/$x^{$", "server/肺炎-7b", "server/<b>&\"'", r"server/\frac{1}{0}", "a" * 300])
def test_any_model_name_can_be_drawn(name, bench, tmp_path, runs):
    odd = make_run(tmp_path / "odd", bench, model=name)
    (group,) = group_entries(load_entries([odd, runs["low"]]))
    for drawing in (accuracy_drawing(group), letters_drawing(group), slices_drawing(group)):
        markup = draw_markup(drawing, prefix="g")
        ElementTree.fromstring(markup.replace("&nbsp;", " "))


@pytest.mark.parametrize(("suffix", "magic"), [(".svg", b"<?xml"), (".pdf", b"%PDF"), (".png", b"\x89PNG")])
def test_the_overview_is_written_in_every_format_and_twice_the_same(suffix, magic, groups, tmp_path):
    first, second = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    for path in (first, second):
        save_drawing(overview_drawing(groups), path)
    assert first.read_bytes().startswith(magic)
    assert first.read_bytes() == second.read_bytes()


def test_the_overview_says_what_it_leaves_out(groups, runs):
    whole = overview_drawing(groups)
    assert "2 runs of other groups or without letters" in whole.message
    assert "Left out" not in whole.message
    assert overview_drawing(groups[::-1]).table == whole.table
    (pair,) = group_entries(load_entries([runs["low"], runs["high"]]))
    assert "Left out, because no runs vary in it: share of images, model size." in overview_drawing([pair]).message
    (alone,) = group_entries(load_entries([runs["cued"]]))
    assert "effort or output tokens" in overview_drawing([alone]).message


def test_there_is_no_overview_without_letters(runs):
    with pytest.raises(UsageError, match="no overview"):
        overview_drawing(group_entries(load_entries([runs["discussion"]])))
