"""Study documents that tests of all packages use."""

import copy
import json
from pathlib import Path

from ldp_client import mechanism_for
from schemas import Study

FEATURES = [{"id": "age", "bounds": ["17.5", "42"]}, {"id": "years", "bounds": ["0", "23"]}]
GAUSSIAN = {"name": "gaussian_statistics", "epsilon": "1", "delta": "1e-6"}

NUMBER = {
    "id": "hours",
    "ask": "number",
    "bounds": ["0", "12"],
    "mechanism": {"name": "laplace", "epsilon": "1"},
    "model": {"name": "exponential"},
}
AGE = {**NUMBER, "id": "age", "bounds": ["15", "45"], "model": {"name": "normal"}}
CHOICE = {
    "id": "occupation",
    "ask": "choice",
    "choices": ["student", "worker", "teacher"],
    "mechanism": {"name": "oue", "epsilon": "1"},
    "model": {"name": "multinomial"},
}
ONE_OF = {**CHOICE, "id": "colour", "mechanism": {"name": "randomized_response", "epsilon": "1"}}
YES_NO = {
    "id": "ever",
    "ask": "yes_no",
    "mechanism": {"name": "randomized_response", "epsilon": "1"},
    "model": {"name": "bernoulli"},
}
LINEAR = {
    "id": "rating",
    "ask": "record",
    "features": FEATURES,
    "norm": "1",
    "response": {"id": "rate", "bounds": ["1", "5"]},
    "mechanism": GAUSSIAN,
    "model": {"name": "linear_regression"},
}
LOGISTIC = {
    **LINEAR,
    "id": "risk",
    "response": {"id": "affair", "ask": "yes_no"},
    "model": {"name": "logistic_regression"},
}
NORMAL = {**AGE, "id": "weight", "mechanism": {"name": "gaussian", "epsilon": "1", "delta": "1e-6"}}
ALL = [NUMBER, AGE, CHOICE, ONE_OF, YES_NO, LINEAR, LOGISTIC]

ANSWERS = {
    "hours": 3.5,
    "age": 30,
    "occupation": "worker",
    "colour": "teacher",
    "ever": True,
    "rating": {"age": 30, "years": 4, "rate": 4},
    "risk": {"age": 30, "years": 4, "affair": False},
}
ASKER = {
    "owner": "One clinic",
    "contact": "study@example.org",
    "ethics": "Ethics board of one clinic, number 12",
    "consent": "I take part\nfreely.",
    "retention": {"days": 365},
}
KEPT = {"name": "memoized", "of": "randomized_response", "epsilon": "2", "instantaneous_epsilon": "1"}
MEMOIZED = {**YES_NO, "id": "habit", "mechanism": KEPT}
MEMOIZED_BITS = {**CHOICE, "id": "brand", "mechanism": {**KEPT, "of": "sue"}}
NOISY_RECORD = {"name": "gaussian_record", "epsilon": "1", "delta": "1e-6", "response_share": "0.25"}
RECORD = {**LINEAR, "id": "wage", "mechanism": NOISY_RECORD}
YES_NO_RECORD = {**LOGISTIC, "id": "chance", "mechanism": NOISY_RECORD}
PRODUCTS = {
    **{key: value for key, value in LINEAR.items() if key != "norm"},
    "id": "salary",
    "features": [FEATURES[0], {"id": "married", "ask": "yes_no"}],
    "mechanism": {"name": "sampled_products", "epsilon": "1"},
}
NEWER = [
    NORMAL,
    *[
        {**CHOICE, "id": name, "choices": {"count": 40}, "mechanism": {"name": name, "epsilon": "1"}}
        for name in ("sue", "subset_selection", "olh", "hadamard")
    ],
    MEMOIZED,
    MEMOIZED_BITS,
    RECORD,
    YES_NO_RECORD,
    PRODUCTS,
]
NEWER_ANSWERS = {
    "weight": 30,
    "sue": 7,
    "subset_selection": 7,
    "olh": 7,
    "hadamard": 7,
    "habit": "yes",
    "brand": "teacher",
    "wage": ANSWERS["rating"],
    "chance": ANSWERS["risk"],
    "salary": {"age": 30, "married": True, "rate": 4},
}

# A data holder's: one report of many records.
TABLE = {
    "id": "power",
    "ask": "table",
    "features": [{"id": "t", "bounds": ["0", "40"]}, {"id": "v", "bounds": ["20", "80"]}],
    "norm": "1",
    "response": {"id": "pe", "bounds": ["420", "500"]},
    "mechanism": {"name": "table_statistics", "epsilon": "1", "delta": "1e-6"},
    "model": {"name": "linear_regression"},
}
DDPLR_TABLE = {**TABLE, "id": "ddplr", "mechanism": {**TABLE["mechanism"], "name": "table_normal_equations"}}
LAPLACE_TABLE = {**TABLE, "id": "laplace", "mechanism": {"name": "table_statistics_laplace", "epsilon": "1"}}
TABLES = [TABLE, DDPLR_TABLE, LAPLACE_TABLE]
HOLDER = {"id": "plants", "respondent": "holder"}
ROWS = {"t": [10.0, 20.0, 35.0], "v": [40.0, 60.0, 70.0], "pe": [480.0, 450.0, 430.0]}


# In three languages, with public fields.
TRANSLATED = json.loads((Path(__file__).parent / "golden" / "studies" / "languages.json").read_text("utf-8"))


def document(*questions, **fields):
    """A study document with these questions (all kinds if none are given)."""
    head = {"format": "ldpkit.study/1", "id": "survey", "version": 1, "title": "A survey"}
    return copy.deepcopy({**head, "questions": list(questions or ALL), **fields})


def question_of(asked, **changes):
    """The question, with other fields, of a study that asks only this; a holder's for a table."""
    holder = HOLDER if asked["ask"] == "table" else {}
    return Study(document({**asked, **changes}, **holder)).questions[0]


def mechanism_of(asked, **changes):
    """The mechanism of a question, with other fields."""
    return mechanism_for(question_of(asked, **changes))


def answers_csv(people):
    """Return people's answers as a file for `ldpkit perturb`: each field of a record has a column."""
    rows = []
    for answers in people:
        rows.append({})
        for name, answer in answers.items():
            fields = answer if isinstance(answer, dict) else {"": answer}
            rows[-1] |= {f"{name}.{field}".rstrip("."): value for field, value in fields.items()}
    lines = [",".join(rows[0]), *(",".join(str(value) for value in row.values()) for row in rows)]
    return "".join(f"{line}\n" for line in lines)


def with_epsilon(question, epsilon):
    return {**question, "mechanism": {**question["mechanism"], "epsilon": epsilon}}


def choice_of(name, count=5, epsilon="1"):
    """A question with so many choices under a mechanism."""
    return {**CHOICE, "choices": {"count": count}, "mechanism": {"name": name, "epsilon": epsilon}}
