/** The participant's page: shows the part that fits the report's state, and acts on what the person does. */

import { mechanismFor, openDevice, parseStudy } from "../../../js/index.js";
import { readTicket } from "../../../js/changing.js";
import { answersIn, entriesOf } from "./entries.js";
import { tellFrame } from "./framed.js";
import { sendLater } from "./later.js";
import { entriesHere, foldWho, goTo, isLast, showProgress, turn, turnTo } from "./parts.js";
import { howItLeaves, whenDue, whyNoToken } from "./leaves.js";
import { scaleOf } from "./scale.js";
import { inOwnLabels, shownIn } from "./shown.js";
import { toldInWords } from "./told.js";
import { keep, versionOf } from "./versions.js";
import { inWords, say, sayCount, saidOf, sentence, written } from "./words.js";

// The codes of errors that have a sentence of their own.
const PROBLEMS = {
  study: sentence("This page does not know how to protect what this study asks. Nothing was asked or sent."),
  closed: sentence("This study is not open today. Nothing was sent."),
  budget: sentence("This browser has shared as much as it may with the studies of this site. Nothing was sent."),
  ledger: sentence("This browser cannot store the report safely, so nothing was answered. Is this a private window?"),
  answered: sentence("This browser has answered already, perhaps in another tab. Its report is shown."),
};
// Why a report was not settled.
const REASONS = {
  unreachable: sentence("cannot reach the collector"),
  problem: sentence("HTTP status {status}, {problem}"),
  foreign: sentence("HTTP status {status}, not of the collector"),
};
const TIMEOUT_MS = 10_000;
// After this long what waits is left to the browser, too.
const LATE_MS = 2_000;

// The report that the person sees. Not read from the page, whose text other programs may change.
let bodyShown;

const find = (id) => document.getElementById(id);

/** Run a step, say what went wrong if it did, and show what the device then holds. */
async function step(work) {
  find("problem").hidden = true;
  try {
    await work();
  } catch (error) {
    console.error(error.code ?? error);
    const { code, message } = error;
    warn(Object.hasOwn(PROBLEMS, code) ? say(PROBLEMS[code]) : say("This did not work: {message}", { message }));
  }
}

/** An error that has a sentence of its own. */
const refusal = (code) => Object.assign(new Error(code), { code });

/** Say what went wrong at the top: on a phone the button that was pressed is screens below. */
function warn(sentence, links = []) {
  find("problem").replaceChildren(entry("p", sentence), ...links);
  find("problem").hidden = false;
  find("problem").focus();
}

/** Say beside each field what is wrong with it, and at the top which those are. Returns whether any is. */
function showProblems(entries) {
  entries.forEach(mark);
  const wrong = entries.filter(({ problem, boxOf }) => problem && boxOf !== "");
  if (!wrong.length) return false;
  const facts = { count: wrong.length };
  warn(sayCount("{count} answer needs another look:", "{count} answers need another look:", facts), [listOf(wrong)]);
  return true;
}

/** A field's elements, in the form alone: a question may be called as a <meta> of the page is. */
const fieldsOf = (name) => [...find("answers").querySelectorAll("[name]")].filter((one) => one.name === name);

/** Say beside a field what is wrong with it, if anything is. */
function mark({ name, problem }) {
  const fields = fieldsOf(name);
  const place = fields[0].closest("fieldset, p");
  place.querySelector(".wrong")?.remove();
  for (const field of fields) field.toggleAttribute("aria-invalid", Boolean(problem));
  if (problem) place.append(beside(problem));
}

function beside(problem) {
  const said = entry("span", problem);
  said.className = "wrong";
  // It may repeat what was typed, and a translator takes new text to its servers. So are all places marked that show answers, or
  // a report that nobody agreed to yet.
  said.translate = false;
  return said;
}

/** Links to the fields, as buttons: an address behind # may be a ticket. */
function listOf(entries) {
  const list = document.createElement("ul");
  for (const { name, asked, problem, boxOf = asked } of entries) {
    const button = entry("button", "");
    // In a direction of its own: the study may be in another language.
    button.append(entry("bdi", boxOf), ` – ${problem}`);
    button.type = "button";
    button.className = "link";
    button.addEventListener("click", () => goTo(fieldsOf(name)[0]));
    list.append(entry("li", ""));
    list.lastChild.append(button);
  }
  return list;
}

/** Why a report was not settled, of a reason as index.d.ts has it. */
function why(reason, channel) {
  const [kind, status, problem] = reason.split(" ");
  if (kind === "issuer") return whyNoToken(reason, channel);
  return say(REASONS[kind], { status, problem });
}

/** The same page in another language has the same ticket. */
function keepTicket() {
  for (const link of document.querySelectorAll("[hreflang]")) link.hash = location.hash;
}

