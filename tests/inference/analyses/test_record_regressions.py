"""Regressions of records beside public fields: exact laws, slopes that come back, what users meet."""

from __future__ import annotations

import json
from itertools import product

import jax
import numpy as np
import pytest
from numpyro import handlers
from scipy import special

from inference import analyse
from inference.analyses.record_formula import record_formula
from inference.analyses.record_moments import regression_beside
from inference.analyses.record_regression import beside_of, signs_by_cell_of
from inference.analyses.reports import public_frame
from inference.analyses.stated_priors import Given
from inference.models.leveled_cells import levels_of, shares_of_cells
from inference.predicting import groups_of
from inference.sampling.space import as_arrays, space_of
from inference.sampling.whitening import descend, finite
from ldp_client import mechanism_for
from ldp_client.cli import main
from ldp_client.documents.errors import InputError
from schemas import Report, Study
from summaries import summarize
from tests import studies
from tests.inference.simulation import seeded
from tests.kit.errors import raises

YES_NO = {"ask": "yes_no"}
NUMBER = {"bounds": ["-1", "1"]}
JOB = {"ask": "choice", "choices": ["none", "part", "full"]}
PUBLIC = [
    {"id": "region", "choices": ["north", "south", "west"]},
    {"id": "year", "bounds": ["0", "9"], "step": "1"},
]
CELLS = [("north", "0"), ("south", "3"), ("south", "8"), ("west", "1")]
PRIOR = {"distribution": "normal", "loc": 0, "scale": 3}
SIZES = np.array([40, 20, 30, 10])


def study_of(*fields, linear=False, epsilon="1", public=PUBLIC, more=()):
    asked = {
        "id": "pressure",
        "ask": "record",
        "features": [{"id": f"f{place}", **field} for place, field in enumerate(fields)],
        "response": {"id": "high", **(NUMBER if linear else YES_NO)},
        "mechanism": {"name": "sampled_products", "epsilon": epsilon},
        "model": {"name": "linear_regression" if linear else "logistic_regression"},
    }
    return Study({**studies.document(asked, *more), "public": public})


def model_of(study, formula, counts):
    """The model of counts (cells, 2 T) in CELLS, and what it is made of."""
    asked = record_formula(study, formula)
    mechanism = mechanism_for(asked.question)
    frame = public_frame(study.public, CELLS)
    beside = beside_of(asked, frame, counts, Given(None))
    return regression_beside(asked.question, mechanism, beside), mechanism, beside


def every_cell_alike(mechanism):
    """Counts with SIZES reports in the cells."""
    first = np.zeros(2 * len(mechanism.coordinates), np.int64)
    first[0] = 1
    return np.outer(SIZES, first)


def law_at(model, sites):
    """Probabilities of the counts that the program sees, at these sites, and M over all cells."""

    def found(given):
        placed = handlers.seed(handlers.substitute(model.program, given), 0)
        trace = handlers.trace(placed).get_trace(**as_arrays(model.data))
        return trace["reports"]["fn"].cell_probs, trace["second"]["value"]

    with jax.enable_x64(True):
        given = {name: np.asarray(value, np.float64) for name, value in sites.items()}
        return [np.asarray(value) for value in jax.jit(found)(given)]


def signs_of_people(mechanism, people):
    """(2 T,) probabilities of a report, from (share, u) of each kind of person, report by report."""
    found = np.zeros(2 * len(mechanism.coordinates))
    p = float(mechanism.p)
    for share, u in people:
        for place, (i, j) in enumerate(mechanism.coordinates):
            positive = (1 + u[i] * u[j]) / 2
            told = p * positive + (1 - p) * (1 - positive)
            drawn = share * mechanism.weights[place] / mechanism.total
            found[2 * place : 2 * place + 2] += drawn * np.array([1 - told, told])
    return found


def line_in(beside, sites):
    return float(sites["intercept"]) + beside.standard() @ sites["public"]


