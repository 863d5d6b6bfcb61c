"""State interactions of features with many levels, so that a small device lists a million pairs and stops.

Defence: The device: lists the products that are sent, and no other pair.
"""

import tracemalloc

from ldp_client.mechanisms import mechanism_for
from schemas import Study
from tests import studies

NAMES = ["a", "b", "c", "d"]
LEVELS = [f"level {number}" for number in range(16)]
PAIRS = [[one, other] for one in NAMES for other in NAMES if other < one]
QUESTION = {
    "id": "wide",
    "ask": "record",
    "features": [{"id": name, "ask": "choice", "choices": LEVELS} for name in NAMES],
    "response": {"id": "y", "ask": "yes_no"},
    "interactions": PAIRS,
    "mechanism": {"name": "sampled_products", "epsilon": "1"},
    "model": {"name": "logistic_regression"},
}


def test_no_pair_is_listed_that_is_not_sent():
    question = Study(studies.document(QUESTION)).questions[0]
    tracemalloc.start()
    mechanism = mechanism_for(question)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    entries, products = len(mechanism.owners), len(mechanism.coordinates)
    assert entries > 1400
    # A pair takes some 64 bytes, and of a million entries' pairs a few thousand are sent.
    assert peak < 600 * products < 64 * entries * entries / 30
