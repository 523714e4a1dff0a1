"""``python -m firnline``."""

import sys

from firnline.cli.program import main

if __name__ == "__main__":
    sys.exit(main())