def test_yes_no_features_have_the_law_of_every_person_of_every_cell():
    study = study_of(YES_NO, YES_NO, YES_NO)
    mechanism = mechanism_for(study.questions[0])
    model, _, beside = model_of(study, "high ~ f0 + f1 + f2 + region + year", every_cell_alike(mechanism))
    random = np.random.default_rng(1)
    sites = {"intercept": 0.2, "coefficients": random.normal(size=3), "public": random.normal(size=3)}
    sites |= {
        "main": random.normal(size=3),
        "pair": random.normal(size=3),
        "tilt": random.normal(size=(3, 3)),
    }
    lines, whole = line_in(beside, sites), []
    for cell, share in enumerate(SIZES / SIZES.sum()):
        main = sites["main"] + beside.directions()[cell] @ sites["tilt"]
        kinds = [np.asarray(signs, float) for signs in product((1, -1), repeat=3)]
        weight = np.array(
            [np.exp(x @ main + sites["pair"] @ [x[0] * x[1], x[0] * x[2], x[1] * x[2]]) for x in kinds]
        )
        people = [
            (
                share * w / weight.sum() * special.expit(y * (lines[cell] + x @ sites["coefficients"])),
                [1, *x, y],
            )
            for w, x in zip(weight, kinds, strict=True)
            for y in (1, -1)
        ]
        whole.append(signs_of_people(mechanism, people))
    assert law_at(model, sites)[0] == pytest.approx(np.concatenate(whole), abs=1e-12)
    wrong = law_at(model, {**sites, "tilt": 0 * sites["tilt"]})[0]
    assert np.abs(wrong - np.concatenate(whole)).max() > 1e-4


@pytest.mark.parametrize("linear", [False, True])
def test_levels_have_the_law_of_every_person_of_every_cell(linear):
    study = study_of(JOB, YES_NO, linear=linear)
    mechanism = mechanism_for(study.questions[0])
    model, _, beside = model_of(study, "high ~ f0 + f1 + year", every_cell_alike(mechanism))
    random = np.random.default_rng(2)
    sites = {"intercept": 0.1, "coefficients": random.normal(size=3) / 3, "public": np.array([0.2])}
    sites |= {
        "main": random.normal(size=3),
        "pair": random.normal(size=2),
        "tilt": random.normal(size=(1, 3)),
    }
    sites |= {"sd": 0.3} if linear else {}
    fields, lines, whole = levels_of(mechanism), line_in(beside, sites), []
    for cell, share in enumerate(SIZES / SIZES.sum()):
        main = sites["main"] + beside.directions()[cell] @ sites["tilt"]
        with jax.enable_x64(True):
            law = np.asarray(shares_of_cells(fields, main, sites["pair"]))
        people = []
        for job, yes in product(range(3), range(2)):
            columns = [*fields[0].columns[job], *fields[1].columns[yes]]
            line = lines[cell] + columns @ sites["coefficients"]
            entries = [1, *fields[0].codes[job], *fields[1].codes[yes]]
            # A number's residual may be anything of this sd.
            ends = (
                [(0.5, line - 0.3), (0.5, line + 0.3)]
                if linear
                else [(special.expit(line), 1), (special.expit(-line), -1)]
            )
            people += [(share * law[job, yes] * chance, [*entries, y]) for chance, y in ends]
        whole.append(signs_of_people(mechanism, people))
    assert law_at(model, sites)[0] == pytest.approx(np.concatenate(whole), abs=1e-12)


def test_numbers_have_the_law_of_people_who_spread_differently_in_every_cell():
    """Two numbers, a yes/no as they are: no two cells have the same covariance, and no law is normal."""
    study = study_of(NUMBER, NUMBER, linear=True)
    mechanism = mechanism_for(study.questions[0])
    model, _, beside = model_of(study, "high ~ f0 + f1 + region", every_cell_alike(mechanism))
    random = np.random.default_rng(3)
    shares, q = SIZES / SIZES.sum(), beside.directions()
    assert q.T @ (shares[:, None] * q) == pytest.approx(np.eye(2), abs=1e-12)
    along, mean, sd = random.normal(size=(2, 2)) / 3, np.array([0.1, -0.2]), np.array([0.4, 0.3])
    within = 1 / np.sqrt(1 + (along**2).sum(axis=0))
    # Some cells have twice the average covariance and others little.
    factor = np.linalg.cholesky([[1, 0.5], [0.5, 1]]) * (sd * within)[:, None]
    size = np.array([0.5, 2.0, 1.0, 1.0])
    size[3] = (1 - shares[:3] @ size[:3]) / shares[3]
    sites = {"intercept": 0.1, "coefficients": np.array([0.4, -0.3]), "public": np.array([0.1, -0.15])}
    sites |= {"number_mean": mean, "number_sd": sd, "sd": 0.25, "along": along}
    sites |= {"feature_correlation": np.linalg.cholesky([[1, 0.5], [0.5, 1]])}
    lines, each = line_in(beside, sites), []
    for cell, share in enumerate(shares):
        middle = mean + q[cell] @ along * sd * within
        people = []
        for z in product((-1, 1), repeat=2):
            x = middle + np.sqrt(size[cell]) * factor @ z
            line = lines[cell] + x @ sites["coefficients"]
            people += [(share / 8, [1, *x, line + sign * 0.25]) for sign in (-1, 1)]
        each.append(signs_of_people(mechanism, people))
    signs = np.asarray(each).reshape(len(CELLS), -1, 2)
    alone = np.array([i == 0 for i, _ in mechanism.coordinates])
    exact = np.concatenate([signs[:, ~alone].sum(axis=0).ravel(), signs[:, alone].ravel()])
    found, second = law_at(model, sites)
    assert found == pytest.approx(exact, abs=1e-12)
    assert np.diag(second)[1:3] - second[0, 1:3] ** 2 == pytest.approx(sd**2, abs=1e-12)


