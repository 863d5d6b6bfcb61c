"""Carry weighted averages by a few reports of large weights, or leave what weights tell of out of a model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from inference.analyses.analysing import analyse_table
from inference.analyses.assembling import assemble
from inference.analyses.cli import quantity_lines
from inference.analyses.design_based import scores_of
from inference.analyses.false_reports import MODEL_FREE, OTHERS, WEIGHTED
from inference.analyses.population import Population
from inference.analyses.predicted import Predicted
from inference.analyses.prior_sites import prior_sites
from inference.analyses.table import Table, known_channel
from inference.analyses.weighing import weights_apart
from inference.analyses.weight_notes import heavy
from inference.analyses.weights import ReplicateWeights
from ldp_client.documents.errors import InputError
from tests.inference.analyses.simulated import YES_NO

N, HONEST, HEAVY = 20_000, {"north": 0.6, "south": 0.1}, 1000.0


def attacked() -> tuple[Table, float]:
    """One report of a hundred says north, yes and the largest weight, others 1; and the honest share."""
    rows = [("north", 1, HEAVY, N / 100)]
    for place, share in HONEST.items():
        yes = share * YES_NO[1][1] + (1 - share) * YES_NO[0][1]
        rows += [(place, said, 1.0, 0.495 * N * (yes if said else 1 - yes)) for said in (0, 1)]
    places, said, weights, counts = zip(*rows, strict=True)
    public = pd.DataFrame({"region": pd.Categorical(places), "w": weights, "p": 1 / np.asarray(weights)})
    private = known_channel("ever", ("no", "yes"), said, YES_NO)
    return Table(public, {"ever": private}, np.rint(counts).astype(np.int64)), sum(HONEST.values()) / 2


@pytest.mark.slow
def test_weighted_averages_have_no_set_that_leaves_out_the_honest_share(capsys):
    table, honest = attacked()
    over = Population(weights="w", by="region")
    found = analyse_table(table, "ever ~ region", method="laplace", draws=200, population=over)
    weighted = [one for one in found.quantities if "weighted" in one.name or "design-based" in one.name]
    draws = {one.name: one.draws for one in weighted}
    assert np.quantile(draws["share ever = yes, weighted"], 0.05) > honest + 0.1
    for name in draws:
        assert name not in found.identified.sets
    assert found.identified.open == WEIGHTED
    low, high = found.identified.sets["share ever = yes"]
    assert low < honest < high
    print(*quantity_lines(found), sep="\n")
    for text in (capsys.readouterr().out, found.identified.on_page()):
        assert WEIGHTED in text


@pytest.mark.slow
def test_the_words_are_those_of_what_has_no_set():
    """Without weights, a design-based estimate has none for another reason."""
    table, _ = attacked()
    table.public["town"] = np.arange(len(table.counts))
    found = analyse_table(
        table, "ever ~ region", method="laplace", draws=200, population=Population(cluster="town")
    )
    assert found.identified.open == MODEL_FREE != OTHERS


@pytest.mark.parametrize("over", [Population(weights="w"), Population(inclusion="p")], ids=str)
def test_few_reports_that_carry_the_weight_are_noted(over):
    table, _ = attacked()
    (note,) = heavy(table, over.weights_of(table))
    assert "the heaviest 1 % of them have 91 % of it" in note
    assert "worth those of 242 reports of equal weight" in note


def test_usual_weights_are_not_noted():
    """Equal ones, few reports, and those of a survey with a design effect of two."""
    random = np.random.default_rng(3)
    for weights in (np.ones(3), np.ones(500), random.lognormal(0, 0.83, 5000)):
        private = known_channel("ever", ("no", "yes"), np.zeros(len(weights), int), YES_NO)
        table = Table(pd.DataFrame({"w": weights}), {"ever": private}, np.ones(len(weights), np.int64))
        assert list(heavy(table, weights)) == []


@pytest.mark.parametrize(
    ("mean", "noted"), [(1.0, 1), (1e6, 1), (0.4, 1), (1.2, 0), (3.7, 0), (100.0, 0), (271.0, 0)]
)
def test_weights_that_were_scaled_are_noted_as_their_totals_are_no_people(mean, noted):
    """A survey file's weights of mean 1 gave "number of people with ever = yes: 318", ok."""
    weights = np.random.default_rng(2).lognormal(0, 0.4, 1000)
    table = Table(
        pd.DataFrame({"w": weights / weights.mean() * mean}),
        {"ever": known_channel("ever", ("no", "yes"), np.tile([0, 1], 500), YES_NO)},
        np.ones(1000, np.int64),
    )
    assert len([one for one in Population(weights="w").notes(table) if "shares do not mind" in one]) == noted


def held(public, private, formula, over):
    """What is said of the weights of a table, by draws that no report has moved."""
    table = Table(public, {"ever": private}, np.ones(len(public), np.int64))
    analysis = assemble(table, formula)
    sites = {name: values[None] for name, values in prior_sites(analysis, 1, 100).items()}
    return weights_apart(analysis, table, sites, over)


def asked(n, seed, south=0.1):
    """Half are of the north, where half say yes; those of the south stand for ten people each."""
    random = np.random.default_rng(seed)
    north = random.random(n) < 0.5
    yes = random.random(n) < np.where(north, 0.5, south)
    said = (random.random(n) < np.where(yes, YES_NO[1][1], YES_NO[0][1])).astype(int)
    w, sex = np.where(north, 1.0, 10.0), random.choice(["f", "m"], n)
    public = pd.DataFrame(
        {"region": np.where(north, "north", "south"), "sex": sex, "w": w, "p": 1 / w, "died": yes}
    )
    return public, known_channel("ever", ("no", "yes"), said, YES_NO)


