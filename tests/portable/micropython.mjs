// Runs a Python text on MicroPython, with the device core at hand and the files of a folder in /data:
// node micropython.mjs REPOSITORY MICROPYTHON_MODULE FOLDER TEXT
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

const [repository, module, folder, text] = process.argv.slice(2);
// What a board installs with mip, and these tests.
const { urls } = JSON.parse(readFileSync(join(repository, "ldp_client/package.json")));
const TESTS = ["tests/portable/stream.py", "tests/portable/run_vectors.py"];

const { loadMicroPython } = await import(pathToFileURL(module));
const micropython = await loadMicroPython({ heapsize: 32 << 20, stdout: console.log, linebuffer: true });

function copy(from, to) {
  micropython.FS.mkdirTree(dirname(to));
  micropython.FS.writeFile(to, readFileSync(from));
}

function copyFolder(from, to) {
  for (const { name } of readdirSync(from, { withFileTypes: true }).filter((entry) => entry.isFile())) {
    copy(join(from, name), join(to, name));
  }
}

for (const [place, name] of urls) copy(join(repository, "ldp_client", name), join("/", place));
for (const name of TESTS) copy(join(repository, name), join("/", name));
copyFolder(folder, "/data");

// An error's stack would print the whole of MicroPython's module, which is one line.
try {
  micropython.runPython("import sys; sys.path[:] = ['']");
  micropython.runPython(text);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
