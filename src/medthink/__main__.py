"""The start of `medthink`, and of `python -m medthink`."""

import sys


def main() -> None:
    """Run the command line; Ctrl-C while it is still being imported is said in a word, as later."""
    try:
        from medthink.cli import main as run

        run()
    except KeyboardInterrupt:
        if sys.stderr is not None:
            sys.stderr.write("medthink: interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
