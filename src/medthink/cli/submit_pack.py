"""`medthink submit pack`: a run as a submission."""

from pathlib import Path

import click

from medthink.cli.show import print_json, say


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("-o", "--out", required=True, type=click.Path(path_type=Path), metavar="FILE", help="The file to write.")
@click.option("--data", type=click.Path(path_type=Path), help="The benchmark, if it has moved.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(run: Path, out: Path, data: Path | None, as_json: bool) -> None:
    """Write RUN as a submission with the traces that let a maintainer check it.

    The file holds letters, rationales, steps and every reply; nothing from the reference, and no paths or addresses.

    \b
    Example: medthink submit pack runs/qwen -o qwen.jsonl
    """
    from medthink.board.packing import pack_run

    lines = pack_run(run, out, data)
    if as_json:
        print_json({"file": str(out), "lines": lines})
        return
    say(f"{lines} lines written to {out}. Check it with: medthink submit check {out} --data DATA")
