"""References in these tests are computed to 900 bits, whichever of them run; a collector of devices."""

import mpmath

from tests.ldp_client import devices

mpmath.mp.prec = 900
server = devices.server
