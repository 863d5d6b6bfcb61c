"""Whether a survey with dice gives its published estimates: `python -m benchmarks.published_survey`.

In Nigeria contacts with armed groups were asked with a forced response: 1 on the die means no, 6 means yes
(Blair, Imai and Zhou 2015, package rr). The file is rr/nigeria.csv in LDPKIT_DATA, or in ../shared/golden.
"""

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.running import Row
from inference.analyses.analysing import model_of
from inference.analyses.peaks import peak_of
from inference.analyses.program import assemble
from inference.analyses.survey import load_survey

BESIDE = Path(__file__).parents[2] / "shared" / "golden"
COLUMNS = "cov.asset.index + cov.married + I(cov.age/10) + I((cov.age/10)**2) + cov.education + cov.female"
FORMULA = f"rr.q1 ~ {COLUMNS}"
# No and yes, each by chance alone with 1/6.
FORCED = {
    "answers": ["no", "yes"],
    "reports": ["0", "1"],
    "matrix": [["5/6", "1/6"], ["1/6", "5/6"]],
}
PUBLISHED = [-0.34017, 0.07896, -0.26743, -0.35283, 0.04099, -0.00691, -0.55439]
PUBLISHED_SDS = [0.49292, 0.04042, 0.24137, 0.26368, 0.02713, 0.04466, 0.16268]
PUBLISHED_LOG_LIKELIHOOD = -1540.11785


def main(argv: Sequence[str] | None = None) -> None:
    """Print the largest distances of mode, sds and log-likelihood from the published ones."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args(argv)
    table = Path(os.environ.get("LDPKIT_DATA", BESIDE)) / "rr" / "nigeria.csv"
    with TemporaryDirectory(prefix="ldpkit-") as folder:
        design = Path(folder) / "design.json"
        design.write_text(json.dumps({"format": "ldpkit.design/1", "columns": {"rr.q1": FORCED}}))
        people, _ = load_survey(str(table), str(design), FORMULA, drop=True)
    analysis = assemble(people, FORMULA, "flat")
    peak = peak_of(analysis, model_of(analysis))
    for what, ours, published, most in (
        ("mode", list(peak.values.values()), PUBLISHED, 1e-4),
        ("sds of the observed information", list(peak.sds.values()), PUBLISHED_SDS, 1e-3),
        ("log-likelihood", peak.log_likelihood, PUBLISHED_LOG_LIKELIHOOD, 1e-4),
    ):
        distance = float(np.abs(np.subtract(ours, published)).max())
        print(Row(f"{what}, {people.n} people", f"off by {distance:.1g}", f"≤ {most:g}", distance <= most))


if __name__ == "__main__":
    main()
