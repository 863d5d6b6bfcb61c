"""Compiled studies and the ledger in C, called from Python, over a journal that loses power."""

import ctypes
import shutil
from random import Random

from conformance.native import CHOICE, CORE, FILL, NUMBER, RANDOM_BYTES, Value, compiled
from ldp_client.documents.study import Study
from ldpkit.compiling import compile_study
from tests import studies

REGION = {"id": "region", "choices": ["north", 'the “south”\n"end"'], "text": "Where?"}
AGE_GROUP = {"id": "band", "bounds": ["-0.5", "1"], "step": "0.25"}
REFUSABLE = {**studies.NUMBER, "id": "income", "refusal": {"share": "0.5"}}
COLLECTOR = "https://study.example.org/base"
SYNC_STEPS = 200
READ = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_uint32, ctypes.POINTER(ctypes.c_ubyte), ctypes.c_uint32
)
APPEND = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ctypes.c_ubyte), ctypes.c_uint32)
SYNC = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)


def _study(version, *questions, **more):
    return Study({**studies.document(*questions), "version": version, **more})


# What the tests of the ledger answer.
STUDIES = {
    "first": _study(1, studies.NUMBER, studies.MEMOIZED),
    "second": _study(2, studies.MEMOIZED),
    "third": _study(3, studies.MEMOIZED, studies.AGE),
    "other_noise": _study(4, studies.with_epsilon(studies.MEMOIZED, "3")),
    "again": _study(5, studies.NUMBER),
    "elsewhere": _study(1, studies.NUMBER, id="elsewhere"),
    "sampled": _study(
        1, studies.NUMBER, studies.with_epsilon(studies.AGE, "2"), id="sampled", sample_one_question=True
    ),
}


class Journal(ctypes.Structure):
    _fields_ = (("context", ctypes.c_void_p), ("read", READ), ("append", APPEND), ("sync", SYNC))


class Ledger(ctypes.Structure):
    _fields_ = (
        ("journal", ctypes.c_void_p),
        *((name, ctypes.c_uint64) for name in ("epsilon", "delta", "most_epsilon", "most_delta")),
        ("end", ctypes.c_uint32),
        ("first", ctypes.c_uint32),
        ("is_open", ctypes.c_uint8),
    )


class Parcel(ctypes.Structure):
    _fields_ = (
        ("id", ctypes.c_char * 33),
        ("withdrawn", ctypes.c_uint8),
        ("secret", ctypes.c_ubyte * 16),
        ("study", ctypes.c_ubyte * 16),
        *((name, ctypes.c_uint32) for name in ("size", "offset", "next")),
    )


class CompiledStudy(ctypes.Structure):
    """The members of an `ldp_study` that callers need."""

    _fields_ = (
        ("id", ctypes.c_char_p),
        ("version", ctypes.c_uint32),
        ("digest", ctypes.c_char_p),
        ("key", ctypes.c_void_p),
        ("questions", ctypes.c_void_p),
        ("question_count", ctypes.c_uint16),
        ("sample_one_question", ctypes.c_uint8),
        ("public_fields", ctypes.c_void_p),
        ("public_count", ctypes.c_uint16),
        ("head", ctypes.c_char_p),
        ("tail", ctypes.c_char_p),
        *((name, ctypes.c_uint32) for name in ("report_size", "permanent_size", "work_words", "record_size")),
    )


def sources_in(folder, file="", before="", after=""):
    """Copy the core into a new folder, perhaps with one text of a file replaced."""
    shutil.copytree(CORE, folder, ignore=shutil.ignore_patterns("posix"))
    if file:
        text = (CORE / file).read_text()
        assert text.count(before) == 1, before
        (folder / file).write_text(text.replace(before, after))
    return folder


def library_of(studies, folder, fault=()):
    """Compile the core with studies: `name()` of the library returns the address of each.

    fault: a file of the core, a text of it, and what replaces that.
    """
    sources = sources_in(folder / "sources", *fault)
    for name, study in studies.items():
        (header,) = compile_study(study, COLLECTOR, "c").items()
        (sources / f"{name}.h").write_text(header[1])
        table = header[0].removesuffix(".h")
        shown = f"(void){table}_about; (void){table}_texts;"
        (sources / f"study_{name}.c").write_text(
            f'#include "{name}.h"\nconst ldp_study *{name}(void);\n'
            f"const ldp_study *{name}(void) {{ {shown} return &{table}; }}\n"
        )
    core = ctypes.CDLL(str(compiled(folder, sources, ("-std=c99", "-O2", "-Wall", "-Wno-unused-variable"))))
    for name in studies:
        getattr(core, name).restype = ctypes.POINTER(CompiledStudy)
    return core


