"""``python -m dynamics`` is ``attdyn``."""

import sys

from dynamics.cli import main

if __name__ == "__main__":
    sys.exit(main())
