"""Commands that read and write files of reports: perturb, summarize and audit."""

import json
import os

import click

from ldp_client.documents.errors import EXIT_NOT_TRUSTED, InputError
from ldp_client.words.text import counted
from ldpkit.cli.commands import codebook_option, command, out_option, study_argument
from ldpkit.cli.output import progress, show, warn
from ldpkit.perturbing import perturb_file
from schemas import Study
from schemas.disk import chosen_questions, count_lines, refuse_table, write_new
from summaries.progress import Step, reading_of

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