@pytest.mark.parametrize("over", [Population(weights="w"), Population(inclusion="p")], ids=str)
@pytest.mark.parametrize("outcome", ["ever", "died"])
def test_weights_that_tell_of_what_the_formula_leaves_out_are_told(outcome, over):
    public, private = asked(2000, 1)
    (reason,), notes = held(public, private, f"{outcome} ~ 1", over)
    assert reason.startswith(f"{outcome}: the model's weighted average and")
    assert held(public, private, f"{outcome} ~ region", over) == ((), ()) == ((), notes)


def test_how_numbers_are_rounded_is_not_taken_for_weights(monkeypatch):
    """Weights that the formula explains leave rounding alone, of one sign in a whole region."""
    genuine, random = np.linalg.lstsq, np.random.default_rng(4)

    def rounded(*given, **named):
        found, *others = genuine(*given, **named)
        return found * (1 + 1e-14 * random.normal(size=found.shape)), *others

    monkeypatch.setattr(np.linalg, "lstsq", rounded)
    public, private = asked(2000, 1)
    assert held(public, private, "ever ~ region", Population(weights="w")) == ((), ())


def test_groups_that_cancel_are_told_apart():
    """Of all, weights have nothing to do with answers; of each sex, they have."""
    public, private = asked(4000, 2, south=0.5)
    said = private.codes == 1
    heavy = said == (public["sex"] == "f")
    public["w"] = np.where(heavy, 3.0, 1.0)
    reasons, _ = held(public, private, "ever ~ sex", Population(weights="w", by="sex"))
    assert [reason.split(":")[0] for reason in reasons] == ["ever where sex = f", "ever where sex = m"]


@pytest.mark.parametrize("dice", [YES_NO, [[0.999, 0.001], [0.001, 0.999]]], ids=str)
def test_weights_that_tell_nothing_are_hardly_ever_called(dice):
    """At most once in a thousand surveys; also where few of a rare trait weigh much, unlike a normal law."""
    random = np.random.default_rng(3)
    n, surveys = 1500, 80
    truth = (random.random(n) < 0.02).astype(int)
    said = (random.random(n) < np.asarray(dice)[truth, 1]).astype(int)
    table = Table(
        pd.DataFrame({"w": np.ones(n)}),
        {"ever": known_channel("ever", ("no", "yes"), said, dice)},
        np.ones(n, np.int64),
    )
    analysis = assemble(table, "ever ~ 1")
    # Of the prior's draws the one that says what the reports say.
    drawn = {name: values[None] for name, values in prior_sites(analysis, 1, 5000).items()}
    share = float(scores_of(table.private["ever"])[:, 1].mean())
    apart = np.abs(
        Predicted(analysis, drawn).average(pd.DataFrame(index=range(1)), np.ones(1))[0, :, 1] - share
    )
    near = int(apart.argmin())
    assert apart[near] < 0.01
    sites = {name: values[:, near : near + 1] for name, values in drawn.items()}
    for weights in (lambda: random.lognormal(0, 1, n), lambda: np.where(random.random(n) < 0.01, 100.0, 1.0)):
        called = 0
        for _ in range(surveys):
            table.public["w"] = weights()
            called += bool(weights_apart(analysis, table, sites, Population(weights="w"))[0])
        assert called <= 1


HALVES = np.asarray([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]])
FILES = {
    # A jackknife of 40 people, taken for half samples, or for a bootstrap: widths of a sixth.
    "jackknife": (np.full(40, 3.0), lambda w: np.outer(w, np.ones(40)) * (1 - np.eye(40)) * 40 / 39),
    # Half samples of three strata, and those that Fay's factor brings near to the weights.
    "halves": (np.full(6, 3.0), lambda w: w[:, None] * (1 + np.kron(HALVES[:, 1:], [1, -1]).T)),
    "fay": (np.full(6, 3.0), lambda w: w[:, None] * (1 + 0.5 * np.kron(HALVES[:, 1:], [1, -1]).T)),
    # Every second replicate of the jackknife alone; factors of weights that are all but one.
    "half a file": (
        np.full(40, 3.0),
        lambda w: (np.outer(w, np.ones(40)) * (1 - np.eye(40)) * 40 / 39)[:, ::2],
    ),
    "factors": (np.full(40, 1.4), lambda _: (1 - np.eye(40)) * 40 / 39),
}


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("jackknife", "brr"),
        ("jackknife", "bootstrap"),
        ("halves", "jk1"),
        ("fay", "brr"),
        ("half a file", "jk1"),
        ("factors", "jk1"),
    ],
)
def test_replicate_weights_of_another_type_are_refused(file, kind):
    """Their intervals would be many times too narrow, or too wide, and nothing would show it."""
    base, replicated = FILES[file]
    columns = {f"r{place}": column for place, column in enumerate(replicated(base).T, 1)}
    said = np.arange(len(base)) % 2
    table = Table(
        pd.DataFrame({"w": base, **columns}),
        {"ever": known_channel("ever", ("no", "yes"), said, YES_NO)},
        np.ones(len(base), np.int64),
    )
    why = "multiply them by w" if file == "factors" else "of another type, or need another scale"
    with pytest.raises(InputError, match=why):
        Population(weights="w", replicates=ReplicateWeights("r", kind)).checked(table)
    if file in ("jackknife", "halves"):
        own = "jk1" if file == "jackknife" else "brr"
        Population(weights="w", replicates=ReplicateWeights("r", own)).checked(table)
