"""From coefficients to people: groups, censuses and weights, and what is said of people without reports."""

import numpy as np
import pandas as pd
import pytest

from inference.analyses.population import Population, left_out_of, notes_over, people_of, quantities_over
from inference.analyses.predicted import quantities_of
from inference.analyses.program import assemble
from ldp_client.documents.errors import InputError
from tests.inference.analyses.simulated import any_draws, forced, table
from tests.kit.errors import raises


def asked(**public):
    return forced({"region": np.repeat(["north", "south", "west"], 300), **public})


def at_draws(whole, formula, over):
    """The analysis, its coefficients and its quantities, at some draws instead of a fit."""
    analysis = assemble(whole, formula)
    sites = any_draws(analysis)
    found = quantities_over(analysis, sites, people_of(analysis, whole, over), over)
    return analysis, analysis.parameters(sites), [*quantities_of(analysis, sites), *found]


def test_census_and_weights_average_the_cells():
    """Exact at each draw: a quarter of the town's share plus three quarters of the land's."""
    place = np.repeat(["town", "land"], 20)
    whole = forced({"place": pd.Categorical(place), "weight": np.where(place == "town", 1.0, 3.0)})
    census = pd.DataFrame({"place": ["town", "land"], "count": [250, 750]})
    given = {"in the census": Population("place", census=census), "weighted": Population("place", "weight")}
    for how, over in given.items():
        _, b, quantities = at_draws(whole, "armed ~ place", over)
        found = {one.name: one for one in quantities}
        land = 1 / (1 + np.exp(-b["Intercept"]))
        town = 1 / (1 + np.exp(-b["Intercept"] - b["place[town]"]))
        assert np.allclose(found[f"share armed = yes, {how}"].draws, 0.25 * town + 0.75 * land, atol=1e-12)
        of_town = found[f"share armed = yes, place = town, {how}"].draws
        assert np.allclose(of_town, town, atol=1e-12)
        moved = found[f"share armed = yes, place: town − land, {how}"]
        assert np.allclose(moved.draws, town - land, atol=1e-12)
        assert any("ignore clusters and strata" in note for note in over.notes())
        if over.census is not None:
            total = found["total armed = yes, in the census"]
            assert np.allclose(total.draws, 250 * town + 750 * land, atol=1e-9)
            assert total.words == "expected number of people with armed = yes in the census"
    # All people at a level, and who reported.
    assert np.allclose(found["share armed = yes, place = town"].draws, town, atol=1e-12)
    assert np.allclose(found["share armed = yes"].draws, (town + land) / 2, atol=1e-12)
    odds = found["odds ratio place[town]"]
    assert np.allclose(np.log(odds.draws), b["place[town]"])
    assert odds.words == "odds ratio of place[town], for armed = yes against no"


CENSUS = pd.DataFrame({"clinic": [0, 8, 9], "region": ["west"] * 3, "count": [100, 100, 100]})


@pytest.mark.attack(17)
def test_groups_without_reports_are_drawn_separately():
    """Unseen clinics must not all be alike; each has its own draw of the groups' law, also in totals."""
    whole, over = table(), Population(by="clinic", census=CENSUS)
    analysis, _, quantities = at_draws(whole, "ever ~ 1 + (1 | clinic)", over)
    found = {one.name: one.draws for one in quantities}
    assert found["share ever = yes, clinic: 9 − 8, in the census"].std() > 0.02
    levels = [found[f"total ever = yes, clinic = {clinic}, in the census"] for clinic in (0, 8, 9)]
    assert np.allclose(sum(levels), found["total ever = yes, in the census"], atol=1e-9)
    *_, note = notes_over(analysis, people_of(analysis, whole, over))
    assert note.startswith("200 of 300 people are in groups of clinic without reports (8, 9)")


@pytest.mark.attack(17)
@pytest.mark.parametrize("census", [None, CENSUS], ids=["people asked", "census"])
def test_groups_missing_from_the_formula_are_rejected(census):
    """An analysis that leaves region out would find no difference between regions, whatever the reports."""
    whole, by = table(), Population(by="region", census=census)
    with raises(InputError, "options.by_not_in_formula", "ever ~ (1 | clinic) + region"):
        people_of(assemble(whole, "ever ~ (1 | clinic)"), whole, by)
    with raises(InputError, "options.by_not_in_formula", "Use a column that it names"):
        people_of(assemble(whole, "region ~ (1 | clinic)"), whole, by)
    people_of(assemble(whole, "ever ~ region + (1 | clinic)"), whole, by)


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"by": "plac"}, ("table.unknown_column", "'plac'", "place?")),
        ({"by": "armed"}, ("weights.private_column", "armed")),
        ({"by": "income"}, ("options.by_too_many_values", "300")),
        ({"weights": "place"}, ("weights.not_numbers", "place")),
        ({"weights": "huge"}, ("weights.not_positive", "7")),
        ({"weights": "zero"}, ("weights.zero", "row 3: remove the rows of weight 0")),
        ({"weights": "income", "census": CENSUS}, "census.with_weights"),
        ({"census": "census.csv"}, "census.not_frame"),
        ({"place": ["sea"], "income": [1], "count": [1]}, ("census.unknown_value", "place", "'sea'")),
        ({"place": ["town"], "income": [1]}, ("table.unknown_column", "'count'")),
        ({"place": ["town"], "income": ["a"], "count": [1]}, ("census.not_numbers", "income")),
        ({"place": ["town"], "income": [1], "count": [-1]}, ("weights.not_positive", "count")),
        ({"place": ["town"], "income": [1], "count": [0]}, "census.counts_nobody"),
        ({"place": [None], "income": [1], "count": [3]}, ("table.blank_cells", "place", "census")),
    ],
)
def test_invalid_population_is_rejected(given, code):
    people, place = np.arange(300), ["town", "land"] * 150
    huge, zero = np.where(people == 6, 1e200, 1.0), np.where(people == 2, 0.0, 1.0)
    whole = forced({"place": place, "income": people + 1.0, "huge": huge, "zero": zero})
    given = {"census": pd.DataFrame(given)} if "place" in given else given
    with raises(InputError, code):
        over = Population(**given)
        people_of(assemble(whole, "armed ~ place + income"), whole, over)