def source(seed):
    stream = Random(seed)

    def fill(_context, out, size):
        ctypes.memmove(out, stream.randbytes(size), size)
        return size

    return FILL(fill)


def values_of(answers):
    """`ldp_value`s: floats are numbers, integers the indices of choices."""
    made = [Value(NUMBER, 0, part) if isinstance(part, float) else Value(CHOICE, part, 0) for part in answers]
    return (Value * len(made))(*made)


class Storage:
    """A journal in memory. `fuse`: before how many more steps the device dies, and then does nothing more.

    An append has a step for each byte, a sync has 200: it often dies there. `durable`: how many bytes survive
    a loss of power.
    """

    def __init__(self):
        self.bytes, self.durable = bytearray(), 0
        self.fuse = None
        self.journal = Journal(None, READ(self._read), APPEND(self._append), SYNC(self._sync))

    def _burn(self, steps):
        if self.fuse is None:
            return steps
        left = min(steps, self.fuse)
        self.fuse -= left
        return left

    def _read(self, _context, offset, out, size):
        part = bytes(self.bytes[offset : offset + size])
        ctypes.memmove(out, part, len(part))
        return len(part)

    def _append(self, _context, data, size):
        written = self._burn(size)
        self.bytes += ctypes.string_at(data, size)[:written]
        return int(written < size)

    def _sync(self, _context):
        if self._burn(SYNC_STEPS) < SYNC_STEPS:
            return 1
        self.durable = len(self.bytes)
        return 0

    def lose_power(self, random):
        """Drop a part of what was not synced, and leave other bytes in its place at times."""
        kept = random.randint(self.durable, len(self.bytes))
        lost = len(self.bytes) - kept
        del self.bytes[kept:]
        if lost and random.random() < 0.3:
            self.bytes += random.choice((bytes, random.randbytes))(random.randint(1, lost))


class Device:
    def __init__(self, core, storage, fill, epsilon=100, *, raised=0):
        self.core, self.storage, self.ledger = core, storage, Ledger()
        self.random, self.fill = (ctypes.c_ubyte * RANDOM_BYTES)(), fill
        core.ldp_random_begin_recorded(self.random, fill, None)
        budget = (ctypes.c_uint64(int(epsilon * 2**32)), ctypes.c_uint64(1 << 62), raised)
        self.opened = core.ldp_ledger_open(ctypes.byref(self.ledger), ctypes.byref(storage.journal), *budget)

    def answer(self, name, answers, chosen=[]):  # noqa: B006
        study = getattr(self.core, name)()
        work = (ctypes.c_uint64 * study.contents.work_words)()
        record = (ctypes.c_ubyte * study.contents.record_size)()
        public = (ctypes.c_uint32 * len(chosen))(*chosen)
        call = self.core.ldp_answer
        result = call(ctypes.byref(self.ledger), study, values_of(answers), public, self.random, work, record)
        assert not any(record)
        assert not any(work)
        return result

    def parcels(self):
        """Return (id, whether it is withdrawn, bytes) of all that waits."""
        parcel, found = Parcel(), []
        while self.core.ldp_next(ctypes.byref(self.ledger), ctypes.byref(parcel)) == 0:
            body = (ctypes.c_ubyte * parcel.size)()
            call = self.core.ldp_report_bytes
            assert call(ctypes.byref(self.ledger), ctypes.byref(parcel), 0, body, parcel.size) == 0
            found.append((parcel.id.decode(), parcel.withdrawn, bytes(body)))
        return found

    def done(self):
        parcel = Parcel()
        assert self.core.ldp_next(ctypes.byref(self.ledger), ctypes.byref(parcel)) == 0
        return int(self.core.ldp_done(ctypes.byref(self.ledger), ctypes.byref(parcel)))

    def withdraw(self, name):
        return int(self.core.ldp_withdraw(ctypes.byref(self.ledger), getattr(self.core, name)()))
