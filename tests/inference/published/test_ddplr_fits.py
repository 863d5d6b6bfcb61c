"""`fit` with DDPLR's methods, from holders' tables to the posterior of a line in its own units."""

import numpy as np
import pytest

from inference.fitting import fit
from ldp_client.documents.errors import InputError
from schemas import Study
from tests.inference.simulation import collected
from tests.kit.errors import raises
from tests.studies import HOLDER, TABLE, document

RANDOM = np.random.default_rng(20261124)
STUDY = Study(document(TABLE, **HOLDER))


@pytest.fixture(scope="module")
def summary():
    """Three holders' tables with slopes −1.2 and −0.2."""
    tables = []
    for _ in range(3):
        t, v = RANDOM.uniform(0, 40, 4000), RANDOM.uniform(20, 80, 4000)
        pe = np.clip(480 - 1.2 * (t - 20) - 0.2 * (v - 50) + RANDOM.normal(0, 5, 4000), 420, 500)
        tables.append({"t": t, "v": v, "pe": pe})
    return collected(STUDY, tables)


@pytest.mark.slow
def test_fast_and_fixed_s_find_the_line(summary):
    fast = fit(STUDY, summary, method="bayes_fixeds_fast")["power"]
    chains = fit(STUDY, summary, method="mcmc_fixeds")["power"]
    for found in (fast, chains):
        assert found.draws["coefficient[t]"].mean() == pytest.approx(-1.2, abs=0.15)
        assert found.draws["coefficient[v]"].mean() == pytest.approx(-0.2, abs=0.15)
    # The residual sd mixes slowly under this method, and says so once in a while.
    assert all(value < 1.01 for name, value in chains.mixing.r_hat.items() if name != "sd")
    assert chains.mixing.r_hat["sd"] < 1.1
    assert fast.verdict.reasons == (
        "bayes_fixeds_fast does not estimate the residual sd: it takes a third of the response's bound",
    )


def test_method_unsuited_to_statistics_is_rejected(summary):
    with raises(InputError, "fit.method_statistics", "power: gibbs_ss_noisy"):
        fit(STUDY, summary, method="gibbs_ss_noisy")
