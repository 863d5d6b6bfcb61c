"""A program seeds `random`, so that its devices draw the same pauses and turns."""

import random

from ldp_client.device.http import backoff


def test_backoff_pauses_differ_despite_seed():
    drawn = set()
    for _ in range(3):
        random.seed(1)
        drawn.add(backoff(1))
    assert len(drawn) == 3
