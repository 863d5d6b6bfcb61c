"""Designs of surveys by dice: named designs match their papers, and invalid designs are rejected."""

import numpy as np
import pandas as pd
import pytest

from inference.analyses.design_file import Design, DesignError, read_design
from inference.analyses.survey import survey_of
from tests.inference.analyses.simulated import MATRIX, design
from tests.kit.errors import raises

LABELS = {"answers": ["no", "yes"], "reports": ["no", "yes"]}
FORCED = {**LABELS, "matrix": MATRIX}
NAMED = {"design": "forced", "yes": "1/6", "no": "1/6"}
KUK = {"design": "kuk", "yes": "0.8", "no": "0.3", "cards": "2"}
MIXED = {"a": NAMED, "b": {"matrix": MATRIX}}
# Numbers of each design, the unknown share if it has one, and P(report 1) at a share π of yes, by the papers.
PAPERS = [
    ("warner", {"p": "0.7"}, None, lambda share: 0.7 * share + 0.3 * (1 - share)),
    ("disguised", {"p": "0.8"}, None, lambda share: 0.8 * share + 0.2 * (1 - share)),
    ("forced", {"yes": "1/6", "no": "1/12"}, None, lambda share: 1 / 6 + 0.75 * share),
    ("unrelated", {"p": "0.6", "prevalence": "0.25"}, None, lambda share: 0.6 * share + 0.4 * 0.25),
    ("unrelated", {"p": "0.6"}, 0.2, lambda share: 0.6 * share + 0.4 * 0.2),
    ("crosswise", {"p": "0.18"}, None, lambda share: 0.18 * share + 0.82 * (1 - share)),
    ("triangular", {"p": "0.25"}, None, lambda share: share + (1 - share) * 0.25),
    ("kuk", {"yes": "0.8", "no": "0.3"}, None, lambda share: 0.8 * share + 0.3 * (1 - share)),
    ("mangat", {"p": "0.7"}, None, lambda share: share + (1 - share) * 0.3),
    ("stochastic_lie_detector", {"p": "0.7"}, 0.4, lambda share: 0.4 * share + 0.3 * (1 - share)),
    # Of those who do not cheat, p of the others and all with the trait say yes.
    ("cheater_detection", {"p": "0.2"}, 0.1, lambda share: 0.9 * (share + 0.2 * (1 - share))),
]


def column(**stated):
    return read_design(design(q=stated)).columns[0]


@pytest.mark.parametrize(("name", "numbers", "unknown", "of"), PAPERS)
def test_named_design_matches_its_paper(name, numbers, unknown, of):
    channel = column(design=name, **numbers).parts[0].channel
    no, yes = channel.mixed(channel.chances[:, 0], dict.fromkeys(channel.weights, unknown))
    for share in (0.0, 0.3, 1.0):
        assert no[1] * (1 - share) + yes[1] * share == pytest.approx(of(share), abs=1e-15)
    assert sum(no) == pytest.approx(1) == sum(yes)


def test_kuk_cards_are_binomial():
    kuk = column(design="kuk", yes="0.8", no="0.3", cards="3")
    assert kuk.reports == ("0", "1", "2", "3")
    assert kuk.parts[0].channel.chances[0, 0][1, 3] == pytest.approx(0.8**3)


BAD = [
    ({**FORCED, "matrix": [[0.5, 0.5], [0.1, 0.9]]}, "matrix[0][0]: must be a probability"),
    ({**FORCED, "matrix": [["0.5", "0.4"], ["0.1", "0.9"]]}, "matrix[0]: adds up to 0.9"),
    ({**FORCED, "matrix": [["0.5", "0.5"], ["0.5", "0.5"]]}, "every answer gives the same reports"),
    ({**FORCED, "matrix": [["1", "0"], ["1"]]}, "matrix[1]: must be as long"),
    ({**FORCED, "answers": ["a", "b", "c"]}, "answers: must have 2 entries"),
    ({**FORCED, "reports": ["1", " "]}, "reports[1]: must be a text"),
    ({**NAMED, "design": "warners"}, "design: 'warners' is unknown"),
    ({**NAMED, "yes": "1e-999999999"}, "yes: must be a probability"),
    ({**NAMED, "yes": "0.9"}, "yes and no add up to more than 1"),
    ({"design": "kuk", "yes": "0.8", "no": "0.3", "cards": "2.5"}, "cards: must be a whole number"),
    ({"matrices": [{"matrix": MATRIX}]}, "matrices[0].rows: is missing"),
    ({**NAMED, "denial": {"unknown": "no way"}}, "denial.unknown: must be letters"),
    ({**NAMED, "denial": {"unknown": "a"}, "random": {"unknown": "a"}}, "two unknown shares are called a"),
    (
        {**LABELS, "mixture": MIXED, "weights": {"a": "0.5", "b": "0.4"}},
        "weights: must be of a, b and add",
    ),
    ({**LABELS, "mixture": {**MIXED, "b": KUK}, "weights": "unknown"}, "as many answers and reports"),
    (
        {**LABELS, "mixture": MIXED, "weights": {"unknown": "a"}, "random": {"unknown": "a"}},
        "two unknown shares are called a",
    ),
    ("{", "not well-formed JSON"),
    (design(q=FORCED).replace("/1", "/2"), "format: must be"),
    (design(), "columns: must be an object"),
]


