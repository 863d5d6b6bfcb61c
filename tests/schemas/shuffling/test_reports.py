"""Published figures, limits, and the bound of a study's reports; what `check` says of it."""

import random
from math import log, nextafter

import pytest

from ldp_client.documents.errors import InputError
from schemas import Study
from schemas.shuffling.reports import shuffled_epsilon, shuffled_privacy
from tests import studies
from tests.kit.commands import check
from tests.kit.errors import raises
from tests.kit.work import counted
from tests.schemas.channels import tokens

REGION = {"id": "region", "choices": ["north", "south"]}


def test_bound_matches_published_tight_accountants():
    """At n = 100,000 and ε₀ = 4 upper and lower bounds meet at 0.118 (δ = 1e-6)."""
    assert 0.118 < shuffled_epsilon(4, 100_000) < 0.1186
    assert shuffled_epsilon("4", 1000) == pytest.approx(1.85, abs=0.01)


@pytest.mark.slow
def test_hundred_million_reports_take_seconds():
    """Four times the calls that it takes, two seconds'."""
    with counted() as calls:
        assert shuffled_epsilon(4, 10**8) < 0.003
    assert calls() < 5_000_000


@pytest.mark.parametrize("delta", ["1e-6", "0.1", "0.9"])
@pytest.mark.parametrize("own", [40, 64])
def test_very_large_epsilon_gets_no_amplification(own, delta):
    """1 − δ = e^(ε − ε₀), near enough, and in a fraction of a second."""
    with counted() as calls:
        assert shuffled_epsilon(own, 1000, delta) == pytest.approx(own + log(1 - float(delta)), abs=3e-6)
    assert calls() < 50_000


def test_bound_is_monotone_in_people_epsilon_and_delta():
    draw = random.Random(22)
    for _ in range(3):
        people, own = int(10 ** draw.uniform(0, 2)), draw.uniform(0.05, 6)
        delta = 10 ** draw.uniform(-9, -2)
        found = shuffled_epsilon(own, people, delta)
        assert found <= nextafter(own, 9)
        more = people + draw.randint(1, people)
        assert shuffled_epsilon(own, more, delta) <= found
        assert shuffled_epsilon(own * draw.uniform(0.9, 1), people, delta) <= found
        assert shuffled_epsilon(own, people, delta * draw.uniform(1, 3)) <= found


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("1", 0, "1e-6"), "set.people"),
        (("1", 10**13, "1e-6"), "set.people"),
        (("1", 10, "0"), "set.delta"),
        (("1", 10, "1"), "set.delta"),
        (("0", 10, "1e-6"), "set.epsilon"),
        (("nan", 10, "1e-6"), "set.decimal"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, said):
    with raises(InputError, said):
        shuffled_epsilon(*arguments)
    with raises(InputError, "set.people"):
        shuffled_privacy(study(), 0)


def study(*questions, **fields):
    return Study(studies.document(*(questions or [studies.YES_NO]), **fields))


def two(epsilon):
    return [{**studies.with_epsilon(studies.YES_NO, epsilon), "id": name} for name in ("one", "other")]


def test_report_epsilon_is_between_largest_answer_and_sum():
    both = shuffled_privacy(study(*two("1")), 500)
    assert shuffled_epsilon(1, 500) < both.epsilon < shuffled_epsilon(2, 500)
    drawn = shuffled_privacy(study(*two("1"), sample_one_question=True), 500)
    assert drawn.epsilon == pytest.approx(shuffled_epsilon(1, 500), abs=2e-6)
    assert drawn.device_epsilon == pytest.approx(1)


def test_report_hides_among_reports_with_the_same_public_values():
    asked = study(public=[REGION])
    even = shuffled_privacy(asked, 500)
    assert even.hidden_among == 250
    assert even.epsilon == shuffled_privacy(study(), 250).epsilon


def test_study_without_a_known_bound_is_rejected():
    with raises(InputError, "set.has_delta", "weight"):
        shuffled_privacy(study(studies.YES_NO, studies.NORMAL), 1000)
    with raises(InputError, "set.no_reports"):
        shuffled_privacy(Study(studies.document(studies.LAPLACE_TABLE, **studies.HOLDER)), 1000)


def test_every_pure_epsilon_question_has_a_bound():
    names, general = set(), shuffled_epsilon(1, 300)
    for question in [*studies.ALL, *studies.NEWER]:
        one, name = study(question), question["mechanism"]["name"]
        if float(one.delta) or one.questions[0].repeats or name in names:
            continue
        names.add(name)
        found = shuffled_privacy(one, 300)
        assert 0.999 < found.device_epsilon <= 1
        assert 0 < found.epsilon <= general < 0.5
    assert {"laplace", "oue", "sue", "olh", "hadamard", "sampled_products"} <= names


def test_huge_epsilon_gets_the_devices_epsilon():
    """e^ε and its square exceed the floating-point range."""
    asked = study(
        studies.with_epsilon(studies.NUMBER, "60"),
        *({**studies.with_epsilon(studies.YES_NO, "60"), "id": f"q{place}"} for place in range(11)),
    )
    with counted() as calls:
        found = shuffled_privacy(asked, 100_000)
    assert found.device_epsilon - 1 < found.epsilon <= found.device_epsilon
    # Four times those that it takes, a second's.
    assert calls() < 5_000_000


@pytest.mark.parametrize(
    ("parts", "adversary"),
    [
        (None, "no channel with batches"),
        ({}, "all through an independent relay (`Oblivious`) and without tickets"),
        ({"tickets": tokens()}, "all through an independent relay (`Oblivious`)."),
    ],
)
def test_study_check_prints_the_bound_and_its_adversary(tmp_path, capsys, parts, adversary):
    fields = {} if parts is None else {"channel": {"batches": {"hours": 24}, **parts}}
    asked = study(studies.with_epsilon(studies.YES_NO, "4"), **fields)
    assert check(tmp_path, asked, "--n", "1000") == 0
    said = capsys.readouterr().out
    assert "towards an observer of only the set of reports, in no order: epsilon 1.8" in said
    assert "nor towards relay and collector together" in said
    assert adversary in said
    assert check(tmp_path, study(public=[REGION]), "--n", "2000") == 0
    assert "may recognise that they took part" in capsys.readouterr().out
