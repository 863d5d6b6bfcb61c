"""The peers' side: `PYTHON -m benchmarks.client_tasks.peers PEER:TASK`, in an environment of their own.

Each does the nearest thing that it has: OpenDP's unary encoding is the symmetric one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.client_tasks.timing import Task, main

Call = Callable[[], object]
CHOICES, NUMBERS, EPSILON = 1024, 65, 1.0
SCALE = 1 << 20
MANY = 2000


def _opendp() -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp


def opendp_rr16() -> tuple[Call, int]:
    dp = _opendp()
    release = dp.m.make_randomized_response([str(place) for place in range(16)], 0.15)
    return lambda: release("3"), 1


def opendp_unary() -> tuple[Call, int]:
    dp = _opendp()
    release = dp.m.make_randomized_response_bitvec(
        dp.bitvector_domain(max_weight=1), dp.discrete_distance(), f=0.75
    )
    answer = b"\x08" + bytes(CHOICES // 8 - 1)
    return lambda: release(answer), 1


def opendp_laplace() -> tuple[Call, int]:
    dp = _opendp()
    domain = dp.atom_domain(T=float, nan=False)
    release = dp.m.make_laplace(domain, dp.absolute_distance(T=float), scale=1.0)
    return lambda: release(0.3), 1


def opendp_gaussian() -> tuple[Call, int]:
    """Its integer form."""
    dp = _opendp()
    domain = dp.vector_domain(dp.atom_domain(T=int))
    release = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=float(SCALE))
    answer = list(range(NUMBERS))
    return lambda: release(answer), 1


def diffprivlib_laplace() -> tuple[Call, int]:
    from diffprivlib.mechanisms import Laplace

    mechanism = Laplace(epsilon=EPSILON, sensitivity=1)
    return lambda: mechanism.randomise(0.3), 1


def diffprivlib_gaussian() -> tuple[Call, int]:
    from diffprivlib.mechanisms import GaussianAnalytic

    mechanism = GaussianAnalytic(epsilon=EPSILON, delta=1e-6, sensitivity=1)
    return lambda: [mechanism.randomise(0.3) for _ in range(NUMBERS)], 1


def pure_ldp_rr16() -> tuple[Call, int]:
    from pure_ldp.frequency_oracles import DEClient

    client = DEClient(EPSILON, 16, index_mapper=lambda choice: choice)
    return lambda: client.privatise(3), 1


def pure_ldp_unary() -> tuple[Call, int]:
    from pure_ldp.frequency_oracles import UEClient

    client = UEClient(EPSILON, CHOICES, use_oue=True, index_mapper=lambda choice: choice)
    return lambda: client.privatise(3), 1


def multi_freq_rr16() -> tuple[Call, int]:
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client

    return lambda: GRR_Client(3, 16, EPSILON), 1


def multi_freq_unary() -> tuple[Call, int]:
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client

    return lambda: UE_Client(3, CHOICES, EPSILON, True), 1


def multi_freq_unary_many() -> tuple[Call, int]:
    """It has no batch form: its function is called for each answer."""
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client

    answers = [place % CHOICES for place in range(MANY)]
    return lambda: [UE_Client(answer, CHOICES, EPSILON, True) for answer in answers], MANY


TASKS: dict[str, Task] = {
    "opendp:rr16": opendp_rr16,
    "opendp:unary": opendp_unary,
    "opendp:laplace": opendp_laplace,
    "opendp:gaussian": opendp_gaussian,
    "diffprivlib:laplace": diffprivlib_laplace,
    "diffprivlib:gaussian": diffprivlib_gaussian,
    "pure-ldp:rr16": pure_ldp_rr16,
    "pure-ldp:unary": pure_ldp_unary,
    "multi-freq-ldpy:rr16": multi_freq_rr16,
    "multi-freq-ldpy:unary": multi_freq_unary,
    "multi-freq-ldpy:unary_many": multi_freq_unary_many,
}

if __name__ == "__main__":
    main(TASKS)
