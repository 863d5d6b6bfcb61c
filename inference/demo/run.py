"""The demo, step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from inference.demo.collecting import running_collector, send_all
from inference.demo.survey import answers_of, study_for
from inference.fitting import draw_posterior, fit
from inference.limits import check_seed
from inference.models import family_of
from inference.results.folder import FIT_FILES, OwnFiles, save_report, whole_folder
from inference.results.posterior import Posterior
from ldp_client import mechanism_for
from ldp_client.documents.errors import StudyError, TransferError, UsageError
from ldp_client.files.disk import replacing
from schemas import Study
from summaries.reading import summarize_files

Progress = Callable[[str], None]

COLLECTED = ("study.json", "reports.ndjson", "summary.json")


def run(out: Path, people: int | None, epsilon: str, seed: int, progress: Progress) -> dict[str, Posterior]:
    """Collect the survey from one device for each person, fit it, and write the results to `out`.

    Raises InputError, TransferError. Leaves no running process and no half-written result.
    """
    try:
        study = study_for(epsilon)
    except StudyError as error:
        raise UsageError(f"--epsilon {epsilon[:40]}: {error.problem}", code="demo.wrong_epsilon") from None
    for question in study.questions:
        mechanism_for(question)  # an epsilon that is too small shows before anything starts
    check_seed(seed)
    answers = answers_of(people, seed)
    with whole_folder(out, older_files(out, study)) as folder:
        (folder / "study.json").write_text(study.to_json() + "\n", encoding="utf-8")
        collect(study, answers, folder / "reports.ndjson", progress)
        summary = summarize_files(study, [str(folder / "reports.ndjson")])
        with replacing(str(folder / "summary.json")) as file:
            file.write(summary.to_json() + "\n")
        posteriors = fit(study, summary, seed, progress)
        raw = fit_raw(study, answers, seed, progress)
        progress("drawing the report page")
        save_report(study, posteriors, folder, {name: found.draws for name, found in raw.items()})
    return posteriors


def older_files(out: Path, study: Study) -> OwnFiles:
    """Return the files that may be replaced. Reports are included only with the demo's own study.

    Another study's reports may be the only copy.
    """
    try:
        ours = Study.from_json((out / "study.json").read_text(encoding="utf-8")).id == study.id
    except (OSError, UnicodeDecodeError, StudyError):
        ours = False
    return replace(FIT_FILES, others=(*FIT_FILES.others, *COLLECTED)) if ours else FIT_FILES


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


def fit_raw(
    study: Study, answers: Sequence[Mapping[str, Any]], seed: int, progress: Progress
) -> dict[str, Posterior]:
    """Return the posteriors from the raw answers."""
    posteriors = {}
    for question in study.questions:
        progress(f"fitting the raw answers to {question.id}, for comparison")
        model = family_of(question).condition_on_answers(
            question, [person[question.id] for person in answers]
        )
        posteriors[question.id] = draw_posterior(study, question, model, len(answers), seed)
    return posteriors
