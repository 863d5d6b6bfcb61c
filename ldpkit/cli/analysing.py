"""Commands on files of answers and reports: codebook, perturb, summarize, fit and audit."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ldp_client.documents.errors import EXIT_NOT_TRUSTED, InputError
from ldp_client.words.text import counted
from ldpkit.cli.commands import codebook_option, command, out_option, study_argument
from ldpkit.cli.output import progress, show, warn
from ldpkit.perturbing import perturb_file
from schemas import Study
from schemas.disk import chosen_questions, count_lines, refuse_table, write_new
from schemas.study import load_study
from summaries.progress import Step, reading_of

if TYPE_CHECKING:
    from inference.results.intervals import Interval
    from inference.results.posterior import Posterior

# Noisy reports of each answer that an audit compares.
SAMPLES = 40_000


@command("perturb", "perturb study.json answers.csv --out reports.ndjson")
@study_argument
@click.argument("answers", metavar="ANSWERS")
@click.option("--out", metavar="REPORTS", required=True, help="write the reports to this file (NDJSON)")
@click.option("--missing-as-refusal", is_flag=True, help="read a blank as a refusal")
@codebook_option
def perturb(study: Study, answers: str, out: str, missing_as_refusal: bool, codebook: str | None) -> None:
    """Add device-side noise to a file of answers, or to a data holder's table.

    ANSWERS has a row for each person: CSV, JSON, Parquet, Stata or SPSS. A holder's table is CSV.
    """
    from summaries.people.codebook import read_codebook

    refuse_table(out)
    if study.public:
        warn(f"SENT AS IT IS, without noise: {', '.join(field.id for field in study.public)}")
    tell, people = progress(), count_lines(answers)

    def show_count(count: int) -> None:
        tell(Step(f"  {count} answers perturbed", count, max(count, people)))

    meanings = None if codebook is None else read_codebook(codebook)
    count = perturb_file(study, answers, out, show_count, warn, missing_as_refusal, meanings)
    show([f"{counted(count, 'report')} in {out}"])
    warn("Each run draws new noise and spends epsilon again: keep these reports, run once.")


@command("codebook", "codebook survey.csv --out codebook.json")
@click.argument("table", metavar="TABLE")
@out_option("the draft, for you to correct; then for --codebook")
def codebook(table: str, out: str) -> None:
    """Draft what the columns of a table mean; print what looks odd."""
    from summaries.people.codebook import drafted
    from summaries.people.files import read_frame

    draft, lines = drafted(read_frame(table))
    write_new(out, json.dumps(draft, indent=1, ensure_ascii=False) + "\n", 0o600)
    show([*lines, f"{counted(len(draft), 'column')} in {out}"])


@command("summarize", "summarize study.json reports.ndjson --out summary.json")
@study_argument
@click.argument("reports", nargs=-1, required=True, metavar="REPORTS...")
@out_option("the summary, for `ldpkit fit`")
def summarize(study: Study, reports: tuple[str, ...], out: str) -> None:
    """Reduce reports to a fixed-size, mergeable summary.

    REPORTS are files (NDJSON or Parquet), or the folder or address of a dataset of very many reports.
    """
    import summaries

    # 1. Read columns by processes, or reports one by one if there are no columns; and write.
    refuse_table(out)
    tell = progress()
    if all(path.lower().endswith(".parquet") or "://" in path or os.path.isdir(path) for path in reports):
        summary = summaries.summarize_dataset(study, list(reports), told=reading_of(tell))
    else:
        summary = summaries.summarize(study, list(reports), told=reading_of(tell))
    write_new(out, summary.to_json() + "\n")
    # 2. Tell what it has.
    lines, cells = [], f"{study.cells:,}"
    if summary.cells is not None and study.public:
        lines += [f"kept by cell: {len(summary.cells):,} of {cells} have reports"]
    elif study.public:
        lines += [f"not kept by cell: {cells} are too many; analyses by public field need the reports"]
    lines += [f"{name}: {counted(part.n, 'report')}" for name, part in summary.questions.items()]
    show(lines)


@command("audit", "audit study.json --question ever")
@study_argument
@click.option("--question", metavar="ID", help="audit this question only")
@out_option("also write the findings as JSON", "FILE.json", required=False)
def audit(study: Study, question: str | None, out: str | None) -> int:
    """Try to refute a study's stated privacy. Exit with 0 if every question passed, else with 4."""
    from ldpkit.auditing import auditing

    if study.protocol is not None:
        raise InputError(
            f"study {study.id} is a secure sum: it sends no single report to audit", code="audit.secure_sum"
        )
    audits, tell = [], progress()
    questions = chosen_questions(study.questions, question)
    tell(f"auditing {len(questions)} questions …")
    for each in auditing.audit(study, questions, SAMPLES):
        audits.append(each)
        tell(Step(f"audited {each.question}", len(audits), len(questions) + 1))
    show([line for each in audits for line in each.lines()])
    if out:
        findings = [{"study_digest": study.digest, **each.to_dict()} for each in audits]
        write_new(out, json.dumps(findings, indent=1, ensure_ascii=False) + "\n")
    return 0 if all(each.passed for each in audits) else EXIT_NOT_TRUSTED


