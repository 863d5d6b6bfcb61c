"""What a fit's pictures show and that hostile names stay words, and what a fit loads for them."""

import io
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from inference.results.canvas import Canvas
from inference.results.intervals import USUAL
from inference.results.panels import Panel, labels, limits, tens, ticks
from inference.results.plots import _ends, density_plot, interval_plot, predictive_plot
from inference.results.predictive import Predictive
from tests.inference.test_posterior_surface import SHAPE, made

SVG = "{http://www.w3.org/2000/svg}"
HEAVY = (
    "matplotlib",
    "pandas",
    "xarray",
    "arviz_base",
    "arviz_stats",
    "scipy.stats",
    "scipy.signal",
    "formulaic",
)
SAVES = """
import sys
import inference.cli, inference.fitting, inference.sampling.nuts, inference.results.joined
from inference.results.folder import save_report
from inference.models.family import MODELS
from schemas import Study
from tests import studies
import numpy as np
from pathlib import Path
from inference.results.diagnostics import diagnose
from inference.results.posterior import Posterior
study = Study(studies.document())
draws = {"p": np.random.default_rng(0).random((4, 500))}
found = diagnose(draws, np.zeros((4, 500), bool))
question = study.questions[0]
one = Posterior(question.id, question.model.name, 9, draws, {"p": 5.0}, found, study.digest, 0)
save_report(study, {question.id: one}, Path(sys.argv[1]))
print([name for name in sys.argv[2:] if name in sys.modules])
"""


@pytest.mark.slow
def test_a_fit_and_its_report_load_no_library_of_plots_or_tables(pytestconfig, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SAVES, str(tmp_path), *HEAVY],
        capture_output=True,
        text=True,
        check=False,
        cwd=pytestconfig.rootpath,
    )
    assert done.stdout == "[]\n", done.stdout + done.stderr
    assert (tmp_path / "report.html").exists()


@pytest.mark.parametrize(
    ("low", "high", "most", "said"),
    [
        (-0.31, 1.02, 7, ["−0.2", "0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (0.9, 5.2, 5, ["1", "2", "3", "4", "5"]),
        (-3e7, 3e7, 3, ["−2e+07", "0", "2e+07"]),
        (1.23456, 1.23459, 3, ["1.23456", "1.23458"]),
        (1234567, 1234568, 3, ["1.234567e+06", "1.2345675e+06", "1.234568e+06"]),
        (99999, 100001, 3, ["9.9999e+04", "1e+05", "1.00001e+05"]),
    ],
)
def test_ticks_are_round_numbers_that_their_labels_tell_apart(low, high, most, said):
    at = ticks(low, high, most)
    assert labels(at) == said
    assert labels([0.05, 0.1], share=True) == ["5 %", "10 %"]
    assert tens(0.02, 300) == pytest.approx([0.1, 1, 10, 100])
    assert limits([np.nan]) == (0, 1)


@pytest.mark.parametrize("spread", [2e-16, 2.3e-13, 1e-10])
def test_draws_that_differ_by_rounding_alone_are_one_number(spread):
    low, high = limits([1.0, 1.0 + spread])
    assert (low, high) == pytest.approx((0.95, 1.05))
    assert np.histogram([1.0, 1.0 + spread], 60, _ends(np.asarray([1.0, 1.0 + spread])))[0].sum() == 2
    assert len(set(labels([1.0, 1.0 + spread]))) <= 2


def test_an_interval_stands_where_its_numbers_are_and_its_name_is_text():
    posterior = made()
    drawn = interval_plot(posterior)
    tree = ElementTree.fromstring(drawn.svg())
    said = [one.text for one in tree.iter(f"{SVG}text")]
    assert "p[<b>red</b>]" in said
    assert not [one.tag for one in tree.iter() if one.tag.endswith("}b")]
    thick = [shape.points for shape in drawn.shapes if shape.width == 3][1:]
    ends = [USUAL.of(draws) for draws in posterior.draws.values()]
    # Both on one scale, so that lengths and distances go together.
    (red, blue), ((a, b), (c, d)) = (line[:, 0] for line in thick), ends
    assert (red[1] - red[0]) / (blue[1] - red[0]) == pytest.approx((b - a) / (d - a))
    assert (blue[1] - blue[0]) / (blue[1] - red[0]) == pytest.approx((d - c) / (d - a))
    picture = Image.open(io.BytesIO(drawn.png()))
    assert picture.size == (720, round(drawn.height * 150 / 72))
    colours = {colour for _, colour in picture.getcolors(1 << 24)}
    assert (27, 94, 158) in colours


def test_draws_without_spread_and_numbers_beyond_floats_have_pictures():
    odd = made(names=(), others={"same": np.ones(SHAPE), "endless": np.full(SHAPE, np.inf)})
    for drawn in (interval_plot(odd), density_plot(odd)):
        places = [shape.points for shape in drawn.shapes]
        assert np.isfinite(np.concatenate(places)).all()
        assert ElementTree.fromstring(drawn.svg()) is not None


def test_what_is_far_apart_is_drawn_by_factors_and_people_have_names():
    low, high = np.full((60, 2), [1e-4, 0.5]), np.full(2, 0.3)
    drawn = predictive_plot(Predictive(low, low, high, people={0: "under 30 & <b>"}))
    said = [one.text for one in drawn.words]
    assert {"0.001", "0.01", "0.1", "under 30 & <b>"} <= set(said)
    panel = Panel(Canvas(100, 100), 0, 0, 100, 100, (0, 1), (0.01, 1), log=True)
    assert panel.places([0.5, 0.5], [0.1, 0]).ravel() == pytest.approx([50, 50, 50, 100])
