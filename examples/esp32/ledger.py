"""What a board remembers, in one file of a file system whose `rename` replaces in one step (LittleFS).

It knows no versions, consent or pace. It has no checksum, so it misses damage that is still JSON. A memoized
question is answered once: for rounds, store `Remembering.answer` in the same step as the report.
"""

import json
import os
from binascii import hexlify

from ldp_client.answering import perturb_answers
from ldp_client.documents.rational import Rational
from ldp_client.mechanisms import mechanism_for
from ldp_client.mechanisms.memoized import Remembering

LEDGER, WITHDRAWN = "ledger.json", "withdrawn"
MAX_EPSILON = Rational.parse("4")  # for life, over all studies
MAX_DELTA = Rational.parse("1e-5")


def read_ledger():
    """What was answered and what waits. A damaged file raises ValueError: then do not answer."""
    if LEDGER not in os.listdir():
        empty = {"epsilon": [0, 1], "delta": [0, 1]}
        for kind in ("spent", "outbox", "secrets", "deletions", "left"):
            empty[kind] = []
        return empty
    with open(LEDGER) as file:
        return json.load(file)


def write_ledger(ledger):
    with open("ledger.new", "w") as file:
        json.dump(ledger, file)
    os.rename("ledger.new", LEDGER)


def refuse(study, answers, public, today, ledger):
    """RuntimeError where the study may not be answered, now or again; then nothing is drawn."""
    if study.channel:
        raise RuntimeError("this board sends neither in batches nor with blind tickets")
    fields = [field.id for field in study.public]
    if any([name in answers for name in fields]) or any([name not in fields for name in public]):
        raise RuntimeError("public values, and nothing else, are given as public")
    is_dated = study.opens or study.closes
    if is_dated and not (today and (study.opens or today) <= today <= (study.closes or today)):
        raise RuntimeError("not open today, or the day is not known")
    if any([key in ledger["spent"] for key in keys_of(study)]):
        raise RuntimeError("answered before")
    if any([study.id + "/" + name in ledger["spent"] for name in fields]):
        raise RuntimeError("would leave in clear, and was behind noise before")


def spend(study, ledger):
    """RuntimeError where that is more than is left."""
    for kind, most, cost in (("epsilon", MAX_EPSILON, study.epsilon), ("delta", MAX_DELTA, study.delta)):
        spent = Rational(*ledger[kind]) + cost
        if most < spent:
            raise RuntimeError("above the budget")
        ledger[kind] = [spent.numerator, spent.denominator]
    ledger["spent"].extend(keys_of(study))


def keys_of(study):
    return [study.id + "/" + question.id for question in study.questions]


def mechanism_of(question):
    mechanism = mechanism_for(question)
    # What repeats is drawn here once, and never again: nothing has to be kept of it.
    return Remembering(mechanism, None) if question.repeats else mechanism


def is_answered(study_id):
    """Whether a version of the study was."""
    return any([key.startswith(study_id + "/") for key in read_ledger()["spent"]])


def answer_once(study, answers, random, today=None, public=None, host=""):
    """Queue one report; every question is answered once, ever. today: such as "2026-06-15".

    public: what leaves in clear. Given apart, so that no private answer does where a newer study has it
    public. host: where the study's collector is.
    """
    public, ledger = public or {}, read_ledger()
    refuse(study, answers, public, today, ledger)
    spend(study, ledger)
    mechanisms = {question.id: mechanism_of(question) for question in study.questions}
    together = dict(answers)
    together.update(public)
    report = perturb_answers(study, mechanisms, together, random)
    ledger["outbox"].append(report.to_json())
    secret = hexlify(report.secret).decode()
    ledger["secrets"].append([study.id, report.id, secret, study.digest, study.closes, host])
    write_ledger(ledger)
    return report


def entry_of(ledger, report_id):
    """What is kept of a report: study, id, secret; the study's digest and last day; the collector's host."""
    return next(entry for entry in ledger["secrets"] if entry[1] == report_id)


def withdraw():
    """Nothing that waits leaves any more, and what may have left is to be deleted, by its secret.

    At any time, from a button's callback or another thread too: one step that no write of the ledger undoes.
    `main` does the rest.
    """
    with open(WITHDRAWN, "w"):
        pass


def note_left(report_id):
    """Before a report may leave: only what did is deleted."""
    ledger = read_ledger()
    if report_id not in ledger["left"]:
        ledger["left"].append(report_id)
        write_ledger(ledger)


def take_withdrawal():
    """What was withdrawn waits for its deletion alone. From `main`, as all that writes the ledger."""
    if WITHDRAWN in os.listdir():
        ledger = read_ledger()
        ledger["outbox"] = []
        ledger["deletions"] = [one for one in ledger["secrets"] if one[1] in ledger["left"]]
        write_ledger(ledger)
        os.remove(WITHDRAWN)


def waits(text):
    """Whether a report still is to leave: it may have been withdrawn while another one was sent."""
    take_withdrawal()
    return text in read_ledger()["outbox"]


def drop_report(report_id):
    """A report is stored, or refused for good. That it is to be deleted stays so."""
    ledger = read_ledger()
    ledger["outbox"] = [text for text in ledger["outbox"] if json.loads(text)["id"] != report_id]
    write_ledger(ledger)


def drop_deletion(report_id):
    """A report is deleted."""
    ledger = read_ledger()
    ledger["deletions"] = [one for one in ledger["deletions"] if one[1] != report_id]
    write_ledger(ledger)
