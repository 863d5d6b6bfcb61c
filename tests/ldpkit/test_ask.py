"""Studies built in Python are the documents that JSON has, and slips are said in the builder's words."""

from datetime import date
from decimal import Decimal

import pytest

import ldpkit
from ldp_client.documents.errors import InputError
from ldp_client.explain import describe
from ldpkit import ask
from schemas import Study
from tests import studies
from tests.kit.errors import raises

AGE, YEARS = (ask.feature(one["id"], *one["bounds"]) for one in studies.FEATURES)


def test_built_study_equals_the_document():
    built = ldpkit.study(
        "survey",
        "A survey",
        [
            ask.yes_no("ever", epsilon=1),
            ask.choice("colour", studies.ONE_OF["choices"], epsilon="1"),
            ask.number("age", 15, Decimal("45"), epsilon=1.0, model="normal"),
        ],
        version=2,
        purpose="To know",
        closes=date(2026, 12, 31),
        public=[
            ask.public("region", ["north", "south"]),
            ask.public("born", low=1940, high=2010, by_ticket=True),
        ],
    )
    questions = (studies.YES_NO, studies.ONE_OF, studies.AGE)
    same = studies.document(*questions, version=2, purpose="To know", closes="2026-12-31")
    same["public"] = [
        {"id": "region", "choices": ["north", "south"]},
        {"id": "born", "bounds": ["1940", "2010"], "step": "1", "source": "ticket"},
    ]
    assert built.to_json() == Study(same).to_json()
    assert built.digest == Study(same).digest


def test_every_built_record_kind_equals_the_document():
    response = studies.LINEAR["response"]
    built = ask.regression(
        "rating",
        [AGE, YEARS],
        ask.feature(response["id"], *response["bounds"]),
        epsilon=1,
        mechanism={"name": "gaussian_statistics", "delta": "1e-6"},
        norm=studies.LINEAR["norm"],
    )
    assert built == {**studies.LINEAR, "mechanism": studies.GAUSSIAN}
    levels = [
        ask.feature("smokes"),
        ask.feature("job", choices=["a", "b"]),
        ask.feature("age", 18, 90, cuts=[40, 65]),
    ]
    chance = ask.regression("ill", levels, ask.feature("ill"), epsilon=2)
    assert chance["features"][1] == {"id": "job", "ask": "choice", "choices": ["a", "b"]}
    assert chance["features"][2] == {"id": "age", "bounds": ["18", "90"], "cuts": ["40", "65"]}
    assert ldpkit.study("s", "S", chance).questions[0].mechanism.name == "sampled_products"


def test_numbers_are_written_as_they_were_meant():
    prior = {"mean": {"distribution": "normal", "loc": 0.5, "scale": 1.5}}
    found = ask.number("x", 0.1, 1e-7 + 2, epsilon=0.30, prior=prior, model="normal")
    assert found["bounds"] == ["0.1", "2.0000001"]
    assert found["mechanism"]["epsilon"] == "0.3"
    assert found["model"]["prior"]["mean"] == {"distribution": "normal", "loc": "0.5", "scale": "1.5"}
    assert ask.number("x", 0, 1, epsilon=1e-6)["mechanism"]["epsilon"] == "0.000001"
    assert "model" not in ask.number("x", 0, 1, epsilon=1)


def test_choice_gets_the_best_mechanism_for_its_size():
    # 3e + 2 is 10.15.
    assert ask.choice("c", 10, epsilon=1)["mechanism"]["name"] == "randomized_response"
    assert ask.choice("c", 11, epsilon=1)["mechanism"]["name"] == "subset_selection"
    assert ask.choice("c", 11, epsilon=1, mechanism="olh")["mechanism"]["name"] == "olh"
    kept = {"name": "memoized", "of": "sue", "instantaneous_epsilon": 0.5}
    assert ask.choice("c", 3, epsilon=1, mechanism=kept)["mechanism"]["instantaneous_epsilon"] == "0.5"


