"""Object files for phones, boards and browsers by `zig cc`: they are compiled, not linked and not run."""

import shutil
from pathlib import Path

import pytest

from conformance.native import CORE, FLAGS
from tests.kit.programs import output_of
from tests.native.phones.compilers import zig

pytestmark = pytest.mark.slow

HEADERS = Path(__file__).parent / "headers"
JAVA = Path(shutil.which("java") or "/").resolve().parents[1] / "include"
# ELF, Mach-O of 64 bits, and WebAssembly.
KINDS = {"ios": b"\xcf\xfa\xed\xfe", "wasm": b"\0asm"}
ELF = b"\x7fELF"
CORE_FILES = sorted(CORE.glob("*.c"))
DEVICE = CORE / "posix" / "device.c"
GLUE = CORE / "kotlin" / "ldpkit_jni.c"
# Sizes are of 32 bits; size_t has 16, and so have all buffers.
AVR = ("-mmcu=atmega2560", "-mdouble=64", "-Wno-implicit-int-conversion")
TARGETS = {
    "aarch64-linux-android": (DEVICE, GLUE),
    "arm-linux-androideabi": (DEVICE, GLUE),
    "x86_64-linux-android": (DEVICE, GLUE),
    "aarch64-ios": (DEVICE,),
    "aarch64-ios-simulator": (DEVICE,),
    "riscv32-freestanding": (),
    "wasm32-freestanding": (),
    "avr-freestanding": (),
}


def headers(compiler, target):
    """The flags by which zig finds a C library's headers."""
    known = Path(compiler[0]).parent / "lib" / "libc" / "include"
    if "android" in target:
        processor = target.split("-")[0]
        system = [known / f"{processor}-linux-musl", known / "generic-musl", JAVA, JAVA / "linux"]
        return ["-include", HEADERS / "bionic.h", *(f"-isystem{path}" for path in system)]
    return [f"-isystem{known / 'any-darwin-any' if 'ios' in target else HEADERS}"]


@pytest.mark.parametrize("target", TARGETS)
def test_core_compiles_for_the_target(target, tmp_path):
    compiler = zig()
    flags = [*FLAGS, *headers(compiler, target), *(AVR if target.startswith("avr") else ())]
    include = [f"-I{CORE}", f"-I{CORE / 'posix'}"]
    magic = next((KINDS[kind] for kind in KINDS if kind in target), ELF)
    for source in (*CORE_FILES, *TARGETS[target]):
        made = tmp_path / f"{source.stem}.o"
        command = [*compiler, "-target", target, *flags, *include, "-c", "-o", made, source]
        output_of(*command)
        assert made.read_bytes()[:4] == magic
