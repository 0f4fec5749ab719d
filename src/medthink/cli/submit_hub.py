"""`medthink submit hub`: a run's result for its model's page on the hub."""

from pathlib import Path

import click

from medthink.cli.show import print_json, say


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("-o", "--out", required=True, type=click.Path(path_type=Path), metavar="FILE", help="The YAML to write.")
@click.option("--data", type=click.Path(path_type=Path), help="The benchmark, if it has moved.")
@click.option("--dataset", default=None, metavar="ID", help="The benchmark's name on the hub.")
@click.option("--revision", metavar="HASH", help="Its revision on the hub.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    run: Path, out: Path, data: Path | None, dataset: str | None, revision: str | None, as_json: bool
) -> None:  # fmt: skip
    """Write RUN's accuracy as an .eval_results YAML file and print how to upload it.

    \b
    Example: medthink submit hub runs/qwen -o medthinkvqa.yaml
    """
    from medthink.board.hub import DATASET, write_hub_results
    from medthink.core.clock import now_utc
    from medthink.scoring.score import score_run

    scores = score_run(run, data)
    write_hub_results(scores, out, dataset=dataset or DATASET, date=now_utc()[:10], revision=revision)
    upload = f"hf upload USER/MODEL {out} .eval_results/{out.name}"
    if as_json:
        print_json({"file": str(out), "upload": upload})
        return
    say(f"Written to {out}. To show it on the model's page: {upload}")