async function start() {
  keepTicket();
  addEventListener("hashchange", keepTicket);
  if (!isSecureContext) throw new Error(say("this page has to be opened over https"));
  const study = await parseStudy(find("study").textContent);
  const shownHere = await shownIn(study, find("study").dataset.language);
  const device = await openDevice({ maxEpsilon: find("study").dataset.budget });
  keep(study);
  let shown;
  let hasShown = false;
  // What the person looks at once more, before noise is drawn.
  let entries;
  // Of what is shown, the questions that this person is asked.
  let asked = shownHere;

  /** Ask only the question that is drawn, before any is seen: once for this study, whatever becomes of the page. */
  async function drawOne() {
    const place = await device.draw(study);
    if (place < 0) return;
    asked = { ...shownHere, questions: [shownHere.questions[place]] };
    for (const card of find("answers").querySelectorAll("[data-place]")) {
      card.hidden = false;
      if (card.dataset.place !== String(place)) card.remove();
    }
  }

  async function show() {
    const { answered, report } = await device.status(study);
    if (answered) forget();
    // A further round of repeated questions is new, whatever became of the report before.
    hasShown ||= Boolean(report);
    const kept = report?.state ?? (answered || hasShown ? "gone" : "");
    const state = answered ? kept : entries ? "checked" : "new";
    // The report of an earlier version stays the person's to send, to give a ticket or to withdraw.
    const states = state === "new" ? [state, kept] : [state];
    for (const part of document.querySelectorAll("[data-when]")) {
      part.hidden = !part.dataset.when.split(" ").some((when) => states.includes(when));
    }
    const headings = [...document.querySelectorAll("[data-when]:not([hidden]) > h2[tabindex]")];
    // Not from under a person who fills in the form meanwhile.
    if (shown && shown !== state) {
      headings[0].focus();
      foldWho();
    } else if (document.activeElement?.closest("[hidden]")) headings.at(-1).focus();
    shown = state;
    const moment = report?.due ?? 0;
    const isLater = moment > Date.now();
    for (const place of ["leaves", "deleted"]) find(place).textContent = howItLeaves(report);
    // Nobody can hurry a report, but its deletion.
    find("again").hidden ||= isLater;
    find("now").hidden = !isLater;
    find("reason").textContent = report?.reason ? say("Last time: {reason}.", { reason: why(report.reason, report.channel) }) : "";
    whenDue(/^[qw]/.test(state) ? moment : 0, () => act(flush));
    if (find("answers")) showProgress(entriesOf(find("answers"), asked));
    // At once: its section is in sight.
    if (report?.body) await showReport(study, report);
    showTold(await device.told());
    // What waits for its moment alone is out of the person's hands.
    tellFrame(state, find("answers"), report?.reason || moment);
  }

  /** Send what waits; what is shown changes when it is done. The page may be closed before. */
  async function flush(options) {
    setTimeout(() => leaveToBrowser().catch(console.error), LATE_MS);
    await device.flush(options);
    await show();
  }

  /** Have what still waits, also a deletion, sent without this page, unless its moment is still to come. */
  async function leaveToBrowser() {
    const { report } = await device.status(study);
    const isWaiting = report?.state === "queued" || report?.state === "withdrawn";
    if (isWaiting && !(report.due > Date.now())) await sendLater(find("study").dataset.sender);
  }

  /** No true answer stays behind what is shown. */
  function forget() {
    entries = undefined;
    find("entered").replaceChildren();
    if (!find("answers")) return;
    // Not the form's own, in whose place a question of that name stands.
    HTMLFormElement.prototype.reset.call(find("answers"));
    entriesOf(find("answers"), asked).forEach(({ name }) => mark({ name, problem: "" }));
  }

  /** Forget what was entered before the person left the page, which the browser kept: others may use it. */
  async function comeBack() {
    find("problem").replaceChildren();
    forget();
    if (find("answers")) turnTo(0);
  }

  /** Forget what was entered here, where another tab, or the page behind this one, has answered meanwhile. */
  async function lookAgain() {
    if (document.visibilityState === "visible" && /new|checked/.test(shown) && (await device.status(study)).answered) await show();
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

  for (const button of document.querySelectorAll(".try")) button.addEventListener("click", () => tryOut(study, button));
  on("answers", "submit", async () => {
    const found = entriesOf(find("answers"), asked);
    // Perhaps meanwhile in another tab.
    if ((await device.status(study)).answered) throw refusal("answered");
    if (showProblems(entriesHere(found))) return;
    if (!isLast()) return turn(1);
    entries = found;
    find("entered").replaceChildren(...said(entries.map(({ asked, words }) => [asked, words])));
  });
  let pressed = false;
  addEventListener("pointerdown", () => (pressed = true), true);
  for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => (pressed = false), true);
  find("answers")?.addEventListener("change", ({ target }) => {
    const look = () => {
      const found = entriesOf(find("answers"), asked);
      found.filter(({ name }) => name === target.name.replace("none:", "")).forEach(mark);
      showProgress(found);
    };
    // A button that moves while it is pressed is not clicked.
    if (pressed) addEventListener("pointerup", () => setTimeout(look), { once: true });
    else look();
  });
  on("back", "click", async () => turn(-1));
  on("change", "click", async () => {
    entries = undefined;
    turnTo(0);
  });
  on("confirm", "submit", async () => {
    // Asks the browser not to throw the ledger away when space is short.
    navigator.storage?.persist();
    const confirmed = entries;
    if (await isClosed(study.id)) throw refusal("closed");
    if (!confirmed || entries !== confirmed) {
      // Another tab has answered while this one asked; else the person went back to the questions.
      if ((await device.status(study)).answered) throw refusal("answered");
      return;
    }
    const answers = inOwnLabels(answersIn(confirmed, asked), shownHere, study);
    await device.answer(study, answers, ticket("answers"));
  });
  on("consent", "submit", async () => {
    // In another tab a later round may have been answered meanwhile: its report is shown first.
    const { report } = await device.status(study);
    if (report?.body !== bodyShown) return find("consent").reset();
    await device.consent(report);
    await show();
    await flush();
  });
  on("again", "submit", () => flush());
  on("ticket", "submit", async () => {
    await device.giveTicket(study.id, ticket("ticket"));
    await show();
    await flush();
  });
  on("withdraw", "click", async () => {
    find("withdraw").parentElement.open = false;
    await device.withdraw(study.id);
    await show();
    await flush();
  });
  on("now", "submit", () => flush({ now: true }));
  addEventListener("online", () => act(flush));
  addEventListener("pageshow", ({ persisted }) => persisted && act(comeBack));
  // Back from another tab, and from another window.
  for (const back of ["visibilitychange", "focus"]) {
    addEventListener(back, () => lookAgain().catch((error) => console.error(error.code ?? error)));
  }
  if (find("answers")) turnTo(0);
  if (find("answers") && !(await device.status(study)).answered) await drawOne();
  await show();
  await flush({ attempts: 1 });
}

