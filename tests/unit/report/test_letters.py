"""The squares of letters given for letters due."""

from matplotlib.figure import Figure

from medthink.report.figures.accuracy import letters_drawing


def test_an_odd_number_of_runs_leaves_no_empty_square(blind):
    entries = tuple({entry.manifest.model: entry for entry in blind.lettered}.values())[:3]
    assert len(entries) == 3
    figure = Figure()
    letters_drawing(blind._replace(entries=entries)).draw(figure)
    assert len(figure.axes) == 3
    assert all(axes.get_title() for axes in figure.axes)
