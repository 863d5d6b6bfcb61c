/**
 * One yes/no question on a page of your own: for engineers who have a site, and no wish to learn the answers.
 *
 * The visitor's browser draws the noise; the report goes straight to the collector, whose setting `cors_origins` must list
 * this site. The answer reaches no server: not this site's, not the collector's.
 */

import { LdpkitError, fetchStudy, openDevice } from "./ldpkit/index.js";

const { collector, study: id, maxEpsilon } = document.body.dataset;
const show = (name, text) => (document.getElementById(name).textContent = text);
// The report that the visitor sees. Not read from the page, whose text a translator may change.
let shown;
const reveal = (name, seen) => (document.getElementById(name).hidden = !seen);

/** Show what the state of this browser's one report asks for: an answer, consent, or patience. */
async function refresh(device, study) {
  const { answered, report } = await device.status(study);
  reveal("ask", !answered);
  reveal("send", report?.state === "held");
  shown = report?.body ?? "";
  show("report", shown);
  const said = { held: "", queued: "It waits, and is sent when you come back.", sent: "It was sent. Thank you.",
    ticketless: "It waits for a ticket.", refused: "The collector refused it." };
  show("said", answered ? (said[report?.state] ?? "You answered here before. A question is asked once.") : "");
}

async function main() {
  const device = await openDevice({ maxEpsilon, collector });
  // What waits from an earlier visit leaves, also if the study is closed by now.
  const study = await fetchStudy(device, id).finally(() => device.flush({ attempts: 1 }));
  const [question, another] = study.questions;
  if (another || question.ask !== "yes_no" || question.refusal || question.mechanism.name === "memoized") {
    throw new Error("this page is for a study of one yes/no question, asked once");
  }
  const [numerator, denominator] = question.mechanism.epsilon;
  const epsilon = Number(numerator) / Number(denominator);
  const sure = Math.ceil((1000 * Math.exp(epsilon)) / (1 + Math.exp(epsilon))) / 10;
  show("title", study.title);
  show("text", question.text || question.id);
  show("odds", `Whoever reads the report, and could only guess before, is at most ${sure} % sure of your answer after.`);

  onSubmit("ask", async (form) => {
    const answer = new FormData(form).get("answer");
    form.reset();
    // It may have been closed since the page was opened: then no noise is drawn.
    await fetchStudy(device, id);
    await device.answer(study, { [question.id]: answer });
    await refresh(device, study);
  });
  onSubmit("send", async () => {
    // Of an earlier version, too. In another tab a later one may have been answered meanwhile: its report is shown first.
    const { report } = await device.status(study);
    if (report?.body === shown) {
      await device.consent(report);
      await device.flush();
    }
    await refresh(device, study);
  });
  await refresh(device, study);
}

/** Do that once a form is sent; the second click of a double click asks for nothing new. */
function onSubmit(name, work) {
  let isBusy = false;
  document.getElementById(name).addEventListener("submit", async (event) => {
    event.preventDefault();
    if (isBusy) return;
    isBusy = true;
    await attempt(() => work(event.target));
    isBusy = false;
  });
}

/** Say what went wrong; it never repeats an answer. */
function attempt(work) {
  return work().catch((error) => show("said", error instanceof LdpkitError ? `${error.code}: ${error.problem}` : error.message));
}

attempt(main);
