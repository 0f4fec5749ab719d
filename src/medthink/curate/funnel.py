"""The funnel figure: how many cases reached each stage, and what happened to them."""

from collections.abc import Sequence
from pathlib import Path

from medthink.cases.figure import COLOURS, INK, STYLE, save_figure
from medthink.curate.work import StageSummary

_KINDS = (("passed on", COLOURS[0]), ("undecided", COLOURS[1]), ("out", COLOURS[5]))


def draw_funnel(stages: Sequence[StageSummary], path: Path) -> None:
    """One bar per stage, from first to last; the suffix chooses SVG, PDF or PNG."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6.4, 0.9 + 0.34 * len(stages)), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots()
        rows = range(len(stages))
        left = [0] * len(stages)
        for kind, colour in _KINDS:
            widths = [_count(one, kind) for one in stages]
            axes.barh(rows, widths, 0.72, left=left, color=colour, label=kind)
            left = [before + width for before, width in zip(left, widths, strict=True)]
        for row, one in enumerate(stages):
            axes.text(left[row], row, f"  {_words(one)}", va="center", ha="left", fontsize=6.5, color=INK)
        axes.set_yticks(rows, [one.stage for one in stages])
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        axes.tick_params(length=0)
        axes.set_xlim(0, max([*left, 1]) * 1.45)
        axes.set_xlabel("cases")
        figure.legend(loc="outside upper left", ncols=len(_KINDS))
        save_figure(figure, path)


def _count(one: StageSummary, kind: str) -> int:
    counts = one.counts
    return {"passed on": counts.passed, "undecided": counts.undecided, "out": counts.out}[kind]


def _words(one: StageSummary) -> str:
    counts = one.counts
    gone = [f"−{counts.out:,}"] if counts.out else []
    open_ = [f"{counts.undecided:,} undecided"] if counts.undecided else []
    return ", ".join([f"{counts.passed:,}", *gone, *open_])