def test_a_number_taken_as_normal_has_the_law_of_quadrature():
    study = study_of(NUMBER)
    mechanism = mechanism_for(study.questions[0])
    model, _, beside = model_of(study, "high ~ f0 + year", every_cell_alike(mechanism))
    sites = {"intercept": -0.2, "coefficients": np.array([1.1]), "public": np.array([0.3])}
    sites |= {"number_mean": np.array([0.1]), "number_sd": np.array([0.3]), "along": np.array([[0.5]])}
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    lines, whole = line_in(beside, sites), []
    for cell, share in enumerate(SIZES / SIZES.sum()):
        x = 0.1 + 0.3 / np.sqrt(1.25) * (0.5 * beside.directions()[cell, 0] + nodes)
        people = [
            (share * w / weights.sum() * special.expit(y * (lines[cell] + 1.1 * at)), [1, at, y])
            for w, at in zip(weights, x, strict=True)
            for y in (-1, 1)
        ]
        whole.append(signs_of_people(mechanism, people))
    assert law_at(model, sites)[0] == pytest.approx(np.concatenate(whole), abs=1e-10)


def mode_of(model):
    space = space_of(model)
    with jax.enable_x64(True):
        compiled = jax.jit(jax.value_and_grad(space.potential))
        data = as_arrays(model.data)
        start = np.asarray(space.start(as_arrays(model.initial, float), data))
        vector = descend(finite(lambda vector: compiled(vector, data)), start)
        sites = {name: np.asarray(value) for name, value in space.sites(vector, data).items()}
    return {name: float(value) for name, value in model.parameters(sites).items()}


def test_the_check_sees_signs_whatever_how_often_products_were_drawn():
    """Of very many entries neighbours are added up: both signs of a product would always be as many."""
    study = study_of(YES_NO, YES_NO, YES_NO)
    mechanism = mechanism_for(study.questions[0])
    counts = np.tile([30, 10], (len(CELLS), len(mechanism.coordinates)))
    model, *_ = model_of(study, "high ~ f0 + f1 + f2 + region", counts)
    turned = model.data["counts"].reshape(-1, 2)[:, ::-1].ravel()
    seen, others = (groups_of(model.shown(one), counts.sum()) for one in (model.data["counts"], turned))
    assert np.abs(seen - others).max() > 0.01


REGION = {"north": 0.0, "south": 0.9, "west": -0.5}


