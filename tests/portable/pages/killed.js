// A worker that answers a study, and stops for good at the step it is told: the page then kills it.
import { openDevice, parseStudy } from "/js/index.js";

let left = Infinity;

function step() {
  left -= 1;
  if (left === 0) {
    postMessage("stopped");
    for (;;);
  }
}

function stepBefore(object, name) {
  const original = object[name];
  object[name] = function (...args) {
    step();
    return original.apply(this, args);
  };
}

stepBefore(IDBDatabase.prototype, "transaction");
stepBefore(IDBObjectStore.prototype, "get");
stepBefore(IDBObjectStore.prototype, "put");

// Zeros are never drawn again, so the number of steps is always the same.
function random(size) {
  step();
  return new Uint8Array(size);
}
random.forTests = true;

onmessage = async ({ data: { text, answers, name, steps } }) => {
  const study = await parseStudy(text);
  const device = await openDevice({ maxEpsilon: "64", name, random });
  left = steps;
  await device.answer(study, answers);
  postMessage("answered");
};
