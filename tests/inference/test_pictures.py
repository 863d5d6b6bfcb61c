"""What a fit's pictures show, that hostile names stay text, and what a fit imports for them."""

import io
import re
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.text import Text
from PIL import Image

from inference.results.figures import limits, to_png, to_svg
from inference.results.intervals import USUAL
from inference.results.plots import BAR, _ends, density_plot, interval_plot, predictive_plot
from inference.results.predictive import Predictive
from tests.inference.test_posterior_surface import SHAPE, made

SVG = "{http://www.w3.org/2000/svg}"
HEAVY = (
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
import inference.cli, inference.fitting, inference.sampling.nuts, inference.results.earlier_steps
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
def test_fit_and_report_do_not_import_table_libraries(pytestconfig, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SAVES, str(tmp_path), *HEAVY],
        capture_output=True,
        text=True,
        check=False,
        cwd=pytestconfig.rootpath,
    )
    assert done.stdout == "[]\n", done.stdout + done.stderr
    assert (tmp_path / "report.html").exists()


def texts(figure):
    return [one.get_text() for one in figure.findobj(Text)]


def lines_of(axes, width):
    """The numbers from which to which its lines of a width go."""
    return [line.get_xdata() for line in axes.lines if line.get_linewidth() == width]


@pytest.mark.parametrize("spread", [2e-16, 2.3e-13, 1e-10])
def test_draws_differing_only_by_rounding_are_one_value(spread):
    assert limits([1.0, 1.0 + spread]) == pytest.approx((0.95, 1.05))
    assert np.histogram([1.0, 1.0 + spread], 60, _ends(np.asarray([1.0, 1.0 + spread])))[0].sum() == 2
    assert limits([np.nan]) == (0, 1)


def test_interval_is_drawn_at_its_numbers_with_name_as_text():
    posterior = made()
    drawn = interval_plot(posterior)
    tree = ElementTree.fromstring(to_svg(drawn))
    assert "p[<b>red</b>]" in [one.text for one in tree.iter(f"{SVG}text")]
    assert not [one.tag for one in tree.iter() if one.tag.endswith("}b")]
    # Both have one scale, so that lengths and distances go together.
    assert drawn.axes[0].get_xlim() == drawn.axes[1].get_xlim()
    for axes, draws in zip(drawn.axes, posterior.draws.values(), strict=True):
        ((low, high),) = lines_of(axes, BAR)
        assert (low, high) == pytest.approx(USUAL.of(draws))
    picture = Image.open(io.BytesIO(to_png(drawn)))
    assert picture.size[0] == 720
    assert (27, 94, 158) in {colour[:3] for _, colour in picture.getcolors(1 << 24)}


def test_figures_of_one_page_share_no_id():
    """Named parts would repeat; ids of clips and markers are hashes of their contents."""
    pages = [to_svg(interval_plot(made())), to_svg(density_plot(made()))]
    assert not [one for one in pages if re.search(r'id="\w+_\d+"', one)]
    assert pages[0] == to_svg(interval_plot(made()))


@pytest.mark.parametrize("name", ["a $x_1$ dollar", "\x07 bell", "\u202e turned", "年齢" * 20])
def test_unusual_names_can_be_drawn(name):
    odd = made(names=(), others={name: np.random.default_rng(1).normal(size=SHAPE)})
    svg = to_svg(interval_plot(odd))
    assert ElementTree.fromstring(svg) is not None
    assert "\u202e" not in svg
    assert "\x07" not in svg
    assert to_png(density_plot(odd)).startswith(b"\x89PNG")


def test_constant_and_infinite_draws_can_be_drawn():
    odd = made(names=(), others={"same": np.ones(SHAPE), "endless": np.full(SHAPE, np.inf)})
    for drawn in (interval_plot(odd), density_plot(odd)):
        assert np.isfinite([axes.get_xlim() for axes in drawn.axes]).all()
        assert ElementTree.fromstring(to_svg(drawn)) is not None


def test_wide_ranges_use_log_scale_with_names_of_groups():
    low, high = np.full((60, 2), [1e-4, 0.5]), np.full(2, 0.3)
    drawn = predictive_plot(Predictive(low, low, high, people={0: "under 30 & <b>"}))
    svg = to_svg(drawn)
    assert [axes.get_yscale() for axes in drawn.axes] == ["log", "log"]
    assert {"0.001", "0.01", "0.1", "under 30 & <b>"} <= set(texts(drawn))
    assert "under 30 &amp; &lt;b&gt;" in svg
    near = predictive_plot(Predictive(high[None], high[None], high))
    assert [axes.get_yscale() for axes in near.axes] == ["linear", "linear"]
