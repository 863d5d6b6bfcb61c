"""The vectors as a program in C, which a board or a sanitizer runs."""

import json
import math

from conformance.native import Port
from conformance.run import cases
from ldp_client.documents.study import Study
from ldpkit.compiling import question_in_c
from tests import studies

# What C leaves to others: secure sums, and digests, which `ldpkit compile` writes.
NOT_IN_C = {"summed_gaussian", "pieces", "digest"}
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
