"""``python -m tests.chaos --seed N --slots 10000``"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from .play import play


def main() -> int:
    """Return 1 when anything is wrong; the history is kept then."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--slots", type=int, default=1000)
    parser.add_argument("--instances", type=int, default=3)
    parser.add_argument("--keep", action="store_true", help="keep the history in any case")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="cronlock-chaos-"))
    begun = time.monotonic()

    def tell(text: str) -> None:
        print(f"{time.monotonic() - begun:6.1f} s  {text}", flush=True)

    tell(f"seed {asked.seed}, {asked.slots} slots")
    report = play(folder, asked.seed, asked.slots, asked.instances, tell)
    print(report)
    if report.good and not asked.keep:
        shutil.rmtree(folder)
    else:
        print(f"the history is kept in {folder}")
    return 0 if report.good else 1


if __name__ == "__main__":
    sys.exit(main())
