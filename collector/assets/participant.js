/** The participant's page: shows the part that fits the report's state, and acts on what the person does. */

import { openDevice, parseStudy } from "../../ldp_client/js/index.js";
import { inWords, say } from "./words.js";

// The codes of errors that have a sentence of their own.
const PROBLEMS = new Set(["study", "closed", "budget", "ledger", "answered"]);
// What a report waits for, as index.d.ts has it.
const REASONS = new Set(["unreachable", "operator", "problem", "foreign"]);
const TIMEOUT_MS = 10_000;

const find = (id) => document.getElementById(id);

/** Run a step, say what went wrong if it did, and show what the device then holds. */
async function step(work) {
  find("problem").hidden = true;
  try {
    await work();
  } catch (error) {
    console.error(error.code ?? error);
    find("problem").textContent = PROBLEMS.has(error.code)
      ? say(`script.${error.code}`)
      : say("script.failed", { message: error.code === "answer" ? wrong(error) : error.message });
    find("problem").hidden = false;
    // On a phone the button that was pressed is screens below.
    find("problem").focus();
  }
}

/** What is wrong with an answer, and with which. */
const wrong = ({ field, problem }) => `${field}: ${say(`script.answer.${problem}`)}`;

/** Why a report was not settled; an older ledger says it in words. */
function why(reason) {
  const [kind, status, problem] = reason.split(" ");
  if (kind === "unserved") return say("script.reason.unserved", { reason: why(reason.slice(kind.length + 1)) });
  return REASONS.has(kind) ? say(`script.reason.${kind}`, { status, problem }) : reason;
}

async function start() {
  if (!isSecureContext) throw new Error(say("script.https"));
  const study = await parseStudy(find("study").textContent);
  const device = await openDevice({ maxEpsilon: find("study").dataset.budget });
  let shown;

  async function show() {
    const { answered, report } = await device.status(study);
    // A further round of repeated questions is new, whatever became of the report before.
    const state = answered ? (report?.state ?? "gone") : "new";
    for (const part of document.querySelectorAll("[data-when]")) {
      part.hidden = !part.dataset.when.split(" ").includes(state);
    }
    if (shown && shown !== state) document.querySelector("section:not([hidden]) > [tabindex]").focus();
    shown = state;
    find("reason").textContent = report?.reason ? say("script.last_time", { reason: why(report.reason) }) : "";
    if (answered && report?.body) await showReport(study, report);
  }

  /** Send what waits; what is shown changes when it is done. */
  async function flush(options) {
    await device.flush(options);
    await show();
  }

  const act = (work) => step(() => work().finally(show));
  function on(id, event, work) {
    let busy = false;
    find(id)?.addEventListener(event, async (happened) => {
      happened.preventDefault();
      // The second tap of a double tap asks for nothing new.
      if (busy) return;
      busy = true;
      await act(work);
      busy = false;
    });
  }

  on("answers", "submit", async () => {
    // Asks the browser not to throw the ledger away when space is short.
    navigator.storage.persist();
    if (await isClosed(study.id)) throw Object.assign(new Error("closed"), { code: "closed" });
    await device.answer(study, answersIn(find("answers"), study), invitation());
    // Not the form's own, in whose place a question of that name stands.
    HTMLFormElement.prototype.reset.call(find("answers"));
  });
  on("consent", "submit", async () => {
    // In another tab a later round may have been answered meanwhile: its report is shown first.
    const { report } = await device.status(study);
    if (report?.body !== find("body").textContent) return find("consent").reset();
    await device.consent(study);
    await show();
    await flush();
  });
  on("again", "submit", () => flush());
  on("invite", "submit", async () => {
    await device.invite(study.id, invitation());
    await show();
    await flush();
  });
  on("withdraw", "click", async () => {
    await device.withdraw(study.id);
    await show();
    await flush();
  });
  addEventListener("online", () => act(flush));
  await show();
  await flush({ attempts: 1 });
}

/**
 * The invitation that the person was given: what they typed last, else what the address carries behind its #,
 * which browsers never send and servers never log.
 */
function invitation() {
  const carried = new URLSearchParams(location.hash.slice(1)).get("invitation") ?? "";
  const typed = [...document.querySelectorAll(".invitation")].map(({ value }) => value);
  // Without the quotes and blanks of the letter that it was copied from: a header could not hold them.
  const ends = /^["'<>()[\],.;:`]+|["'<>()[\],.;:`]+$/g;
  return [carried, ...typed].map((code) => code.replace(/[^!-~]/g, "").replace(ends, "")).findLast(Boolean) ?? "";
}

/** The report's bytes, and what they say in the words of the version that it answers. */
async function showReport(study, { version, body }) {
  find("body").textContent = body;
  find("size").textContent = say("script.size", { count: new TextEncoder().encode(body).length });
  const { digest } = JSON.parse(body);
  const known = digest === study.digest;
  find("version").hidden = known;
  if (!known) find("in-words").replaceChildren();
  const its = known ? study : await versionOf(study.id, version, digest);
  // Another report may be shown by now.
  if (find("body").textContent !== body) return;
  find("version").textContent = `${say("script.another_version")} ${its ? "" : say("script.bytes_only")}`;
  const said = its ? inWords(its, body) : [];
  find("in-words").replaceChildren(...said.flatMap(([asked, words]) => [entry("dt", asked), entry("dd", words)]));
}

/** Whether the collector says that the study was closed, since this page was loaded; not where it says nothing. */
async function isClosed(id) {
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const { status, headers } = await fetch(`/v1/studies/${id}`, { cache: "no-store", credentials: "omit", signal });
    return status === 410 || headers.get("LDPKit-Study") === "closed";
  } catch (error) {
    console.error(error.code ?? error);
    return false;
  }
}

/** The study of that digest from the collector, or null. */
async function versionOf(id, version, digest) {
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const response = await fetch(`/v1/studies/${id}?version=${version}`, { credentials: "omit", signal });
    const found = await parseStudy(await response.text());
    return found.digest === digest ? found : null;
  } catch (error) {
    console.error(error.code ?? error);
    return null;
  }
}

function entry(kind, text) {
  const element = document.createElement(kind);
  element.textContent = text;
  return element;
}

/**
 * {question id: answer} from the form, whose fields are named `question` or `question/field`, and {public field id:
 * value} beside.
 */
function answersIn(form, study) {
  // A form's properties are its fields, by their names: a question may be called "elements".
  const entered = new FormData(form);
  const text = (name) => entered.get(name) ?? "";
  // By its place: HTML changes some characters of a label, such as a carriage return.
  const oneOf = (name, choices) => choices[text(name)];
  function field(name, { ask, bounds, choices }) {
    // A field without a number has NaN, which is refused.
    if (bounds) return parseFloat(text(name));
    return ask === "choice" && Array.isArray(choices) ? oneOf(name, choices) : text(name);
  }
  const record = ({ id, features, response }) =>
    Object.fromEntries([...features, response].map((part) => [part.id, field(`${id}/${part.id}`, part)]));
  // What is sent as it is stands in the form as text, so that no float comes between. The invitation has the rest.
  const inClear = (study.public ?? [])
    .filter(({ source }) => !source)
    .map(({ id, choices }) => [id, choices ? oneOf(id, choices) : text(id)]);
  return Object.fromEntries([
    ...study.questions.map((asked) => [asked.id, asked.ask === "record" ? record(asked) : field(asked.id, asked)]),
    ...inClear,
  ]);
}

await step(start);
