"""Run the command as `python -m ldpkit`, if its script is not on the path."""

import sys

from ldpkit.cli import main

sys.exit(main())
