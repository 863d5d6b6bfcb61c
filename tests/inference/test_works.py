"""Batches of simulated studies: their numbers and progress do not depend on what ran before."""

from functools import partial

import numpy as np

from inference.design.calibration import generator_of
from inference.design.simulated_posteriors import batches_of
from inference.design.works import Work, run_works


class Sums:
    """Sums of a batch's own random numbers."""

    def __init__(self, seed):
        self.seed = seed

    def __call__(self, number, tell):
        tell(0.5)
        return {"sum": float(np.random.default_rng([self.seed, number]).normal(size=100).sum())}


def work_of(seed, items=9, size=1):
    return Work(partial(Sums, seed), items, "{} of nine", size)


def test_works_return_batches_and_report_progress():
    told = []
    found = run_works([work_of(1), work_of(2, items=4)], told.append)
    assert [len(parts) for parts in found] == [9, 4]
    assert found[0][:4] != found[1]
    assert found[1] == run_works([work_of(2, items=4)])[0]
    assert told[0] == "0 of nine"
    shares = [line.share for line in told]
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_last_batch_has_the_remaining_items():
    told = []
    (parts,) = run_works([work_of(1, items=9, size=4)], told.append)
    assert len(parts) == 3
    assert told[-1] == "9 of nine"


def test_each_study_has_its_own_generator():
    spawned = np.random.default_rng(7).spawn(3)
    assert [one.random() for one in spawned] == [generator_of(7, place).random() for place in range(3)]
    assert [list(places)[::49] for places in batches_of(101)] == [[0, 49], [50, 99], [100]]
