"""Run every benchmark in this folder, one after the other, each in a process of its own."""

import subprocess
import sys
from pathlib import Path


def main() -> int:
    """Run `bench_*.py`, or those whose names are given; the exit code says whether all ran."""
    wanted = sys.argv[1:]
    scripts = sorted(Path(__file__).parent.glob("bench_*.py"))
    chosen = [script for script in scripts if not wanted or script.stem.removeprefix("bench_") in wanted]
    codes = [subprocess.run([sys.executable, str(script)], check=False).returncode for script in chosen]
    return max(codes, default=0)


if __name__ == "__main__":
    sys.exit(main())
