"""Posteriors made by hand, for tests of what is said, drawn or calculated of one."""

from __future__ import annotations

import numpy as np

from inference import Posterior
from inference.results.diagnostics import Mixing, diagnose
from inference.results.verdict import INFORMATIVENESS, Finding

SHAPE = (4, 1000)
NOTHING = (Finding(INFORMATIVENESS, "the noise drowns the signal"),)


def reasons(posterior, part):
    """What the checks of a part found against any quantity."""
    return [one.text for one in posterior.verdict.against if one.part == part]


def made(
    question="colour",
    names=("p[<b>red</b>]", "p[blue/green]"),
    seed=0,
    findings=(),
    study_digest="digest",
    **more,
):
    random = np.random.default_rng(seed)
    first = random.beta(30, 70, SHAPE)
    draws = dict(zip(names, (first, 1 - first), strict=False)) | more.pop("others", {})
    one = dict.fromkeys(draws, 1.0)
    mixing = Mixing(one, dict.fromkeys(draws, 4000.0), dict.fromkeys(draws, 4000.0))
    found = diagnose(draws, np.zeros(SHAPE, bool), findings, found=mixing)
    prior = {name: random.uniform(size=1000) for name in draws}
    return Posterior(
        question, "multinomial", 100, draws, one, found, study_digest, 1, prior_draws=prior, **more
    )