@pytest.mark.slow
@pytest.mark.parametrize("linear", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_slopes_come_back_from_what_very_many_people_leave(linear):
    """Of a yes/no that goes with the region, as the response does: alone its slope is another."""
    fields = (YES_NO, NUMBER) if linear else (YES_NO, YES_NO)
    study = study_of(*fields, linear=linear)
    mechanism = mechanism_for(study.questions[0])
    counts = []
    for (region, year), size in zip(CELLS, SIZES, strict=True):
        people = []
        for smokes, other in product((1, 0), (1, -1)):
            smoking = 0.2 + 0.4 * (region == "south")
            share = (smoking if smokes else 1 - smoking) / 2
            line = -0.4 + 0.7 * smokes + REGION[region] + 0.05 * float(year)
            if linear:
                number = 0.3 * other + 0.02 * float(year)
                height = 0.3 * line - 0.2 * number
                people += [(share / 2, [1, 2 * smokes - 1, number, height + e]) for e in (-0.1, 0.1)]
            else:
                line += 0.4 * (other > 0)
                u = [1, 2 * smokes - 1, other]
                people += [(share * special.expit(y * line), [*u, y]) for y in (-1, 1)]
        counts.append(np.rint(10**9 * size * signs_of_people(mechanism, people)).astype(np.int64))
    model, *_ = model_of(study, "high ~ f0 + f1 + region + year", np.stack(counts))
    found = mode_of(model)
    scale = 0.3 if linear else 1
    truth = {
        "intercept": -0.4 * scale,
        "coefficient[f0]": 0.7 * scale,
        "coefficient[f1]": -0.2 if linear else 0.4,
        "coefficient[region=south]": 0.9 * scale,
        "coefficient[region=west]": -0.5 * scale,
        "coefficient[year]": 0.05 * scale,
    }
    assert list(found)[: len(truth)] == list(truth)
    for name, value in truth.items():
        assert found[name] == pytest.approx(value, abs=0.003), name
    if linear:
        assert found["sd"] == pytest.approx(0.1, abs=0.003)


def reports_of(study, n, seed):
    """Reports of n people whose answer goes with a feature and their region."""
    random = np.random.default_rng(seed)
    places = random.integers(0, 2, n)
    fit, smokes = random.random(n) < 0.5, random.random(n) < 0.2 + 0.3 * places
    high = random.random(n) < special.expit(-0.5 + 1.5 * smokes + 1.5 * places)
    (question,) = study.questions
    payloads = mechanism_for(question).perturb_many(
        {"f0": fit, "f1": smokes, "high": high}, seeded(fit, high)
    )
    return [
        Report(
            f"{row:032x}", study.id, study.version, study.digest, {question.id: bytes(payload)},
            public={"region": ["north", "south"][place], "year": str(row % 3)},
        )
        for row, (payload, place) in enumerate(zip(payloads, places.tolist(), strict=True))
    ]  # fmt: skip


def test_reports_and_their_summary_are_counted_alike():
    study = study_of(YES_NO, YES_NO, epsilon="4")
    asked = record_formula(study, "high ~ f0 + f1 + region")
    reports = reports_of(study, 300, 1)
    mechanism = mechanism_for(asked.question)
    found = [signs_by_cell_of(study, one, asked, mechanism) for one in (reports, summarize(study, reports))]
    rows = [
        {region: row.tolist() for region, row in zip(frame["region"], counts, strict=True)}
        for frame, counts, _ in found
    ]
    assert rows[0] == rows[1]
    assert sorted(rows[0]) == ["north", "south"]
    assert sum(map(sum, rows[0].values())) == 300


@pytest.mark.slow
def test_the_command_fits_a_summary_and_says_what_came_of_it(tmp_path, capsys):
    regions = {"id": "region", "choices": ["north", "south"]}
    study = study_of(YES_NO, YES_NO, epsilon="6", public=[regions, PUBLIC[1]])
    (tmp_path / "study.json").write_text(study.to_json())
    (tmp_path / "summary.json").write_text(summarize(study, reports_of(study, 20_000, 2)).to_json())
    command = ["fit", str(tmp_path / "study.json"), str(tmp_path / "summary.json"), "--method", "laplace"]
    formula = "high ~ f0 + f1 + region"
    assert main([*command, "--formula", formula, "--out", str(tmp_path / "out")]) == 0
    assert "Odds ratio of high = yes against no for region = south" in capsys.readouterr().out
    assert "20000 reports of 2 public cells" in (tmp_path / "out" / "report.html").read_text()
    found = json.loads((tmp_path / "out" / "posterior.json").read_text())["questions"]["high"]
    truth = {
        "intercept": -0.5,
        "coefficient[f0]": 0.0,
        "coefficient[f1]": 1.5,
        "coefficient[region=south]": 1.5,
    }
    for name, value in truth.items():
        row = found["parameters"][name]
        assert row["mean"] == pytest.approx(value, abs=6 * row["sd"]), name
        assert row["sd"] < 0.4
    assert found["formula"] == formula
    assert found["prior"]["coefficients"]["region=south"]["distribution"] == "normal"


def test_python_asks_for_the_same(monkeypatch):
    study, reports = study_of(YES_NO, YES_NO), []
    monkeypatch.setattr("inference.analyses.asking.fit_record", lambda *given, **options: (given, options))
    (first, second, asked), options = analyse(study, reports, "high ~ f0 + f1 + region", seed=3, draws=200)
    assert first is study
    assert [*second] == reports
    assert (asked.outcome, asked.public) == ("high", "region")
    assert (options["seed"], options["draws"], options["method"]) == (3, 200, None)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("high ~ f0 + region", ("formula.features_missing", "f1")),
        ("high ~ f0 + f1", "formula.no_public_field"),
        ("high ~ f0 + f1 + f0:region", "formula.private_feature_changed"),
        ("high ~ f0 + f1 + np.log(f1) + region", "formula.private_feature_changed"),
        ("high ~ f0 + f1 + (1 | region)", ("formula.record_varies_by_group", "region")),
        ("high ~ 0 + f0 + f1 + region", "formula.record_without_intercept"),
        ("high ~ f0 + f1 + ever", ("formula.other_private_question", "ever")),
        ("pressure ~ f0 + f1 + regoin", ("table.unknown_column", "did you mean region")),
    ],
)
def test_a_formula_that_no_record_has_is_refused_in_one_line(formula, message):
    study = study_of(YES_NO, YES_NO, more=[studies.YES_NO])
    with raises(InputError, message) as caught:
        record_formula(study, formula)
    assert "\n" not in str(caught.value)


