/**
 * What a page of another site hears that shows this one in a frame: "ready", and once "done", that nothing is left to do.
 *
 * Never what is asked, answered or shown, nor what became of it: who answered, left or withdrew looks alike.
 */

// Of participant.js: what the page shows of a report that left, or of none that will.
const SETTLED = new Set(["sent", "refused", "withdrawn", "gone"]);
let told = "";

/**
 * Tell the page around this one, if there is one, what `state` means for it: it may take the frame away when "done", so
 * a report that is on its way is not. asks: whether there is a form. hasFailed: whether the report has been tried once.
 */
export function tellFrame(state, asks, hasFailed) {
  if (parent === window) return;
  const isDone = SETTLED.has(state) || (state === "queued" && hasFailed) || (state === "new" && !asks);
  const now = isDone ? "done" : "ready";
  if (now === told || told === "done") return;
  told = now;
  // The collector lets listed sites alone frame its page, and these words are nobody's secret.
  parent.postMessage({ ldpkit: now }, "*");
}
