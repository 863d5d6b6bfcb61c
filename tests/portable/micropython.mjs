// Runs the test vectors on MicroPython: node micropython.mjs REPOSITORY VECTORS MICROPYTHON_MODULE
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

const [repository, vectors, module] = process.argv.slice(2);
const FOLDERS = ["schemas", "ldp_client", "ldp_client/core", "ldp_client/mechanisms"];
const FILES = ["tests/portable/stream.py", "tests/portable/run_vectors.py"];
const { loadMicroPython } = await import(pathToFileURL(module));
const micropython = await loadMicroPython({ heapsize: 32 << 20, stdout: console.log, linebuffer: true });

function copy(from, to) {
  micropython.FS.mkdirTree(dirname(to));
  micropython.FS.writeFile(to, readFileSync(from));
}

function copyFolder(from, to) {
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    if (entry.isFile()) copy(join(from, entry.name), join(to, entry.name));
  }
}

FOLDERS.forEach((folder) => copyFolder(join(repository, folder), join("/", folder)));
FILES.forEach((file) => copy(join(repository, file), join("/", file)));
copyFolder(vectors, "/vectors");
// An error's stack would print the whole of MicroPython's module, which is one line.
try {
  micropython.runPython(`
import sys, json
sys.path.insert(0, "")
from tests.portable.run_vectors import failures
print(json.dumps(failures("/vectors", strict_json=False)))
`);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
