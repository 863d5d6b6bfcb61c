"""The demo, step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from inference.demo.collecting import running_collector, send_all
from inference.demo.raw_answers import raw_draws
from inference.demo.survey import answers_of, study_for
from inference.fitting import fit
from inference.results.folder import save_report
from inference.results.posterior import Posterior
from inference.results.saving import new_folder
from ldp_client.documents.errors import TransferError
from schemas import Study
from summaries.reading import summarize

Progress = Callable[[str], None]
# The questions' mean epsilon; and the seed of the people and the sampler, not of the noise.
EPSILON, SEED = "1", 0


def run(out: Path, people: int | None, progress: Progress) -> dict[str, Posterior]:
    """Collect the survey from one device for each person, fit it, and write the results to `out`.

    Raises InputError, TransferError. Leaves no running process and no half-written result.
    """
    study = study_for(EPSILON)
    answers = answers_of(people, SEED)
    with new_folder(out) as folder:
        (folder / "study.json").write_text(study.to_json() + "\n", encoding="utf-8")
        collect(study, answers, folder / "reports.ndjson", progress)
        summary = summarize(study, [str(folder / "reports.ndjson")])
        (folder / "summary.json").write_text(summary.to_json() + "\n", encoding="utf-8")
        posteriors = fit(study, summary, SEED, progress)
        progress("drawing the report page")
        save_report(study, posteriors, folder, raw_draws(study, answers, SEED))
    return posteriors


def collect(study: Study, answers: Sequence[dict[str, Any]], path: Path, progress: Progress) -> None:
    """Publish the study, let every device send, and export the reports. Raises TransferError."""
    with TemporaryDirectory(prefix="ldpkit-") as name:
        folder = Path(name)
        with running_collector(folder) as collector:
            progress(f"a collector listens on {collector.url}")
            collector.publish(study)
            twice = send_all(study, answers, collector.url, folder / "devices", progress)
            collector.export(study, path)
    # The last line is the count of the others.
    stored = sum(1 for _ in path.open(encoding="utf-8")) - 1
    progress(f"{twice} devices sent twice; {stored} reports are stored")
    if stored != len(answers):
        raise TransferError(
            f"{len(answers)} devices answered, but {stored} reports were stored", code="demo.reports_missing"
        )