def test_predictor_named_count_is_not_read_as_people():
    whole = forced({"count": [1, 5] * 20})
    with raises(InputError, "census.count_column_ambiguous"):
        people_of(assemble(whole, "armed ~ count"), whole, Population(census=whole.public))


BY_REGION = ["armed ~ region", "armed ~ 1 + (1 | region)"]
CLINICS = {"clinic": np.arange(900) % 9, "married": [True, False, True] * 300}
WAVES = {"wave": pd.Categorical(np.tile(["1", "2"], 450))}
AGES = {"age": np.arange(900.0) % 10 + 20}
REGIONS = ["north", "south", "west"]
NO_WEST = "300 of 900 reports have region = west, which the census does not count"
OTHER_AGES = "90 of 100 people of the census have age beyond all reports (20 to 29)"


@pytest.mark.attack(18)
@pytest.mark.parametrize(
    ("public", "formulas", "census", "wanted"),
    [
        ({}, BY_REGION, {"region": REGIONS, "count": [950, 1200, 2400]}, []),
        ({}, BY_REGION, {"region": REGIONS * 400, "count": 1}, []),
        # It would describe fewer people than were asked.
        ({}, BY_REGION, {"region": REGIONS[:2], "count": [950, 1200]}, [NO_WEST]),
        ({}, BY_REGION, {"region": REGIONS, "count": [950, 1200, 0]}, [NO_WEST]),
        # Clinics and yes/no columns are levels too.
        (
            CLINICS,
            ["armed ~ married + (1 | clinic)"],
            {"clinic": range(8), "married": True, "count": 9},
            ["married = False", "clinic = 8"],
        ),
        # A census may be of one wave.
        (WAVES, ["armed ~ wave + region"], {"wave": "2", "region": REGIONS[:2], "count": 500}, [NO_WEST]),
        # Years of birth instead of ages would extrapolate the line.
        (AGES, ["armed ~ age"], {"age": [25, 95], "count": [10, 90]}, [OTHER_AGES]),
        (AGES, ["armed ~ age"], {"age": [25, 95], "count": [90, 10]}, []),
    ],
)
def test_census_of_other_people_is_a_reason(public, formulas, census, wanted):
    for formula in formulas:
        whole, over = asked(**public), Population(census=pd.DataFrame(census))
        analysis = assemble(whole, formula)
        people = people_of(analysis, whole, over)
        reasons = left_out_of(analysis, people, over)
        assert notes_over(analysis, people) == ()
        assert len(reasons) == len(wanted)
        assert all(any(part in reason for reason in reasons) for part in wanted)


@pytest.mark.attack(17)
@pytest.mark.parametrize(
    ("formula", "code"),
    [
        ("armed ~ np.log(income)", "formula.term_not_finite"),
        ("armed ~ region + (np.log(income) | region)", "formula.term_not_finite"),
        ("armed ~ bs(income, df=4)", "formula.term_not_evaluated"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_term_that_fails_over_census_is_rejected(formula, code):
    """An income of 0 has no logarithm: such a row would count as a share of exactly 0 or 1."""
    whole = asked(income=10.0 + np.arange(900) % 30)
    over = Population(census=pd.DataFrame({"region": REGIONS, "income": [0.0, 20.0, 30.0], "count": 500}))
    with raises(InputError, code):
        _ = at_draws(whole, formula, over)


def test_numbers_of_a_census_become_a_study_s_labels():
    whole = forced({"year": pd.Categorical(np.repeat(["2024", "2025"], 30))})
    over = Population(census=pd.DataFrame({"year": [2025.0, 2024.0], "count": [5, 6]}))
    people, weights = people_of(assemble(whole, "armed ~ year"), whole, over)
    assert (list(people["year"]), list(weights)) == (["2025", "2024"], [5, 6])
