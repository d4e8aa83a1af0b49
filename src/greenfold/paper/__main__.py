"""`python -m greenfold.paper`: reproduce the paper from the command line."""

from __future__ import annotations

import argparse
import sys

from . import FIGURES, reproduce


def main(argv: list[str] | None = None) -> int:
    """Parse, call, print."""
    parser = argparse.ArgumentParser("python -m greenfold.paper", description=__doc__)
    parser.add_argument("names", nargs="+", choices=(*FIGURES, "all"), metavar="NAME",
                        help=f"{', '.join(FIGURES)}, or all")  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="a reduced version")
    parser.add_argument("--out", default="reproduction", help="folder for the files")
    parser.add_argument("--data-dir", help="folder of the data sets")
    parser.add_argument("--jobs", type=int, help="processes; all cores by default")
    given = parser.parse_args(argv)
    skipped = False
    try:
        for name in FIGURES:
            if name not in given.names and "all" not in given.names:
                continue
            for outcome in reproduce(
                name, given.out, given.quick, given.data_dir, given.jobs
            ):
                print(outcome, flush=True)
                skipped |= outcome.skipped is not None
    except KeyboardInterrupt:
        print("interrupted; the same command goes on where it stopped.", file=sys.stderr)
        return 130
    return 1 if skipped else 0


if __name__ == "__main__":
    sys.exit(main())
