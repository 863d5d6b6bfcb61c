// Runs a Python text on MicroPython, with the device core at hand and the files of a folder in /data:
// node micropython.mjs REPOSITORY MICROPYTHON_MODULE FOLDER TEXT
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

const [repository, module, folder, text] = process.argv.slice(2);
// What docs/embedding.md says to copy to a board, and these tests.
const CORE = ["ldp_client/documents", "ldp_client/core", "ldp_client/mechanisms", "ldp_client/words"];
const FILES = [
  "ldp_client/__init__.py",
  "ldp_client/answering.py",
  "ldp_client/words/en.core.json",
  "tests/portable/stream.py",
  "tests/portable/run_vectors.py",
];

const { loadMicroPython } = await import(pathToFileURL(module));
const micropython = await loadMicroPython({ heapsize: 32 << 20, stdout: console.log, linebuffer: true });

function copy(from, to) {
  micropython.FS.mkdirTree(dirname(to));
  micropython.FS.writeFile(to, readFileSync(from));
}

function copyFolder(from, to, ending) {
  for (const { name } of readdirSync(from, { withFileTypes: true }).filter((entry) => entry.isFile())) {
    if (name.endsWith(ending)) copy(join(from, name), join(to, name));
  }
}

for (const name of CORE) copyFolder(join(repository, name), join("/", name), ".py");
for (const name of FILES) copy(join(repository, name), join("/", name));
copyFolder(folder, "/data", "");

// An error's stack would print the whole of MicroPython's module, which is one line.
try {
  micropython.runPython("import sys; sys.path[:] = ['']");
  micropython.runPython(text);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
