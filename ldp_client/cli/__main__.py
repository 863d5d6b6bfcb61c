"""Run the command as `python -m ldp_client.cli`, if its script is not on the path."""

import sys

from ldp_client.cli import main

sys.exit(main())
