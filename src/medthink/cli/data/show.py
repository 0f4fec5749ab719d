"""`medthink data show` and `medthink data stats`: one case, and the whole benchmark in figures."""

from pathlib import Path

import click

from medthink.cli import output
from medthink.cli.flags import figure_flag, html_flag, json_flag, quiet_flag
from medthink.core.files import write_atomic


@click.command("show")
@click.argument("path", metavar="DATA", type=click.Path())
@click.argument("case_number", metavar="CASE", type=int)
@click.option("--reveal", is_flag=True, help="Show the withheld parts too: captions, findings, answer, discussion.")
@html_flag
@json_flag
def data_show(path: str, case_number: int, reveal: bool, page: Path | None, as_json: bool) -> None:
    """Show one case, by its number: history, images, options.

    The withheld parts are printed only with --reveal; on a page they are folded.

    Example: medthink data show bench/ 12 --html case.html
    """
    from medthink.cases.benchmark import Benchmark
    from medthink.cli.data.printing import case_as_json, print_case

    case = Benchmark.open(path).case(case_number)
    if page is not None:
        from medthink.web.cases.file import case_file

        write_atomic(page, [case_file(case, reveal=reveal).encode()])
        output.print_line(f"Page: {page}")
        return
    if as_json:
        output.print_json(case_as_json(case, reveal=reveal))
        return
    print_case(case, reveal=reveal)


_FIGURES = (".svg", ".pdf", ".png")


@click.command("stats")
@click.argument("path", metavar="DATA", type=click.Path())
@figure_flag
@quiet_flag
@json_flag
def data_stats(path: str, as_json: bool, figure: Path | None) -> None:
    """Describe a benchmark: the summary table of its card, and the distributions behind it.

    Example: medthink data stats bench/ --figure stats.svg
    """
    if figure is not None and figure.suffix not in _FIGURES:
        raise click.BadParameter(f"must end in {', '.join(_FIGURES)}", param_hint="--figure")
    from medthink.cases.benchmark import Benchmark
    from medthink.cases.statistics import compute_statistics
    from medthink.cli.data.printing import print_statistics, statistics_as_json

    benchmark = Benchmark.open(path)
    with output.progress() as bar:
        task = bar.add_task("Counting cases", total=len(benchmark))
        statistics = compute_statistics(benchmark, advance=lambda: bar.advance(task))
    if figure is not None:
        from medthink.cases.statistics_figure import draw_statistics

        draw_statistics(statistics, figure)
    if as_json:
        output.print_json(statistics_as_json(statistics))
        return
    print_statistics(statistics)
    if figure is not None:
        output.print_line(f"\nFigure: {figure}")
