"""`ldpkit compile`: a compiled study's report is Python's, and what the core lacks is refused."""

import ctypes

import pytest

from conformance.native import CHOICE, FILL, NUMBER, RANDOM_BYTES, Port, Value
from ldp_client import mechanism_for
from ldp_client.answering import public_values, quantise_answers, report_of
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.errors import InputError
from ldp_client.documents.study import Study
from ldp_client.mechanisms.memoized import Remembering
from ldpkit.cli import main
from ldpkit.compiling import compile_study
from tests import studies
from tests.kit.errors import raises
from tests.kit.programs import need
from tests.ldp_client.issuers import channel_of
from tests.native.compiled import AGE_GROUP, COLLECTOR, REFUSABLE, REGION, library_of
from tests.portable.vectors import Stream, load

ANSWER = -1
FROM_TICKET = {"id": "arm", "choices": ["a", "b"], "source": "ticket"}
ODD = 'quotes " and \\ and ??/ and */ and $x and é'
STUDIES = {
    "all_kinds": studies.document(*studies.ALL, *studies.NEWER, title=ODD),
    "public": studies.document(studies.CHOICE, public=[REGION, AGE_GROUP, FROM_TICKET], purpose=ODD),
    "sampled": studies.document(*studies.ALL, sample_one_question=True, id="a-b"),
    "norms": studies.document(
        {**studies.LINEAR, "norm": "1000"},
        {**studies.LOGISTIC, "norm": "0.0011"},
        {**studies.RECORD, "norm": "1000"},
        {**studies.YES_NO_RECORD, "norm": "0.01"},
    ),
    "refusable": studies.document(REFUSABLE),
}
ANSWERS = {
    **studies.ANSWERS,
    **studies.NEWER_ANSWERS,
    "income": None,
    "region": REGION["choices"][1],
    "band": "0.25",
}
CHOSEN = {"region": 1, "band": 3}


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    need("gcc")
    made = {name: Study(document) for name, document in STUDIES.items()}
    return library_of(made, tmp_path_factory.mktemp("studies"))


def python_report(study, seed):
    mechanisms = {question.id: mechanism_for(question) for question in study.questions}
    for question in study.questions:
        if question.repeats:
            mechanisms[question.id] = Remembering(mechanisms[question.id], None)
    asked = [*mechanisms, *(field.id for field in study.public if not field.from_ticket)]
    answers = {name: ANSWERS[name] for name in asked}
    stream = Stream(b"", seed)
    quantised = quantise_answers(study, mechanisms, answers)
    source = NotForRealAnswers(stream.read)
    report = report_of(study, mechanisms, quantised, source, public_values(study, answers))
    return report.to_json(), stream.taken


def native_report(core, name, study, seed, wrong=()):
    """The result of a draw, its report and how many bytes it read. wrong: (place, what stands there)."""
    stream = Stream(b"", seed)

    def fill(_context, out, size):
        ctypes.memmove(out, stream.read(size), size)
        return size

    callback = FILL(fill)
    random = (ctypes.c_ubyte * RANDOM_BYTES)()
    core.ldp_random_begin_recorded(random, callback, None)
    table = getattr(core, name)()
    values = [
        value for question in study.questions for value in Port.values_of(question, ANSWERS[question.id])
    ]
    chosen = [CHOSEN[field] for field in sorted(field.id for field in study.public if not field.from_ticket)]
    for place, value in wrong:
        (values if isinstance(value, Value) else chosen)[place] = value
    work = (ctypes.c_uint64 * table.contents.work_words)()
    permanent = (ctypes.c_ubyte * table.contents.permanent_size)()
    secret, text = (ctypes.c_ubyte * 16)(), (ctypes.c_ubyte * table.contents.report_size)()
    array, fields = (Value * len(values))(*values), (ctypes.c_uint32 * len(chosen))(*chosen)
    result = core.ldp_draw_report(table, array, fields, random, work, permanent, secret, text)
    return result, bytes(text).decode(), stream.taken


