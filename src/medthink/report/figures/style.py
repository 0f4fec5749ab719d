"""The style of all figures, and writing them to a file or the page; same numbers, same bytes."""

import io
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from medthink.core.files import write_atomic
from medthink.core.markup import Markup, Table, fold_section, joined, tag
from medthink.report.tables import table_markup

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette with a darker yellow: distinguishable with every common colour blindness.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5c9e", "#8a8a2e")
# Each series also has a shape, for readers and printers without colour.
MARKS = ("o", "s", "^", "D", "v", "P", "X", "p")
INK, SOFT, LINE = "#24292f", "#66707b", "#d9dde2"
# On the page each colour is a variable, so that a dark page has light ink and lighter colours.
_VARIABLES = {
    **{colour: f"var(--series-{number})" for number, colour in enumerate(COLOURS)},
    INK: "var(--ink)",
    SOFT: "var(--soft)",
    LINE: "var(--line)",
}
_STYLE: dict[str, Any] = {
    "svg.hashsalt": "medthink",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    # A model may be named $x$: names are never parsed as mathematics.
    "text.parse_math": False,
    "text.color": INK,
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 8,
    "axes.labelcolor": SOFT,
    "axes.edgecolor": SOFT,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "savefig.facecolor": "none",
    "figure.facecolor": "none",
    "axes.facecolor": "none",
}
_METADATA: dict[str, dict[str, None]] = {
    ".svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    ".png": {"Software": None},
}
_LINE_LENGTH = 24


class FigureSpec(NamedTuple):
    """A figure before it is drawn: title, caption, drawing function, size (inches), and the numbers behind it."""

    key: str
    title: str
    message: str
    draw: "Callable[[Figure], None]"
    height: float
    table: Table
    width: float = 4.5


def draw_markup(drawing: FigureSpec, *, prefix: str) -> Markup:
    """The drawing as a figure of the page: title, picture, caption, numbers."""
    name = f"{prefix}-{drawing.key}"
    svg = _inline(_render(drawing, ".svg").decode(), name, drawing)
    return tag("figure", tag("h4", drawing.title), svg, tag("figcaption", drawing.message), id=name)


def figure_markup(drawing: FigureSpec, *, prefix: str) -> Markup:
    """The drawing in its frame, with its numbers in a fold."""
    numbers = fold_section("Numbers", table_markup(drawing.table, name=f"{drawing.title}: numbers"))
    return tag("div", draw_markup(drawing, prefix=prefix), numbers, class_="figure")


def save_drawing(drawing: FigureSpec, path: Path) -> None:
    """Write the drawing; the suffix chooses SVG, PDF or PNG."""
    write_atomic(path, [_render(drawing, path.suffix)])


def _render(drawing: FigureSpec, suffix: str) -> bytes:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with _styled():
        figure = Figure(figsize=(drawing.width, drawing.height), layout="constrained")
        FigureCanvasAgg(figure)
        drawing.draw(figure)
        stream = io.BytesIO()
        ground = "none" if suffix == ".svg" else "white"
        figure.savefig(stream, format=suffix[1:], dpi=300, metadata=_METADATA[suffix], facecolor=ground)
    return stream.getvalue()


@contextmanager
def _styled() -> Iterator[None]:
    import matplotlib as mpl

    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        # A name in a script that the font lacks is drawn by the reader's own font.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        yield


def _inline(svg: str, name: str, drawing: FigureSpec) -> Markup:
    """The SVG for use inside HTML: labelled for screen readers, colours by variable, unique ids, no namespace."""
    body = svg[svg.index("<svg") :]
    box = re.search(r'viewBox="([\d. ]+)"', body)
    assert box is not None  # matplotlib always writes one
    content = body[body.index(">") + 1 : body.rindex("</svg>")]
    content = _own_ids(content, name).replace("xlink:href", "href")
    for colour, variable in _VARIABLES.items():
        content = content.replace(colour, variable)
    words = joined((tag("title", drawing.title, id=f"{name}-title"), tag("desc", drawing.message, id=f"{name}-desc")))
    return Markup(
        f'<svg viewBox="{box[1]}" role="img" aria-labelledby="{name}-title {name}-desc">{words}{content}</svg>'
    )


def _own_ids(content: str, name: str) -> str:
    """Only ids that are referenced are kept, prefixed with the figure's name, so that each id is unique on the page."""
    used = set(re.findall(r'(?:url\(|href=")#([\w.-]+)', content))
    content = re.sub(r' id="([\w.-]+)"', lambda m: f' id="{name}-{m[1]}"' if m[1] in used else "", content)
    return re.sub(r'(url\(|href=")#', rf"\1#{name}-", content)


def wrapped(label: str) -> str:
    """A run's label on two lines if it is long, broken between its parts."""
    if len(label) <= _LINE_LENGTH or " · " not in label:
        return label
    parts = label.split(" · ")
    return min(
        (" · ".join(parts[:at]) + "\n" + " · ".join(parts[at:]) for at in range(1, len(parts))),
        key=lambda lines: max(map(len, lines.split("\n"))),
    )


def log_axis(axes: "Axes", values: Sequence[float], write: Callable[[float], str]) -> None:
    """Show the horizontal axis in powers of ten around these values, written this way."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.set_xscale("log")
    axes.set_xlim(min(values) / 1.6, max(values) * 1.6)
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: write(value)))
    axes.xaxis.set_minor_locator(NullLocator())


def percent_axis(axes: "Axes", *, along: str) -> None:
    """Show an axis of shares as percentages, from zero."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis = axes.xaxis if along == "x" else axes.yaxis
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value * 100:.0f}"))
    axis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))
