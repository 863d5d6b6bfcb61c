"""Replicate weights: variances are those of closed forms, the noise is whole, and nonsense is refused."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pandas as pd
import pytest

from inference.analyses.analysing import analyse_table
from inference.analyses.design_based import design_based, noise_of, scores_of
from inference.analyses.joining import joined
from inference.analyses.naming import Numbered, expanded
from inference.analyses.population import Population
from inference.analyses.table import Table, known_channel, table_of
from inference.analyses.weights import ReplicateWeights
from ldp_client.cli import main
from ldp_client.documents.errors import InputError
from tests.kit.errors import raises

WARNER = [[0.8, 0.2], [0.2, 0.8]]


def surveyed(base, replicates, seed=1, **more) -> Table:
    """Reports of Warner's dice, their weights, and replicates (rows, R) as w1, w2, …."""
    columns = {f"w{place}": column for place, column in enumerate(np.asarray(replicates).T, 1)}
    frame = pd.DataFrame({"w": base, **columns, **more})
    said = np.random.default_rng(seed).integers(0, 2, len(frame))
    return table_of(frame, [known_channel("q", ("no", "yes"), said, WARNER)])


def yes(table: Table) -> np.ndarray:
    return scores_of(table.private["q"])[:, 1]


def moved(table: Table, kind: str, scale=None):
    """Variances of the share and of the total that replicate weights say, and the sample."""
    sampled = Population(weights="w", replicates=ReplicateWeights("w", kind, scale)).sampled(table)
    scores, found = scores_of(table.private["q"]), sampled.replicates
    parts = [of(scores, table.counts, noise_of(scores))[1] for of in (found.share, found.total)]
    return [found.variance(one.parts[:, 1], one.noise[1]) for one in parts], sampled


def left_out(base, units):
    """Jackknife weights: each replicate leaves one unit out, the others weigh as much more."""
    many = units.max() + 1
    return np.column_stack([base * (units != one) * many / (many - 1) for one in range(many)])


def test_a_jackknife_of_a_mean_is_the_textbooks():
    """s²/n: of people one by one, and of the means of clusters of one size."""
    base = np.full(30, 7.0)
    table = surveyed(base, left_out(base, np.arange(30)))
    (share, total), sampled = moved(table, "jk1")
    assert share == pytest.approx(yes(table).var(ddof=1) / 30, rel=1e-10)
    assert total == pytest.approx(210**2 * yes(table).var(ddof=1) / 30, rel=1e-10)
    assert sampled.replicates.degrees == 29
    assert sampled.clusters is None
    clusters = np.repeat(np.arange(6), 5)
    table = surveyed(base, left_out(base, clusters))
    (share, _), sampled = moved(table, "jk1")
    assert share == pytest.approx(yes(table).reshape(6, 5).mean(axis=1).var(ddof=1) / 6, rel=1e-10)
    assert sampled.replicates.degrees == 5
    # Whose weights move together are a unit.
    assert len(np.unique(np.stack([sampled.clusters, clusters]), axis=1).T) == 6