@pytest.mark.parametrize("name", STUDIES)
def test_report_is_the_same_as_in_python(core, name):
    study = Study(STUDIES[name])
    for seed in ("a", "b", "c", "d"):
        assert native_report(core, name, study, seed) == (0, *python_report(study, seed))


@pytest.mark.attack(15)
@pytest.mark.parametrize("name", STUDIES)
def test_value_beyond_its_field_is_refused_before_a_byte_is_read(core, name):
    study, beyond = Study(STUDIES[name]), (1 << 32) - 1
    wrong = [Value(CHOICE, beyond, 0), Value(7, 0, 0), Value(NUMBER, 0, float("nan"))]
    fields = sum(len(Port.values_of(question, ANSWERS[question.id])) for question in study.questions)
    places = [(place, value) for place in range(fields) for value in wrong]
    places += [(place, beyond) for place, field in enumerate(study.public) if not field.from_ticket]
    for each in places:
        result, text, taken = native_report(core, name, study, "a", [each])
        assert (result, text.strip("\0"), taken) == (ANSWER, "", 0), each


TINY = {**studies.with_epsilon(studies.RECORD, "20"), "norm": "0.0011"}
MANY = {"id": "income", "bounds": ["0", "1000"], "step": "0.5"}
SAMPLED = (studies.MEMOIZED, studies.NUMBER)
UNSUPPORTED = {
    "secure sums": (load("summed_gaussian")["studies"]["moments"]["study"], "unsupported"),
    "blind tickets": (studies.document(channel=channel_of("https://issuer.example")), "unsupported"),
    "batches": (studies.document(channel={"batches": {"hours": 24}}), "unsupported"),
    "samples one question": (studies.document(*SAMPLED, sample_one_question=True), "unsupported"),
    "more than 1000 values": (studies.document(public=[MANY]), "unsupported"),
    # Squares of more than 64 bits.
    "wage": (studies.document(TINY), "norm_unfit"),
}


@pytest.mark.parametrize("what", UNSUPPORTED)
def test_study_beyond_the_core_is_refused(what):
    document, code = UNSUPPORTED[what]
    with raises(InputError, f"compile.{code}", what):
        compile_study(Study(document), COLLECTOR, "c")


PLACE = {**REGION, "id": "place", "ask": "choice", "choices": ["north", '\\b \\u0041 \f \n "$x😀']}
# The word in each language, and its files beside those that all languages have.
WRITTEN = {
    "kotlin": (r'"\\b \\u0041 \u000c \n \"\$x\ud83d\ude00"', {"StudySurvey.kt", "study_survey_jni.c"}),
    "swift": (r'"\u{5c}b \u{5c}u0041 \u{c} \u{a} \u{22}$x😀"', {"StudySurvey.swift"}),
}


@pytest.mark.parametrize("language", WRITTEN)
def test_words_are_escaped_as_the_apps_language_asks(language):
    escaped, names = WRITTEN[language]
    study = Study(studies.document({**studies.CHOICE, **PLACE}, purpose=ODD))
    files = compile_study(study, COLLECTOR, language)
    in_c = compile_study(study, COLLECTOR, "c")
    assert files.keys() - in_c.keys() == names
    assert files["study_survey.h"] == in_c["study_survey.h"]
    (words,) = [files[name] for name in names if name.startswith("Study")]
    assert escaped in words
    assert "https://study.example.org/base/v1/studies/survey/reports/" in words
    assert "north" in words


def test_command_writes_new_files(tmp_path):
    (tmp_path / "study.json").write_text(Study(studies.document(studies.NUMBER)).to_json())
    command = ["compile", str(tmp_path / "study.json"), "--to", "swift", "--collector", COLLECTOR]
    command += ["--out", str(tmp_path / "app")]
    assert [main(command), main(command)] == [0, 3]
    assert {path.name for path in (tmp_path / "app").iterdir()} == {"StudySurvey.swift", "study_survey.h"}