@pytest.mark.parametrize(("stated", "said"), BAD)
def test_invalid_design_is_rejected(stated, said):
    with raises(DesignError, ("design.invalid", said)):
        read_design(design(q=stated) if isinstance(stated, dict) else stated)


@pytest.mark.attack(17)
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"answers": ["yes", "no"], "reports": ["no", "yes"]}, "answers: must list no first"),
        ({"reports": ["yes", "no"]}, "reports: must list no first"),
        ({"reports": ["1", "0"]}, "named designs do: 0, 1"),
        ({"answers": ["armed", "not"], "reports": ["not", "armed"]}, "are in another order"),
    ],
)
def test_named_design_in_reversed_order_is_rejected(given, said):
    """A named design lists no, then yes: its author lists yes first, which would invert every share."""
    with raises(DesignError, ("design.invalid", said)):
        column(**NAMED, **given)
    column(**NAMED, answers=["not", "armed"], reports=["0", "1"])


@pytest.mark.attack(17)
@pytest.mark.parametrize(
    ("order", "reports", "sound"),
    [
        ([0, 1, 2], ["A", "B", "C"], True),
        ([0, 1, 2], ["c", "a", "b"], False),
        ([1, 0, 2], ["b", "a", "c"], True),
        ([0, 1, 2], ["red", "blue", "grey"], True),
    ],
)
def test_matrix_with_permuted_labels_is_noted(order, reports, sound):
    """Labels in another order than the matrix swap shares; it is a note, as Warner's cards may mean so."""
    rows = [["0.7", "0.2", "0.1"], ["0.1", "0.8", "0.1"], ["0.4", "0", "0.6"]]
    stated = {"answers": ["a", "b", "c"], "reports": reports, "matrix": [rows[place] for place in order]}
    notes = survey_of(pd.DataFrame({"job": reports * 4}), read_design(design(job=stated))).notes
    assert bool(notes) != sound
    assert sound or f"(now {', '.join(reports)})" in notes[0]


def test_known_mixture_equals_its_sum_of_matrices():
    half = {"a": "1/2", "b": "1/2"}
    inner = {"mixture": {"a": {"matrix": [["1", "0"], ["0", "1"]]}, "b": {"matrix": MATRIX}}, "weights": half}
    (matrix,) = column(**LABELS, **inner).parts[0].channel.chances[:, 0]
    assert matrix == pytest.approx(np.asarray([[11, 1], [1, 11]]) / 12)
    outer = {"mixture": {"a": inner, "b": NAMED}, "weights": half}
    (matrix,) = column(**LABELS, **outer).parts[0].channel.chances[:, 0]
    assert matrix[0, 0] == pytest.approx(7 / 8)


def test_priors_of_columns_that_are_not_read_are_left_out():
    columns = read_design(design(a={**NAMED, "denial": "unknown"}, b={**NAMED, "denial": "unknown"})).columns
    priors = {"a_denial": {}, "b_denial": {}, "Intercept": {}}
    assert set(Design(columns, priors, "").priors_of(["b"])) == {"b_denial", "Intercept"}


def test_design_in_words_shows_its_matrix_and_unknown_shares():
    lines = column(**NAMED, reports=["no", "yes"], random="1/2").in_words()
    assert lines[1:] == ["  answer no: report no 2/3, yes 1/3", "  answer yes: report no 1/3, yes 2/3"]
    (line,) = column(**NAMED, reports=["no", "yes"], denial="unknown", random="1/2").in_words()
    assert line.endswith("denial unknown, random = 1/2")
