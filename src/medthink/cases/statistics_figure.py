"""The statistics of a benchmark as one figure: six panels, the same bytes for the same counts."""

import io
import warnings
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medthink.cases.statistics import UNKNOWN_CHAPTER, Statistics
from medthink.core.files import write_atomic
from medthink.core.numbers import count_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette: told apart with every common colour blindness, and in grey.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
INK = "#333333"
STYLE: dict[str, Any] = {
    "svg.hashsalt": "medthink",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "font.family": "DejaVu Sans",
    "font.size": 7,
    "text.parse_math": False,
    "axes.titlesize": 8,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 7,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.5,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 7,
}
_METADATA: dict[str, dict[str, None]] = {
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    ".png": {"Software": None},
}
_SHORT_NAMES = {
    "Nuclear medicine & Molecular imaging": "Nuclear medicine",
    "Non-modality / Workflow / Post-processing": "Non-modality",
}
_CHAPTER_NAMES = {
    "I": "Infections", "II": "Neoplasms", "III": "Blood, immunity", "IV": "Endocrine, metabolic",
    "V": "Mental", "VI": "Nervous system", "VII": "Eye", "VIII": "Ear", "IX": "Circulatory", "X": "Respiratory",
    "XI": "Digestive", "XII": "Skin", "XIII": "Musculoskeletal", "XIV": "Genitourinary", "XV": "Pregnancy",
    "XVI": "Perinatal", "XVII": "Congenital", "XVIII": "Symptoms, signs", "XIX": "Injury, poisoning",
    "XX": "External causes", "XXI": "Health services", "XXII": "Special purposes",
}  # fmt: skip
_LABEL_LENGTH = 26
_CHAPTERS_SHOWN = 12


