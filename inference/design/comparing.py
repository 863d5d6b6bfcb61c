"""What a regression would know under each mechanism that could ask its record, at one ε: widths, bytes, δ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import copy, deepcopy
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from inference.design.simulated_posteriors import posterior_draws
from inference.design.simulation import simulate
from inference.models import model_for
from inference.models.base import Truth
from inference.units import has_levels
from ldp_client import mechanism_for
from ldp_client.documents.catalogue import MOST_PRODUCTS
from ldp_client.documents.errors import StudyError
from ldp_client.mechanisms.sampled_products import SampledProducts
from schemas import Question, Study

# Of mechanisms that need one, where the study's own states none.
DELTA = "1e-6"
COMPARED = ("sampled_products", "gaussian_statistics")
# Of so many features on, products with the response are worth drawing more often.
FEW_FEATURES, MANY_FEATURES = 3, 8


@dataclass(frozen=True)
class Offer:
    """One mechanism for a question: what it would send, and half widths of 90 % intervals by parameter.

    mechanism: its name, with what else it states. bytes: of a payload. delta: 0 where it has none.
    """

    mechanism: str
    bytes: int
    delta: float
    half_widths: Mapping[str, float]

    def to_document(self) -> dict[str, Any]:
        """This mechanism's entry in plan.json."""
        return {
            "mechanism": self.mechanism,
            "bytes": self.bytes,
            "delta": self.delta,
            "half_widths": dict(self.half_widths),
        }


def offers(
    study: Study, question_id: str, truths: Sequence[Truth], n: int, seed: int, draws: int, tails: Any
) -> tuple[Offer, ...]:
    """Compare the mechanisms for a record question, at its own ε and on the same truths; none for others.

    Args:
        study: the study.
        question_id: of a record that is asked of people.
        truths: of the simulated studies, one each; records are clipped as devices do.
        n: how many answers each study gets.
        seed: of everything that is drawn.
        draws: of each posterior.
        tails: the two quantiles that an interval lies between.
    """
    question = study.question(question_id)
    if question.ask != "record" or study.route is not None:
        return ()
    if question.model.name not in ("linear_regression", "logistic_regression"):
        return ()
    found = []
    for name, other in _others(study, question_id):
        mechanism = mechanism_for(other)
        generators = np.random.default_rng(seed).spawn(len(truths))
        models = [
            model_for(other, simulate(other, mechanism, truth, n, random))
            for truth, random in zip(truths, generators, strict=True)
        ]
        posterior = posterior_draws(models, seed, draws, 1)
        half = {
            parameter: float(np.median(np.diff(np.quantile(each, tails, axis=1), axis=0)) / 2)
            for parameter, each in posterior.items()
            if parameter.partition("[")[0] in ("intercept", "coefficient")
        }
        found.append(Offer(name, mechanism.payload_size, float(mechanism.privacy.delta), half))
    return tuple(found)


def _others(study: Study, question_id: str) -> list[tuple[str, Question]]:
    """The question under each mechanism, by what that is called: with its own norm, or 1, and √d.

    Of sampled products with one a report, with as many as the study has, and with as many as tell most; of
    these again with weights that suit its number of features, unless the study states its own.
    """
    document = deepcopy(study.document)
    (asked,) = (one for one in document["questions"] if one["id"] == question_id)
    document["questions"] = [asked]
    own, norm = asked["mechanism"], asked.pop("norm", None)
    asked["mechanism"] = {key: own[key] for key in ("epsilon", "weights") if key in own}
    asked["mechanism"]["name"] = COMPARED[0]
    found = [(COMPARED[0], Study(document).questions[0])]
    for each in sorted({own.get("products", 1), most_telling(found[0][1])} - {1}):
        asked["mechanism"]["products"] = each
        found.append((f"{COMPARED[0]}, {each} products a report", Study(document).questions[0]))
    suited = suited_weights(len(asked["features"]))
    if suited and "weights" not in own:
        asked["mechanism"]["weights"] = suited
        said = ", ".join(f"{kind} {weight}" for kind, weight in suited.items())
        found.append((f"{found[-1][0]}, weights {said}", Study(document).questions[0]))
    if has_levels(found[0][1]):
        # Nothing else takes levels.
        return found
    asked["mechanism"] = {
        "name": COMPARED[1],
        "epsilon": own["epsilon"],
        "delta": own.get("delta", DELTA),
    }
    for feature in asked["features"]:
        if feature.pop("ask", None):
            feature["bounds"] = ["0", "1"]
    asked["model"] = {"name": asked["model"]["name"]}
    norms = {norm or "1", f"{sqrt(len(asked['features'])):.4g}"}
    for each in sorted(norms, key=float):
        asked["norm"] = each
        found.append((f"{COMPARED[1]}, norm {each}", Study(document).questions[0]))
    return found


def suited_weights(features: int) -> dict[str, int]:
    """Weights that suit slopes of so many features, of those that benchmarks.sampled_products tries."""
    if features < FEW_FEATURES:
        return {}
    return {"response": 16, "means": 4} if features >= MANY_FEATURES else {"response": 4}


def most_telling(question: Question) -> int:
    """How many products a report should have: a moment's sd goes as 1 / (gain √products)."""
    asked, found = copy(question), {}
    asked.mechanism = copy(question.mechanism)
    for products in range(1, MOST_PRODUCTS + 1):
        asked.mechanism.products = products
        # Beyond them there are no more.
        with suppress(StudyError):
            found[products] = float(SampledProducts(asked).gain) * sqrt(products)
    return max(found, key=lambda products: found[products])


def offer_lines(question: str, found: Sequence[Offer]) -> list[str]:
    """A line for each mechanism: its slopes' half widths, bytes and δ; none where nothing was compared."""
    if not found:
        return []
    slopes = [name for name in found[0].half_widths if name.startswith("coefficient")]
    narrowest = min(found, key=lambda one: float(np.mean([one.half_widths[name] for name in slopes])))
    lines = [f"{question}: ± of slopes by mechanism, at the study's epsilon, from the most devices"]
    for one in found:
        widths = ", ".join(f"{name} {one.half_widths[name]:.3g}" for name in slopes)
        delta = f", delta {one.delta:.1g}" if one.delta else ""
        best = " (narrowest)" if one is narrowest else ""
        lines.append(f"  {one.mechanism}: {widths}; {one.bytes} bytes{delta}{best}")
    lines.append("  (widths do not show what clipping to a norm does to slopes: √d clips none)")
    return lines