/**
 * The ticket that the person was given: what they typed into that form, else what the address carries behind
 * its #, which browsers never send and servers never log.
 */
function ticket(form) {
  const carried = new URLSearchParams(location.hash.slice(1)).get("ticket") ?? "";
  const typed = [...find(form).querySelectorAll(".ticket")].map(({ value }) => value);
  return [carried, ...typed].map(readTicket).findLast(Boolean) ?? "";
}

/** The report's bytes, and what they say in the words of the version that it answers. */
async function showReport(study, { version, body }) {
  bodyShown = body;
  find("body").textContent = body;
  find("size").textContent = sayCount("{count} byte", "{count} bytes", { count: new TextEncoder().encode(body).length });
  const { digest } = JSON.parse(body);
  const known = digest === study.digest;
  find("version").hidden = known;
  if (!known) find("in-words").replaceChildren();
  const its = await versionOf(study.id, version, digest);
  // Another report may be shown by now.
  if (bodyShown !== body) return;
  const another = say(
    "This report answers another version of this study than the one above: its questions, and what others can learn from it, are those of that version.",
  );
  const only = say("They cannot be loaded now, so only the report's bytes are shown.");
  find("version").textContent = its ? another : [another, only].join(" ");
  find("in-words").replaceChildren(...(its ? said(inWords(await shownIn(its, find("study").dataset.language), body, its)) : []));
}

/** Show what reports of an invented answer would say: the device's own noise, drawn anew. */
function tryOut(study, button) {
  const question = study.questions.find(({ id }) => id === button.value);
  const [answer, words] = invented(question);
  const { perturb } = mechanismFor(question);
  const list = document.createElement("ol");
  for (let count = 0; count < 10; count++) list.append(entry("li", saidOf(question, perturb(answer))));
  const facts = { answer: words };
  const what = say("Ten reports of the invented answer “{answer}”, one line each. Nothing is kept or sent.", facts);
  button.nextElementSibling.replaceChildren(entry("p", what), list);
}

/** [an answer that nobody gave, its words]: the middle of bounds, yes, or the first choice. */
function invented({ ask, bounds, choices, features, response, unit: measured = "" }) {
  if (features) {
    const fields = [...features, response];
    const parts = fields.map((field) => [field.id, ...invented(field)]);
    const words = parts.map(([id, , its], place) => `${fields[place].text ?? id} ${its}`).join("; ");
    return [Object.fromEntries(parts), words];
  }
  if (bounds) {
    const [low, high] = bounds.map(([, , nearest]) => nearest);
    return [(low + high) / 2, `${written((low + high) / 2)} ${measured}`.trim()];
  }
  if (ask === "yes_no" || !choices) return ["yes", say("yes")];
  return Array.isArray(choices) ? [choices[0], choices[0]] : [0, "0"];
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

/** What this browser has told so far, study by study, and all in all. */
function showTold(told) {
  const [studies, all] = toldInWords(told);
  const parts = studies.flatMap(([title, lines]) => [entry("dt", title), ...lines.map((line) => entry("dd", line))]);
  find("so-far-list").replaceChildren(...parts);
  find("so-far-list").hidden = !studies.length;
  find("so-far-total").textContent = all;
}

function entry(kind, text) {
  const element = document.createElement(kind);
  element.textContent = text;
  return element;
}

/** Elements of a list: what was asked, and what is said to it; a noisy number also on its scale. */
const said = (pairs) =>
  pairs.flatMap(([asked, words, place]) => {
    const shown = entry("dd", words);
    if (place) shown.append(scaleOf(place));
    return [entry("dt", asked), shown];
  });

await step(start);