def draw_statistics(statistics: Statistics, path: Path) -> None:
    """Draw the figure and write it atomically; the suffix chooses SVG, PDF or PNG."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    with mpl.rc_context(STYLE), warnings.catch_warnings():
        figure = Figure(figsize=(7.2, 6.4), layout=ConstrainedLayoutEngine(w_pad=0.09, h_pad=0.05))
        FigureCanvasAgg(figure)
        # A subfigure per row: otherwise the long labels of one row would indent the panels of the others.
        rows: Any = figure.subfigures(3, 1, height_ratios=(1, 1.3, 1))
        panels = [axes for row in rows for axes in row.subplots(1, 2)]
        draws = (_images_per_case, _timepoints, _modalities, _chapters, _letters, _option_lengths)
        for letter, axes, draw in zip("abcdef", panels, draws, strict=True):
            draw(axes, statistics)
            axes.set_title(f"{letter}  {axes.get_title(loc='left')}", loc="left")
            axes.tick_params(length=0)
            _tick_whole_numbers(axes)
        handles, labels = panels[0].get_legend_handles_labels()
        rows[0].legend(handles, labels, loc="outside upper center", ncols=len(labels))
        save_figure(figure, path)


def save_figure(figure: "Figure", path: Path) -> None:
    """Write a figure atomically, the same bytes each time; the suffix chooses SVG, PDF or PNG."""
    stream = io.BytesIO()
    with warnings.catch_warnings():
        # Of a letter that the font lacks an SVG holds the text all the same, and the others show a box.
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font", UserWarning)
        figure.savefig(stream, format=path.suffix[1:], dpi=300, metadata=_METADATA[path.suffix])
    write_atomic(path, [stream.getvalue()])


def _tick_whole_numbers(axes: "Axes") -> None:
    """Ticks at whole numbers wherever an axis has numbers and not names: there is no half image."""
    from matplotlib.ticker import AutoLocator, MaxNLocator

    for axis in (axes.xaxis, axes.yaxis):
        if isinstance(axis.get_major_locator(), AutoLocator):
            axis.set_major_locator(MaxNLocator(nbins=6, integer=True, steps=[1, 2, 5, 10]))


def _say_instead(axes: "Axes", title: str, words: str) -> None:
    """Write text in place of a panel that has nothing to show."""
    axes.set_title(title)
    axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center", color=INK, fontsize=8)
    axes.set_axis_off()


def _images_per_case(axes: "Axes", statistics: Statistics) -> None:
    shares = {
        f"{_printable(name)} ({split.cases:,} cases)": _shares(split.images_per_case, split.cases)
        for name, split in statistics.splits.items()
    }
    top = max(max(split.images_per_case) for split in statistics.splits.values())
    if not top:
        for label, colour in zip(shares, cycle(COLOURS), strict=False):
            axes.step([], [], color=colour, linewidth=1.2, label=label)  # for the legend
        _say_instead(axes, "Images per case", "no images")
        return
    for (label, share), colour in zip(shares.items(), cycle(COLOURS), strict=False):
        numbers = range(top + 2)
        heights = [share.get(number, 0.0) for number in numbers]
        axes.fill_between(numbers, heights, step="mid", alpha=0.18, color=colour, linewidth=0)
        axes.step(numbers, heights, where="mid", color=colour, linewidth=1.2, label=label)
    for split, colour in zip(statistics.splits.values(), cycle(COLOURS), strict=False):
        axes.axvline(split.images_per_case_mean, color=colour, linewidth=0.9, linestyle=(0, (3, 2)))
    axes.set(title="Images per case (dashed: mean)", xlabel="images", ylabel="cases (%)", xlim=(0, top + 1))
    axes.set_ylim(bottom=0)


def _timepoints(axes: "Axes", statistics: Statistics) -> None:
    counts = sorted(statistics.overall.timepoints)
    shares = [_shares(split.timepoints, split.cases) for split in statistics.splits.values()]
    _grouped_bars(axes, [str(count) for count in counts], [[s.get(c, 0.0) for c in counts] for s in shares])
    axes.set(title="Timepoints per case", xlabel="timepoints", ylabel="cases (%)")


def _letters(axes: "Axes", statistics: Statistics) -> None:
    letters = list(statistics.overall.letters)
    shares = [_shares(split.letters, split.cases) for split in statistics.splits.values()]
    _grouped_bars(axes, list(map(_shortened, letters)), [[s.get(letter, 0.0) for letter in letters] for s in shares])
    axes.axhline(100 / max(1, len(letters)), color=INK, linewidth=0.9, linestyle=(0, (3, 2)))
    axes.set(title="Right answers by letter (dashed: even)", xlabel="letter", ylabel="cases (%)")


def _modalities(axes: "Axes", statistics: Statistics) -> None:
    if not statistics.overall.images:
        _say_instead(axes, "Modality", "no images")
        return
    names = sorted(statistics.overall.modality_images, key=statistics.overall.modality_images.__getitem__)
    shares = [_shares(split.modality_images, split.images) for split in statistics.splits.values()]
    labels = [_shortened(_SHORT_NAMES.get(name, name)) for name in names]
    _grouped_bars(axes, labels, [[s.get(name, 0.0) for name in names] for s in shares], lying=True)
    axes.set(title="Modality", xlabel="images (%)")


def _chapters(axes: "Axes", statistics: Statistics) -> None:
    overall = statistics.overall.icd_chapters
    frequent = sorted(overall, key=lambda chapter: (-overall[chapter], chapter))[:_CHAPTERS_SHOWN]
    rest = overall.keys() - set(frequent)
    rows = []
    for split in statistics.splits.values():
        share = _shares(split.icd_chapters, split.cases)
        rows.append([sum(share.get(c, 0.0) for c in rest)] + [share.get(c, 0.0) for c in reversed(frequent)])
    labels = [
        count_of(len(rest), "other chapter"),
        *(_chapter_label(chapter) for chapter in reversed(frequent)),
    ]
    if not rest:
        labels, rows = labels[1:], [row[1:] for row in rows]
    _grouped_bars(axes, labels, rows, lying=True)
    axes.set(title="ICD-10 chapter", xlabel="cases (%)")


def _option_lengths(axes: "Axes", statistics: Statistics) -> None:
    overall = statistics.overall
    for lengths, label, style in (
        (overall.correct_option_lengths, "right", "-"),
        (overall.wrong_option_lengths, "wrong", (0, (3, 2))),
    ):
        total, below = sum(lengths.values()) or 1, 0
        points, heights = [0], [0.0]
        for length, count in lengths.items():
            below += count
            points.append(length)
            heights.append(100 * below / total)
        axes.plot(points, heights, color=INK, linewidth=1.1, linestyle=style, label=label)
    axes.legend(loc="lower right", handlelength=2.4)
    axes.set(title="Option length, cumulative", xlabel="characters", ylabel="options (%)", ylim=(0, 102))
    axes.set_xlim(left=0)


def _grouped_bars(axes: "Axes", labels: list[str], rows: list[list[float]], *, lying: bool = False) -> None:
    """One bar per split beside each label; lying bars for long labels."""
    thickness = 0.8 / max(1, len(rows))
    for index, (row, colour) in enumerate(zip(rows, cycle(COLOURS), strict=False)):
        shift = (index - (len(rows) - 1) / 2) * thickness
        places = [place + (-shift if lying else shift) for place in range(len(labels))]
        (axes.barh if lying else axes.bar)(places, row, thickness * 0.92, color=colour)
    if lying:
        axes.set_yticks(range(len(labels)), labels)
        axes.set_ylim(-0.6, len(labels) - 0.4)
        axes.grid(axis="y", visible=False)
    else:
        axes.set_xticks(range(len(labels)), labels)
        axes.grid(axis="x", visible=False)


def _shares(counts: dict[Any, int], total: int) -> dict[Any, float]:
    """The counts as percentages."""
    return {name: 100 * count / (total or 1) for name, count in counts.items()}


def _chapter_label(roman: str) -> str:
    return UNKNOWN_CHAPTER if roman == UNKNOWN_CHAPTER else f"{_CHAPTER_NAMES.get(roman, '')} ({roman})".strip()


def _printable(label: str) -> str:
    """The label without control characters, which no SVG may hold."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in label)


def _shortened(label: str) -> str:
    label = _printable(label)
    return label if len(label) <= _LABEL_LENGTH else label[: _LABEL_LENGTH - 1].rstrip(" ,") + "…"
