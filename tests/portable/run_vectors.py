"""Run the test vectors and say what differs."""

import json

from ldp_client.answering import perturb_answers
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.errors import AnswerError, StudyError
from ldp_client.documents.report import report_id_of
from ldp_client.documents.study import Study
from ldp_client.mechanisms import mechanism_for
from tests.portable.stream import Stream

# {mechanism: the integers that decide its law}
MECHANISMS = {
    "laplace": ("levels",),
    "gaussian": ("levels",),
    "randomized_response": ("threshold",),
    "oue": ("threshold",),
    "sue": ("threshold",),
    "subset_selection": ("threshold", "size"),
    "olh": ("threshold", "hashes"),
    "hadamard": ("threshold", "blocks", "width"),
    "memoized": ("again",),
    "gaussian_record": ("distance", "grid", "radius"),
    "gaussian_statistics": ("radius", "weight", "distance", "diagonal", "off_diagonal"),
    "sampled_products": ("threshold", "total"),
    # A record's has those of gaussian_statistics, the others a grid.
    "summed_gaussian": ("size", "grid", "largest", "distance", "diagonal", "off_diagonal"),
}
SPECIAL_NUMBERS = ("NaN", "Infinity", "-Infinity")


def integers(mechanism):
    """The integers that decide a mechanism's law, as decimal strings."""
    # Numbers that may be refused are those of their mechanism, and a coin.
    names = MECHANISMS.get(mechanism.name, ("levels", "threshold"))
    names = [name for name in names if hasattr(mechanism, name)]
    return {name: str(getattr(mechanism, name)) for name in names}


# What is no finite number is refused now. Older vectors have the payload of the place on the grid that it
# took: of a number far beyond the bounds, or of their middle.
FAR = {"Infinity": 1e300, "-Infinity": -1e300}


def decoded(answer):
    """An answer from its JSON form, in which a string may stand for a number that JSON lacks."""
    if isinstance(answer, dict):
        return {name: decoded(answer[name]) for name in answer}
    return float(answer) if answer in SPECIAL_NUMBERS else answer


def in_its_place(asked, answer):
    """The answer of an older vector to a question, or to a field of one, as a finite number."""
    if isinstance(answer, dict):
        fields = {field.id: field for field in asked.features}
        fields[asked.response.id] = asked.response
        return {name: in_its_place(fields.get(name), answer[name]) for name in answer}
    if asked is None or asked.bounds is None or not (answer is None or answer in SPECIAL_NUMBERS):
        return answer
    low, high = [float(bound) for bound in asked.bounds]
    return FAR.get(answer, (low + high) / 2)


def stream_of(entry):
    return Stream(bytes.fromhex(entry.get("head", "")), entry["seed"])


def perturbed(mechanism, answer, random):
    """The payload; of a secure sum the vector that a device splits, as no payload is ever made of it."""
    if hasattr(mechanism, "noisy_vector"):
        return mechanism.noisy_vector(mechanism.quantise(answer), random)
    return mechanism.perturb(answer, random)


def outcome(mechanism, draw, asked=None):
    """What one draw gives: payload and bytes read, or the field of the answer that was refused.

    asked: the question of an older vector, whose missing numbers are replaced.
    """
    stream = stream_of(draw)
    answer = in_its_place(asked, draw["answer"]) if asked else decoded(draw["answer"])
    try:
        payload = perturbed(mechanism, answer, NotForRealAnswers(stream.read))
    except AnswerError as error:
        return {"refused": error.field, "bytes": stream.taken}
    return {"payload": payload.hex(), "bytes": stream.taken}


def report_outcome(entry):
    """The report of a whole study, and the bytes read."""
    study = Study(entry["study"])
    mechanisms = {question.id: mechanism_for(question) for question in study.questions}
    stream = stream_of(entry)
    answers = {name: in_its_place(study.question(name), entry["answers"][name]) for name in entry["answers"]}
    report = perturb_answers(study, mechanisms, answers, NotForRealAnswers(stream.read))
    assert report.id == report_id_of(report.secret)
    # These vectors are older than secrets: what was drawn stands in the place of the id that is made of it.
    report.id = report.secret.hex()
    return {"report": report.to_json(), "bytes": stream.taken}


def public_outcome(entry):
    """The report of a study with public fields and the bytes read, or the field that is refused."""
    study = Study(entry["study"])
    mechanisms = {question.id: mechanism_for(question) for question in study.questions}
    stream = stream_of(entry)
    try:
        report = perturb_answers(study, mechanisms, entry["answers"], NotForRealAnswers(stream.read))
    except AnswerError as error:
        return {"refused": error.field, "bytes": stream.taken}
    return {"report": report.to_json(), "bytes": stream.taken}


def study_outcome(text):
    """A study's canonical text and digest, or the field that is refused."""
    try:
        study = Study.from_json(text)
        for question in study.questions:
            mechanism_for(question)
    except StudyError as error:
        return {"refused": error.field}
    return {"canonical": study.to_json(), "digest": study.digest}


def expected(entry, found):
    return {name: entry.get(name) for name in found}


def mechanism_failures(vectors, older=True):
    questions, mechanisms = {}, {}
    for name in vectors["studies"]:
        entry = vectors["studies"][name]
        questions[name] = Study(entry["study"]).questions[0]
        mechanisms[name] = mechanism_for(questions[name])
        if integers(mechanisms[name]) != entry["integers"]:
            yield f"{name}: {integers(mechanisms[name])}"
    for draw in vectors["draws"]:
        found = outcome(mechanisms[draw["study"]], draw, questions[draw["study"]] if older else None)
        if found != expected(draw, found):
            yield f"{draw}: found {found}"


def report_failures(vectors):
    for entry in vectors["reports"]:
        found = report_outcome(entry)
        if found != expected(entry, found):
            yield f"{entry['seed']}: found {found}"


def public_failures(vectors, name="public"):
    yield from study_failures(vectors["studies"])
    for entry in vectors[name]:
        found = public_outcome(entry)
        if found != expected(entry, found):
            yield f"{entry['seed']}: found {found}"


def id_failures(vectors):
    for entry in vectors["report_ids"]:
        found = report_id_of(bytes.fromhex(entry["secret"]))
        if found != entry["id"]:
            yield f"{entry['secret']}: found {found}"


def study_failures(entries):
    for entry in entries:
        found = study_outcome(entry["text"])
        if found != expected(entry, found):
            yield f"{entry['name']}: found {found}"


def failures(folder):
    """{file: differences} for every vector file of a folder."""

    def load(name):
        with open(f"{folder}/{name}.json", encoding="utf-8") as file:
            return json.load(file)

    found = {name: list(mechanism_failures(load(name))) for name in MECHANISMS}
    for name in ("levels", "several", "missing"):
        found[name] = list(mechanism_failures(load(name), older=False))
    found["reports"] = list(report_failures(load("reports")))
    found["report_ids"] = list(id_failures(load("report_ids")))
    found["public"] = list(public_failures(load("public")))
    found["languages"] = list(public_failures(load("languages"), "languages"))
    for name in ("studies", "authors", "sections", "channels", "askers"):
        found[name] = list(study_failures(load(name)[name]))
    for name in ("refusable_numbers", "refusal"):
        found[name] = [*mechanism_failures(load(name), older=False), *study_failures(load(name)[name])]
    return found
