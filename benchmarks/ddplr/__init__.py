"""DDPLR's experiments (Alparslan, Yıldırım, Birbil), with its constants and with right ones."""

import os

# LAPACK's threads cost small factorisations more than they gain, most of all on a machine with other work.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