def test_formulas_of_other_questions_are_left_to_them():
    study = study_of(YES_NO, more=[studies.YES_NO])
    assert record_formula(study, "ever ~ region") is None
    assert record_formula(study, "year ~ ever") is None
    assert record_formula(study, "pressure ~ f0 + region:year + region").public == "region + region:year"


def test_records_under_other_mechanisms_and_names_of_two_things_are_refused():
    other = Study({**studies.document(studies.LINEAR), "public": PUBLIC})
    with raises(InputError, "formula.record_without_public_fields", "gaussian_statistics"):
        record_formula(other, "rate ~ age + years + region")
    both = study_of(YES_NO, public=[{**PUBLIC[0], "id": "f0"}])
    with raises(InputError, "formula.feature_is_public_field"):
        record_formula(both, "high ~ f0")
    with pytest.raises(InputError, match="population is for formulas of single questions"):
        analyse(study_of(YES_NO), [], "high ~ f0 + region", population="anything")


@pytest.mark.slow
def test_one_feature_beside_a_public_field_is_fitted():
    """A treatment, an outcome and a region: there is no pair of features."""
    study, random = study_of(YES_NO), seeded("one feature")
    mechanism = mechanism_for(study.questions[0])

    def report(number):
        payload = mechanism.perturb({"f0": number % 2 == 0, "high": number % 3 == 0}, random)
        public = {"region": ("north", "south")[number % 5 > 2], "year": "0"}
        return Report(f"{number:032x}", study.id, 1, study.digest, {"pressure": payload}, public=public)

    reports = [report(number) for number in range(200)]
    found = analyse(study, reports, "high ~ f0 + region", method="laplace", draws=100, false_reports=0)
    assert set(found.draws) >= {"intercept", "coefficient[f0]", "coefficient[region=south]"}


def test_a_level_that_nobody_has_is_named_and_keeps_its_prior():
    study = study_of(YES_NO)
    asked = record_formula(study, "high ~ f0 + region")
    frame = public_frame(asked.fields, [("north",), ("south",)])
    found = beside_of(asked, frame, np.array([[5, 5], [5, 5]]), Given({"region": PRIOR}))
    assert found.linear.empty == ("region[west]",)
    assert found.directions().shape == (2, 1)
    assert [row[0]["scale"] for row in found.linear.priors] == [3.0, 3.0]
    with raises(InputError, "prior.unknown_parameter", "f0"):
        beside_of(asked, frame, np.array([[5, 5], [5, 5]]), Given({"f0": PRIOR}))


def test_too_many_cells_and_columns_that_say_the_same_are_refused():
    study = study_of(*[YES_NO] * 15)
    features = " + ".join(f"f{place}" for place in range(15))
    (question,) = study.questions
    payload = mechanism_for(question).perturb({**{f"f{place}": True for place in range(15)}, "high": True})

    def report(number, region):
        public = {"region": region, "year": str(number)}
        return Report(f"{number:032x}", study.id, 1, study.digest, {question.id: payload}, public=public)

    with raises(InputError, "formula.too_many_cells", "32,768"):
        analyse(study, [report(place, "north") for place in range(3)], f"high ~ {features} + year")
    with raises(InputError, "formula.constant_column"):
        analyse(study, [report(0, "north")], f"high ~ {features} + year")
    two = [report(0, "north"), report(1, "south")]
    with raises(InputError, "prior.flat_record_regression"):
        analyse(study, two, f"high ~ {features} + year", priors={"year": "flat"})