def test_a_jackknife_of_strata_is_the_textbooks():
    """Σ N² s²/n of 4 of 40 and of 6 of 180 people; without one's own scale it is refused."""
    strata = np.repeat([0, 1], [4, 6])
    base = np.where(strata == 0, 10.0, 30.0)
    sizes = np.bincount(strata)[strata]
    one = base[:, None] * np.where(strata[:, None] == strata, (sizes / (sizes - 1))[None], 1.0)
    replicates = one * (1 - np.eye(10))
    table = surveyed(base, replicates)
    (_, total), sampled = moved(table, "jkn", (sizes - 1) / sizes)
    parts = [yes(table)[strata == place] for place in range(2)]
    assert total == pytest.approx(
        40**2 * parts[0].var(ddof=1) / 4 + 180**2 * parts[1].var(ddof=1) / 6, rel=1e-10
    )
    assert sampled.replicates.degrees == 8
    with raises(InputError, "weights.scale_missing"):
        ReplicateWeights("w", "jkn")
    # Two of a stratum, of which one is left out: Stata's and R's JK2, of scale 1.
    pairs = np.full(6, 5.0)
    halves = np.column_stack([np.where(np.arange(6) // 2 == one, [0, 10.0] * 3, 5.0) for one in range(3)])
    table = surveyed(pairs, halves, 3)
    by_hand = 25 * np.sum((yes(table)[::2] - yes(table)[1::2]) ** 2)
    assert moved(table, "jkn", 1.0)[0][1] == pytest.approx(by_hand, rel=1e-10)


HADAMARD = np.asarray([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]])


@pytest.mark.parametrize("fay", [0.0, 0.5])
def test_balanced_half_samples_are_the_textbooks(fay):
    """Two people of each of three strata: Σ w² (y₁ − y₂)², whatever Fay's factor, where its scale is said."""
    signs = np.kron(HADAMARD[:, 1:], [1, -1])
    base = np.repeat([3.0, 5.0, 11.0], 2)
    table = surveyed(base, (base * (1 + (1 - fay) * signs)).T)
    (_, total), sampled = moved(table, "brr", 1 / (4 * (1 - fay) ** 2) if fay else None)
    pairs = yes(table)[::2] - yes(table)[1::2]
    assert total == pytest.approx(np.sum((base[::2] * pairs) ** 2), rel=1e-10)
    assert sampled.replicates.degrees == 3
    if fay:
        with raises(InputError, "weights.replicate_spread_differs", "0.25", "brr"):
            moved(table, "brr")


def test_every_bootstrap_of_four_is_the_textbooks():
    """All 4³ draws of three of four people, who weigh 4/3 as much: s²/n."""
    draws = np.asarray([np.bincount(one, minlength=4) for one in product(range(4), repeat=3)])
    base = np.full(4, 2.0)
    table = surveyed(base, (base * draws * 4 / 3).T, 2)
    (share, _), sampled = moved(table, "bootstrap")
    assert share == pytest.approx(64 / 63 * yes(table).var(ddof=1) / 4, rel=1e-10)
    assert sampled.replicates.degrees == 3


def test_the_noise_stays_whole_where_few_people_are_left():
    """Of half of all people drawn, (1 − f) s²/n, and f of the noise, which more people would not lessen."""
    base = np.full(40, 2.0)
    table = surveyed(base, left_out(base, np.arange(40)))
    (share, _), _ = moved(table, "jk1", 0.5 * 39 / 40)
    noise = np.sum(noise_of(yes(table))) / 40**2
    assert share == pytest.approx(0.5 * yes(table).var(ddof=1) / 40 + 0.5 * noise, rel=1e-10)
    assert noise > 0


def drawn(seed):
    """Ten clusters of unlike sizes and weights, in two regions that cut across them."""
    random = np.random.default_rng(seed)
    units = np.sort(random.integers(0, 30, 300))
    base, regions = random.uniform(1, 4, 300)[units], random.integers(0, 2, 300)
    return surveyed(
        base, left_out(base, units), seed, region=pd.Categorical.from_codes(regions, ["a", "b"]), unit=units
    )


def test_shares_of_groups_are_as_wide_as_the_linearised():
    """Of thirty clusters within a tenth; differences, and equal rows that are counted together."""
    table = drawn(4)
    by = {"weights": "w", "by": "region"}
    replicated = Population(**by, replicates=ReplicateWeights("w", "jk1")).sampled(table)
    linear = Population(**by, cluster="unit").sampled(table)
    both = [design_based(table, "q", one, "region") for one in (replicated, linear)]
    assert [one.name for one in both[0]] == [one.name for one in both[1]]
    for one, other in zip(*both, strict=True):
        assert one.draws.mean() == pytest.approx(other.draws.mean(), abs=1e-9)
        assert one.draws.std() == pytest.approx(other.draws.std(), rel=0.1)
    counts = np.where(np.arange(300) % 7, 1, 3)
    whole = Table(table.public, table.private, counts)
    each = np.repeat(np.arange(300), counts)
    codes = table.private["q"].codes[each]
    apart = table_of(table.public.iloc[each], [known_channel("q", ("no", "yes"), codes, WARNER)])
    assert moved(whole, "jk1")[0] == pytest.approx(moved(apart, "jk1")[0], rel=1e-10)


def test_waves_are_samples_of_their_own():
    """The first replicates of two waves have nothing to do with each other: variances add up."""
    tables = {"a": drawn(5), "b": drawn(5)}
    whole = joined(tables, "wave")
    whole = Table(whole.public, whole.private, whole.counts, waves="wave")
    sampled = Population(weights="w", replicates=ReplicateWeights("w", "jk1")).sampled(whole)
    assert sampled.replicates.degrees == 29
    sds = {one.name: one.draws.std() for one in design_based(whole, "q", sampled)}
    alone = moved(tables["a"], "jk1")[0][0]
    both = sds["design-based share q = yes, wave: b − a"] / sds["design-based share q = yes, wave = a"]
    assert both == pytest.approx(np.sqrt(2), rel=1e-6)
    assert sds["design-based share q = yes, wave = a"] == pytest.approx(np.sqrt(alone * 29 / 27), rel=0.01)


def test_columns_are_found_by_their_numbers():
    names = ["w", "w10", "w1", "wave", *(f"w{one}" for one in range(2, 10)), "x1"]
    assert expanded(["w", Numbered("w")], names) == ["w", *(f"w{one}" for one in range(1, 11))]
    assert expanded([Numbered("r0")], ["r01", "r02", "r03"]) == ["r01", "r02", "r03"]


PEOPLE = np.full(12, 5.0)
GOOD = left_out(PEOPLE, np.arange(12))
BAD = [
    ({"replicates": ("v", "jk1")}, "no column is called v and a number"),
    ({"replicates": (["w1"], "jk1")}, "one replicate weight says nothing"),
    ({"replicates": (["w1", "w1"], "jk1")}, "w1 is given twice"),
    ({"replicates": (["w1", "w"], "jk1")}, "w is given twice"),
    ({"replicates": (["w1", "w99"], "jk1")}, "no column 'w99'"),
    ({"replicates": (["w1", "name"], "jk1")}, "name must hold numbers"),
    ({"replicates": (["w1", "blank"], "jk1")}, "blank is blank in 1 row"),
    ({"replicates": (["w1", "low"], "jk1")}, "low must be 0 or more"),
    ({"replicates": (["w1", "nobody"], "jk1")}, "nobody is 0 in every row"),
    ({"replicates": ("gap", "jk1")}, "gap1 and gap3 follow each other"),
    ({"replicates": ("late", "jk1")}, "the first column of late and a number is late2"),
    ({"replicates": ("factor", "jk1")}, "multiply them by w"),
    ({"replicates": ("w", "brr")}, "by 0.091 times what brr does"),
    ({"replicates": ("w", "bootstrap")}, "times what bootstrap does"),
    ({"replicates": ("w", "jk1", 12.0)}, "by 13 times what jk1 does"),
    ({"replicates": ("w", "jk1", [1.0, 2.0])}, "12 replicate weights, and 2 scales"),
    ({"replicates": ("w", "jk1"), "weights": "zero"}, "zero must be positive"),
    ({"replicates": ("w", "jk1"), "weights": None}, "need the weights that they replicate"),
    ({"replicates": ("w", "jk1"), "weights": None, "inclusion": "p"}, "need the weights"),
    ({"replicates": ("w", "jk1"), "strata": "name"}, "leave out strata and clusters"),
    ({"replicates": ("w", "jk1"), "by": "name"}, "w1 weighs nobody of some group"),
]


@pytest.mark.parametrize(("given", "said"), BAD, ids=[said for _, said in BAD])
def test_replicates_that_cannot_be_are_refused(given, said):
    """Before anything is drawn, in one line."""
    columns = {f"factor{one}": GOOD[:, one - 1] / 5 for one in range(1, 13)}
    more = {"gap1": PEOPLE, "gap3": PEOPLE, "late2": PEOPLE, "late3": PEOPLE, "nobody": 0 * PEOPLE}
    more |= {
        "name": list("abcdefghijkl"),
        "blank": [np.nan, *PEOPLE[1:]],
        "low": PEOPLE - 5.5,
        "same": PEOPLE,
    }
    more |= {"zero": PEOPLE - 5, "p": PEOPLE / 5}
    table = surveyed(PEOPLE, GOOD, **columns, **more)
    kind = ReplicateWeights(*given["replicates"])
    over = Population(**{"weights": "w", **given, "replicates": kind})
    formula = "q ~ name" if "by" in given else "q ~ 1"
    with pytest.raises(InputError, match=said) as error:
        analyse_table(table, formula, method="laplace", population=over)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("kind", "scale"), [("jk3", None), ("jk1", 0.0), ("jk1", [1, -1]), ("brr", float("nan"))]
)
def test_a_type_or_scale_that_is_none_is_refused(kind, scale):
    with pytest.raises(InputError, match=r"type of replicate weights|must be positive"):
        ReplicateWeights("w", kind, scale)


FIT = ["fit", "--table", "t.csv", "--design", "d.json", "--formula", "q ~ 1", "--out", "out"]


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = drawn(4)
    said = np.asarray(["no", "yes"])[table.private["q"].codes]
    table.public.drop(columns="unit").assign(q=said).to_csv("t.csv", index=False)
    column = {"design": "warner", "p": "0.8", "reports": ["no", "yes"]}
    (tmp_path / "d.json").write_text(json.dumps({"format": "ldpkit.design/1", "columns": {"q": column}}))


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (["--replicate-weights", "w"], 2, "needs --replicate-type: jk1, jkn, brr, bootstrap"),
        (["--replicate-type", "jk1"], 2, "--replicate-type is for --replicate-weights"),
        (["--replicate-weights", "w1,", "--replicate-type", "jk1"], 2, "it must be PREFIX, or columns A,B"),
        (
            ["--replicate-weights", "w", "--replicate-type", "jk1", "--replicate-scale", "x"],
            2,
            "must be a number",
        ),
        (["--replicate-weights", "v", "--replicate-type", "jk1"], 3, "no column is called v and a number"),
        (["--replicate-weights", "w", "--replicate-type", "brr"], 3, "of another type"),
    ],
)
@pytest.mark.usefixtures("files")
def test_a_command_with_replicates_that_cannot_be_is_refused(given, code, said, tmp_path, capsys):
    assert main([*FIT, "--weights", "w", *given]) == code
    line = capsys.readouterr().err.strip().splitlines()
    assert said in line[-1]
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("files")
def test_from_a_file_to_a_design_based_share(tmp_path):
    given = ["--weights", "w", "--replicate-weights", "w", "--replicate-type", "jk1", "--method", "laplace"]
    assert main([*FIT, *given]) in (0, 4)
    entry = json.loads((tmp_path / "out/posterior.json").read_text())["questions"]["q"]
    found = entry["quantities"]["design-based share q = yes"]
    assert found["sd"] == pytest.approx(np.sqrt(moved(drawn(4), "jk1")[0][0] * 29 / 27), rel=0.01)
    assert (
        "30 replicate weights (w1 to w30, jk1), with 29 degrees" in (tmp_path / "out/report.html").read_text()
    )