F = TypeVar("F", bound=Callable[..., Any])


def sampling_options(function: F) -> F:
    """Add --seed, --method, --draws, --level, --check and --strict."""
    for option in (
        click.option(
            "--seed",
            type=int,
            default=0,
            metavar="N",
            help="the same seed gives the same numbers (default 0)",
        ),
        click.option(
            "--method", default="nuts", metavar="NAME", help="nuts (default); gaussian_approx is fast"
        ),
        click.option(
            "--draws", type=int, default=1000, metavar="N", help="draws of each chain (default 1000)"
        ),
        click.option(
            "--level", type=float, default=0.9, metavar="P", help="level of intervals (default 0.9)"
        ),
        click.option("--check", metavar="POSTERIOR.json", help="compare with an earlier result of this call"),
        click.option("--strict", is_flag=True, help="exit with 4 unless every quantity is usable"),
    )[::-1]:
        function = option(function)
    return function


@command("fit", "fit study.json reports.ndjson --out posterior")
@click.argument("study", metavar="STUDY.json")
@click.argument("reports", nargs=-1, required=True, metavar="REPORTS_OR_SUMMARY...")
@out_option("a new folder for posterior.json, draws, the report and its numbers (CSV)", "DIR")
@click.option(
    "--question", "questions", multiple=True, metavar="ID", help="fit only this question; repeatable"
)
@click.option(
    "--contamination",
    type=float,
    default=0.0,
    metavar="SHARE",
    help="also show bounds on shares and means if this share of reports is arbitrary, such as 0.01",
)
@sampling_options
def fit(
    study: str,
    reports: tuple[str, ...],
    out: str,
    questions: tuple[str, ...],
    contamination: float,
    level: float,
    check: str | None,
    strict: bool,
    **sampling: Any,
) -> int:
    """Fit a posterior to each question.

    REPORTS_OR_SUMMARY is NDJSON or Parquet, one file or several, or what summarize wrote.
    """
    document = load_study(study)
    from inference.fitting import fit as fit_study
    from inference.results.intervals import interval_of
    from inference.results.provenance import made_by, words_of
    from inference.results.report import save_report
    from inference.results.reproduction import compared, earlier_result
    from inference.results.saving import new_folder
    from summaries.reading import evidence_of

    # 1. Read what decides whether the fit can be made.
    interval, tell = interval_of(level), progress()
    with new_folder(Path(out)) as folder:
        evidence = evidence_of(document, reports, reading_of(tell))
        options = words_of(**sampling, level=level, contamination=contamination or None, question=questions)
        made = made_by("fit", [[Path(path)] for path in (study, *reports)] + options)
        earlier = earlier_result(check, made)
        # 2. Fit.
        sampling |= {"questions": questions or None, "contamination": contamination}
        posteriors = fit_study(document, evidence, progress=tell, **sampling)
        # 3. Write the folder.
        save_report(posteriors, folder, document, interval=interval, made=made)
        same, lines = compared(check, earlier, folder)
    return show_posteriors(posteriors, out, interval, lines, same, strict)


def show_posteriors(
    posteriors: Mapping[str, Posterior],
    out: str,
    interval: Interval,
    more: Iterable[str] = (),
    is_good: bool = True,
    strict: bool = False,
) -> int:
    """Print the results and where the report is. Return the exit code.

    It is 0 if every headline may be used, at least with care. more: further lines. is_good: whether nothing
    else speaks against the results. strict: demand that every quantity is usable.
    """
    from inference.results.printed import text_of

    texts = [text_of(posterior, interval) for posterior in posteriors.values()]
    show([*texts, f"report: {Path(out) / 'report.html'}", *more])
    verdicts = [posterior.verdict for posterior in posteriors.values()]
    is_good &= not any(verdict.against if strict else verdict.bad for verdict in verdicts)
    return 0 if is_good else EXIT_NOT_TRUSTED
