"""References in these tests are computed to 900 bits, whichever of them run."""

import mpmath

mpmath.mp.prec = 900
