"""The command `ldpkit audit`."""

import argparse
import json

from ldp_client.audit.auditing import audit_study
from ldp_client.audit.findings import table
from ldp_client.commands.output import Step, progress_of, show
from ldp_client.documents.errors import EXIT_NOT_TRUSTED, InputError, UsageError
from ldp_client.documents.study import Study
from ldp_client.files.disk import chosen_questions, refuse_replacing, refuse_replacing_other, replacing
from ldp_client.words.text import say

FEWEST_SAMPLES = 1000
# The first bytes of a file of findings.
FINDINGS = '[\n {\n  "study_digest"'


def run_audit(arguments: argparse.Namespace, study: Study) -> int:
    """ldpkit audit STUDY.json: return 0 if every question passed, else 4."""
    if arguments.out:
        refuse_replacing(arguments.out, [arguments.study])
        refuse_replacing_other(arguments.out, FINDINGS)
    if arguments.samples < FEWEST_SAMPLES:
        raise UsageError.say("cli.few_samples", fewest=FEWEST_SAMPLES)
    if study.protocol is not None:
        raise InputError.say("cli.audit_of_sum", study=study.id)
    audits = []
    questions = chosen_questions(study.questions, arguments.question)
    progress = progress_of(arguments)
    progress(say("cli.auditing", count=len(questions)))
    for audit in audit_study(study, questions, arguments.samples):
        audits.append(audit)
        progress(Step(say("cli.audited", question=audit.question), len(audits), len(questions) + 1))
    is_passed = all([audit.passed for audit in audits])
    found = [{"study_digest": study.digest, **audit.to_dict()} for audit in audits]
    show(arguments, table(audits), {"study": study.id, "passed": is_passed, "audits": found})
    if arguments.out:
        with replacing(arguments.out) as file:
            json.dump(found, file, indent=1, ensure_ascii=False)
            file.write("\n")
    return 0 if is_passed else EXIT_NOT_TRUSTED