# What builds, the code of the error, and what it names.
INVALID, UNLISTED = "builder.study_invalid", "builder.choices_not_a_list"
SLIPS = [
    *[
        (lambda question=question: ldpkit.study("s", "S", [question]), INVALID, facts)
        for question, *facts in (
            (ask.yes_no("ever", epsilon=100), "study('s'): question 'ever'.mechanism.epsilon: ", "64"),
            (ask.yes_no("ever", epsilon=float("nan")), "question 'ever'.mechanism.epsilon: "),
            (ask.choice("job", ["a", "b"], epsilon=1, mechanism="laplace"), "question 'job'.", "'laplace'"),
            (ask.number("a", 1, 9, epsilon=1, mechanism="gaussian"), "question 'a'.mechanism.delta: "),
        )
    ],
    (lambda: ask.choice("job", "a, b", epsilon=1), UNLISTED, ("ask.choice('job'): ",)),
    (lambda: ask.choice("c", {"en": ["a", "b"]}, epsilon=1), UNLISTED, ("ask.choice('c'): ",)),
    (lambda: ask.feature("age", 18), "builder.feature_choices_or_bounds", ("ask.feature('age'): ",)),
    (lambda: ask.feature("ill", unit="years"), "builder.unit_without_number", ()),
    (lambda: ask.public("age"), "builder.public_choices_or_bounds", ("ask.public('age'): ",)),
    (lambda: ask.choice("s", {"never", "always"}, epsilon=1), UNLISTED, ()),
    (lambda: ask.section("Which?", "asa", any_of=True), "builder.section_not_a_list", ()),
    (lambda: ask.any_of(["Aspirin"], epsilon=1), "builder.boxes_not_a_mapping", ()),
    (lambda: ldpkit.study("s", [ask.yes_no("a", epsilon=1)], "S"), "builder.arguments_swapped", ()),
    (lambda: ldpkit.study("s", "S", []), "builder.study_invalid", ("study('s'): questions: ",)),
    (
        lambda: ldpkit.study("s", "S", ask.yes_no("a", epsilon=1), retention=0),
        "builder.study_invalid",
        ("retention",),
    ),
]


@pytest.mark.parametrize(("build", "code", "facts"), SLIPS)
def test_mistakes_are_reported_in_the_builders_terms(build, code, facts):
    with raises(InputError, code, *facts) as refused:
        build()
    assert "questions[0]" not in str(refused.value)


COIN = {"name": "randomized_response", "epsilon": "3"}
PRODUCTS = {"name": "sampled_products", "epsilon": "1", "products": 4}


@pytest.mark.attack(2)
def test_contradicting_settings_are_rejected():
    """State one epsilon in the question and another in its mechanism, so that people lose more."""
    with raises(InputError, "builder.mechanism_twice"):
        ask.choice("a", ["x", "y"], epsilon=1, mechanism=COIN)
    with raises(InputError, "builder.mechanism_twice"):
        ask.regression("a", [AGE], YEARS, epsilon=2, mechanism=PRODUCTS)


def test_builders_support_several_languages():
    both = {"en": "pear", "de": "Birne"}
    fruit = ask.choice("fruit", ["kiwi", both], epsilon=1, text={"en": "Which?", "de": "Welches?"})
    built = ask.study("fruit", {"en": "Fruit", "de": "Obst"}, [fruit], languages=["en", "de"])
    assert built.title == "Fruit"
    assert built.questions[0].choices == ("kiwi", "pear")
    assert built.shown_in("de").questions[0].choices == ("kiwi", "Birne")
    with raises(InputError, "builder.study_invalid", "languages"):
        ask.study("fruit", "Fruit", [fruit])
    with raises(InputError, "builder.study_invalid", "question 'ever'.text"):
        asked = ask.yes_no("ever", epsilon=1, text={"en": "Ever?", "english": "Ever?"})
        ask.study("ever", {"en": "Ever"}, [asked], languages=["en"])


def test_sections_and_lists_of_boxes_are_built_and_described():
    pills = ask.any_of({"asa": "Aspirin", "ibu": "Ibuprofen"}, epsilon=1)
    hours = ask.number("hours", 0, 24, epsilon=1, unit="hours")
    sections = [ask.section("Sleep", [hours]), ask.section("Which of these?", pills, any_of=True)]
    built = ask.study("health", "Health", [hours, *pills], sections=sections)
    assert [(one.questions, one.any_of) for one in built.sections] == [
        (("hours",), False),
        (("asa", "ibu"), True),
    ]
    assert float(built.epsilon) == pytest.approx(3, abs=1e-6)
    said = describe(built)
    assert "  answers: from 0 to 24 (hours)" in said
    assert (
        "  Which of these? (a list of boxes, of which people tick any; together epsilon 2): asa, ibu" in said
    )
    for wrong, facts in (
        ([ask.section("Which?", ["hours"], any_of=True)], ("must be a yes/no that is asked once",)),
        ([ask.section("All", ["hours"])], ("sections: ", "'asa'")),
        ([ask.section("All", ["hours", "asa", "ibu", "age"])], ("sections[0].questions[3]: ", "'age'")),
        (["hours", "asa"], ("sections[0]: ",)),
    ):
        with raises(InputError, "builder.study_invalid", *facts):
            ask.study("health", "Health", [hours, *pills], sections=wrong)
