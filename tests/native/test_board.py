"""The core on a Cortex-M3 in QEMU: vectors, size of code, and a report that a collector stores."""

import json
import math
import subprocess

import pytest

from conformance.native import CORE, Port
from conformance.run import cases
from ldp_client.documents.study import Study
from ldpkit.cli import main
from ldpkit.compiling import question_in_c
from tests import studies
from tests.kit.collectors import Server
from tests.kit.programs import need
from tests.native.test_core import NOT_IN_C
from tests.native.test_example import EXAMPLE, sent

BOARD = EXAMPLE / "board"
FLAGS = ("-std=c99", "-Os", "-mthumb", "-Wall", "-Wextra", "-Wno-unused-variable", "-Werror")
LARGEST_CODE = 12 * 1024
# More random bytes than that have only lists of 1,000 choices.
LONGEST = 1500
RUNNER = """
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "ldpkit.h"
#ifdef WATCHED
/* Memcheck reports each branch and each index that depends on undefined memory: on an answer. */
#include <valgrind/memcheck.h>
#define HIDE(memory, size) VALGRIND_MAKE_MEM_UNDEFINED(memory, size)
#define SHOW(memory, size) VALGRIND_MAKE_MEM_DEFINED(memory, size)
#else
#define HIDE(memory, size) (void)0
#define SHOW(memory, size) (void)0
#endif

typedef struct vector {
    const ldp_question *question;
    const ldp_value *values;
    const unsigned char *random, *payload;
    uint32_t taken;
} vector;

static const unsigned char *next;
static uint64_t work[8192];

static size_t fill(void *context, unsigned char *out, size_t size) {
    (void)context;
    memcpy(out, next, size);
    next += size;
    return size;
}

static int passes(const vector *test) {
    static ldp_random random;
    unsigned char payload[1024], kept[1024];
    ldp_value values[130];
    ldp_result result;
    if (test->question->field_count > 130) return 0;
    memcpy(values, test->values, test->question->field_count * sizeof *values);
    if (test->payload) HIDE(values, sizeof values);
    next = test->random;
    ldp_random_begin_recorded(&random, fill, NULL);
    if (test->question->memory) {
        result = ldp_draw_permanent(test->question, values, &random, kept);
        if (!result) result = ldp_draw_memoized(test->question, kept, &random, payload);
    } else {
        result = ldp_draw(test->question, values, &random, work, payload);
    }
    SHOW(payload, sizeof payload);
    SHOW(&result, sizeof result);
    if (!test->payload) return result == LDP_ERROR_ANSWER && random.taken == 0;
    if (result || random.taken != test->taken) return 0;
    return !memcmp(payload, test->payload, test->question->payload_size);
}
"""
MAIN = """
int main(void) {
    unsigned passed = 0, count = sizeof VECTORS / sizeof *VECTORS;
    for (unsigned i = 0; i < count; i++) {
        if (passes(VECTORS + i)) passed++;
        else printf("failed: %s %u\\n", VECTORS[i].question->id, i);
    }
    printf("%u of %u\\n", passed, count);
    return passed != count;
}
"""


def run(folder, sources, name):
    """Compile for the board, and run it in QEMU. Return what it prints."""
    need("arm")
    board = ["-mcpu=cortex-m3", "--specs=rdimon.specs", "-nostartfiles", "-T", str(BOARD / "board.ld")]
    files = [*map(str, sorted(CORE.glob("*.c"))), str(BOARD / "start.c"), *map(str, sources)]
    include = ["-I", str(CORE), "-I", str(folder)]
    subprocess.run(["arm-none-eabi-gcc", *FLAGS, *board, *include, "-o", folder / name, *files], check=True)
    command = ["qemu-system-arm", "-M", "mps2-an385", "-nographic", "-semihosting", "-kernel", name]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def bytes_in_c(data):
    return f"(const unsigned char[]){{{','.join(map(str, data))}}}"


def value_in_c(value):
    if math.isfinite(value.number):
        number = value.number.hex()
    else:
        number = "NAN" if math.isnan(value.number) else "INFINITY" if value.number > 0 else "-INFINITY"
    return f"{{{value.kind}, {value.choice}u, {number}}}"


def drawn_cases():
    """Yield (question, values, case, expected) of each case that a compiled question can have."""
    known = {}
    for case, expected in cases():
        if case["case"].split()[0] in NOT_IN_C or case["kind"] != "draw" or expected["bytes"] > LONGEST:
            continue
        document = json.dumps(case["question"])
        if document not in known:
            known[document] = Study(studies.document(case["question"])).questions[0]
        question, answer = known[document], case["answer"]
        is_record = isinstance(answer, dict) and len(answer) <= len(question.fields)
        if question.ask != "record" or is_record:
            yield question, Port.values_of(question, answer), case, expected


def vectors_in_c():
    """The text of a program that runs the vectors, and how many it has."""
    lines, names, rows = [RUNNER], {}, []
    for question, values, case, expected in drawn_cases():
        if question not in names:
            names[question] = name = f"q{len(names)}"
            lines.append(f"static const ldp_question {name} = {question_in_c(question, '', '')};")
        shown = ", ".join(map(value_in_c, values))
        taken = expected["bytes"]
        random = bytes_in_c(bytes.fromhex(case["random"])[:taken] or b"\0")
        payload = bytes_in_c(bytes.fromhex(expected["payload"])) if "payload" in expected else "0"
        rows.append(
            f"    {{&{names[question]}, (const ldp_value[]){{{shown}}}, {random}, {payload}, {taken}}},"
        )
    return "\n".join([*lines, "static const vector VECTORS[] = {", *rows, "};", MAIN]), len(rows)


@pytest.mark.slow
def test_vectors_pass_on_a_cortex_m3(tmp_path):
    need("arm")
    text, count = vectors_in_c()
    source = tmp_path / "vectors.c"
    source.write_text(text)
    assert count > 2000
    assert run(tmp_path, [source], "vectors.elf") == f"{count} of {count}\n"


@pytest.mark.slow
def test_collector_stores_the_board_s_report(tmp_path):
    study = EXAMPLE / "study.json"
    command = ["compile", str(study), "--to", "c", "--collector", "https://study.example.org"]
    assert main([*command, "--out", str(tmp_path)]) == 0
    first = run(tmp_path, [BOARD / "main.c"], "board.elf")
    assert run(tmp_path, [BOARD / "main.c"], "board.elf") == first
    words, body, _ = first.split("\n")
    collector = Server(tmp_path)
    try:
        assert collector.request("POST", "/v1/studies", json.loads(study.read_text())) == 201
        assert sent(collector.url, words, body)["result"] == "stored"
    finally:
        collector.kill()


@pytest.mark.slow
def test_code_is_small_on_a_cortex_m0(tmp_path):
    need("arm")
    sizes = []
    for source in sorted(CORE.glob("*.c")):
        if source.name != "tables.c":
            target = tmp_path / f"{source.stem}.o"
            command = ["arm-none-eabi-gcc", *FLAGS, "-mcpu=cortex-m0plus", "-c", "-o", target, source]
            subprocess.run(command, check=True)
            shown = subprocess.run(["arm-none-eabi-size", target], check=True, capture_output=True, text=True)
            sizes.append(int(shown.stdout.splitlines()[1].split()[0]))
    assert sum(sizes) <= LARGEST_CODE
