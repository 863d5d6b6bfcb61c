"""(By mistake) a cut lies between two grid points of the bounds: answers below it are counted above it.

Defence: The device: compares the answer itself with each cut.
"""

import json
import math
import subprocess

import numpy as np
import pytest

from ldp_client import mechanism_for
from ldp_client.bulk.quantising import quantise_many
from ldp_client.core.quantise import UNIT
from schemas import Study
from tests import studies
from tests.kit.programs import need
from tests.portable.platforms import JAVASCRIPT
from tests.portable.vector_records import LOGISTIC

CUTS = ["1", "1.5", "2", "2000000", "9999999.5"]
INCOME = {"id": "income", "bounds": ["0", "10000000"], "cuts": CUTS}
STUDY = Study(studies.document({**studies.PRODUCTS, **LOGISTIC, "features": [INCOME]}))
MECHANISM = mechanism_for(STUDY.questions[0])
EDGES = [float(cut) for cut in CUTS]
ANSWERS = [-1e300, 0.0, 9999999.0, 1e7, 1e300, *EDGES, *[math.nextafter(edge, 0) for edge in EDGES]]
# A cut is of the bin above it.
EXPECTED = [[UNIT if answer >= edge else -UNIT for edge in EDGES] for answer in ANSWERS]

PROGRAM = f"""
import {{ readFileSync }} from "node:fs";
const {{ mechanismFor, parseStudy }} = await import("{JAVASCRIPT / "index.js"}");
const {{ study, answers }} = JSON.parse(readFileSync(0, "utf8"));
const mechanism = mechanismFor((await parseStudy(study)).questions[0]);
console.log(JSON.stringify(answers.map((income) => mechanism.quantise({{ income, rate: true }}))));
"""


def one_by_one():
    return [MECHANISM.quantise({"income": answer, "rate": True}) for answer in ANSWERS]


def in_bulk():
    return quantise_many(MECHANISM, {"income": np.asarray(ANSWERS), "rate": np.ones(len(ANSWERS), bool)})


def in_javascript():
    need("node")
    command = ["node", "--input-type=module", "-e", PROGRAM]
    task = json.dumps({"study": STUDY.to_json(), "answers": ANSWERS})
    return json.loads(subprocess.run(command, input=task, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("path", [one_by_one, in_bulk, in_javascript])
def test_answer_equal_to_a_cut_falls_into_the_bin_above(path):
    assert [list(vector[1:-1]) for vector in path()] == EXPECTED


def test_whole_number_above_float_range_falls_into_the_outer_bin():
    for answer, sign in ((10**400, UNIT), (-(10**400), -UNIT)):
        assert set(MECHANISM.quantise({"income": answer, "rate": True})[1:-1]) == {sign}
