"""Run the command ``attdyn`` by ``python -m dynamics``."""

import sys

from dynamics.cli import main

if __name__ == "__main__":
    sys.exit(main())
