"""State an interaction that no likelihood reads, or ship software that tells interactions as they are.

Defence: Every device and the collector refuse the study; the repository's tests hold the products of
interactions to the law of all others.
"""

import pytest

from ldp_client.audit.answers import random_answers
from ldp_client.core.randomness import urandom
from ldp_client.documents.errors import StudyError
from ldp_client.mechanisms import mechanism_for
from ldp_client.mechanisms.sampled_products import SampledProducts
from schemas import Study
from tests import studies
from tests.privacy.checks.products import product_checks

AGE = {"id": "age", "bounds": ["18", "90"], "cuts": ["30", "60"]}
YES_NO = [{"id": name, "ask": "yes_no"} for name in ("sex", "works")]
CROSSED = {**studies.PRODUCTS, "features": [AGE, *YES_NO], "interactions": [["sex", "age"], ["sex", "works"]]}
QUESTION = Study(studies.document(CROSSED)).questions[0]
NUMBER = {key: value for key, value in AGE.items() if key != "cuts"}
SAMPLES = 3000


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ({"interactions": [["sex", "sex"]]}, "interactions[0][1]", "'sex' stands twice"),
        (
            {"interactions": [["sex", "age"], ["age", "sex"]]},
            "interactions[1]",
            "'age' and 'sex' stand twice",
        ),
        ({"interactions": [["sex", "rate"]]}, "interactions[0][1]", "'rate' is no feature of this question"),
        ({"interactions": [["sex", "age", "works"]]}, "interactions[0]", "must have 2 to 2 entries, has 3"),
        ({"features": [NUMBER, *YES_NO]}, "features[0].cuts", "are missing: .* interactions"),
        (
            {"mechanism": {"name": "sampled_products", "epsilon": "1", "interactions": 1}},
            "mechanism.interactions",
            "unknown field",
        ),
        (
            {**studies.LINEAR, "interactions": [["age", "years"]]},
            "interactions",
            "for 'sampled_products' alone",
        ),
    ],
)
def test_the_study_is_refused(changes, field, says):
    with pytest.raises(StudyError, match=says) as caught:
        Study(studies.document({**CROSSED, **changes}))
    assert caught.value.field == f"questions[0].{field}"


class Truthful(SampledProducts):
    """No coin where the product is an interaction's."""

    def randomise(self, quantised, random):
        told = super().randomise(quantised, random)[0]
        i, j = self.coordinates[told // 2]
        if self.owners[i] > self.owners[-1]:
            told = 2 * (told // 2) + (quantised[i] * quantised[j] > 0)
        return bytes([told])


class Rare(SampledProducts):
    """Never the product of the last interaction, but the one before it."""

    def randomise(self, quantised, random):
        told = super().randomise(quantised, random)[0]
        return bytes([told - 2 if told // 2 == len(self.coordinates) - 2 else told])


def failed(kind):
    mechanism = kind(QUESTION)
    records = [mechanism.quantise(answer) for answer in random_answers(QUESTION, SAMPLES)]
    payloads = [mechanism.randomise(record, urandom) for record in records]
    return {check.name for check in product_checks(mechanism, records, payloads) if not check.passed}


def test_the_audit_finds_it():
    assert failed(SampledProducts) == set()
    assert "signs follow their law" in failed(Truthful)
    assert "every product comes as often as belongs" in failed(Rare)


def test_an_interaction_costs_no_more_than_is_stated():
    plain = {key: value for key, value in CROSSED.items() if key != "interactions"}
    without = mechanism_for(Study(studies.document(plain)).questions[0])
    assert mechanism_for(QUESTION).privacy.epsilon == without.privacy.epsilon
