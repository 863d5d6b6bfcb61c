// The page of a new study: makes the document of a form, has the collector check and show it, and publishes it.

import { ask, element, save } from "./asking.js";

const PAUSE_MS = 400;
const MOST_IN_ID = 40;
// The model of each kind of answer; a number is fitted without a law.
const MODELS = { yes_no: { name: "bernoulli" }, choice: { name: "multinomial" } };

const byId = (id) => document.getElementById(id);
const form = byId("draft");
const [title, id, tags] = ["title", "id", "languages"].map((name) => form.querySelector(`[name=${name}]`));
let [isChanged, isIdTyped, turn, timer, added] = [false, false, 0, 0, 0];

const languages = () => tags.value.split(/[\s,]+/).filter(Boolean);
const questions = () => [...form.querySelectorAll(".question")];
const fields = (part, name) => [...part.querySelectorAll(`[name=${name}]`)].map(({ value }) => value.trim());
const valueOf = (part, name) => fields(part, name)[0] || undefined;
const numberOf = (part, name) => String(part.querySelector(`[name=${name}]`).valueAsNumber);
const linesOf = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);

/** A text as a document has it: by language, or plain where only the first is filled in. Undefined where none is. */
function spoken(texts) {
  if (!texts.slice(1).some(Boolean)) return texts[0] || undefined;
  return Object.fromEntries(languages().map((tag, place) => [tag, texts[place]]));
}

function questionOf(part) {
  const [kind, epsilon] = [valueOf(part, "ask"), numberOf(part, "epsilon")];
  const question = { id: valueOf(part, "id"), ask: kind, text: spoken(fields(part, "text")), model: MODELS[kind] };
  let mechanism = kind === "number" ? "laplace" : "randomized_response";
  if (kind === "number") {
    question.bounds = [numberOf(part, "low"), numberOf(part, "high")];
    question.unit = spoken(fields(part, "unit"));
  }
  if (kind === "choice") {
    const [labels, ...others] = fields(part, "choices").map(linesOf);
    question.choices = labels.map((label, place) => spoken([label, ...others.map((lines) => lines[place] ?? "")]));
    // As `ask.choice` of ldpkit: which is the more accurate.
    if (labels.length > 3 * Math.exp(epsilon) + 2) mechanism = "subset_selection";
  }
  return { ...question, mechanism: { name: mechanism, epsilon } };
}

function draft() {
  const text = (name) => spoken(fields(form.querySelector("section"), name));
  const document = {
    format: "ldpkit.study/1",
    id: id.value,
    version: 1,
    languages: languages().length > 1 ? languages() : undefined,
    title: text("title"),
    purpose: text("purpose"),
    owner: text("owner"),
    contact: valueOf(form, "contact"),
    ethics: text("ethics"),
    closes: valueOf(form, "closes"),
    retention: { days: Number(valueOf(form, "days")) },
    questions: questions().map(questionOf),
  };
  return JSON.stringify(document, null, 1);
}

/** How sure somebody can be who guessed 50:50, rounded up. */
function sure(epsilon) {
  const share = 100 / (1 + Math.exp(-epsilon));
  const digits = share < 99 ? 10 : 100;
  return `${Math.ceil(share * digits) / digits} %`;
}

/** Number the questions, show the fields of their kind, and say how private each is. */
function arrange() {
  questions().forEach((part, place) => {
    part.querySelector("h2").textContent = `Question ${place + 1}`;
    part.ariaLabel = `Question ${place + 1}`;
    part.querySelector("[data-remove]").hidden = questions().length === 1;
    for (const only of part.querySelectorAll("[data-ask]")) {
      only.hidden = only.disabled = only.dataset.ask !== valueOf(part, "ask");
    }
    const epsilon = part.querySelector("[name=epsilon]").valueAsNumber;
    part.querySelector("[data-sure]").textContent =
      epsilon > 0 ? `After a report, someone who guessed 50:50 can be at most ${sure(epsilon)} sure of the answer.` : "";
  });
  if (!isIdTyped) id.value = identifier(title.value);
}

/** An identifier of a title's letters and digits. */
function identifier(words) {
  const plain = words.toLowerCase().normalize("NFKD").replace(/\p{M}/gu, "").replace(/[^a-z0-9]+/g, "-");
  return plain.replace(/^-/, "").slice(0, MOST_IN_ID).replace(/-$/, "");
}

/** Give each text a field in each language, and keep what was typed. */
function translate() {
  const [, ...others] = languages();
  for (const said of form.querySelectorAll(".said")) {
    const [first, ...rest] = said.children;
    const kept = new Map(rest.map((label) => [label.dataset.language, label]));
    said.replaceChildren(first, ...others.map((tag) => kept.get(tag) ?? translation(first, tag)));
  }
  byId("languages").hidden = !others.length;
  const shown = byId("language").value;
  byId("language").replaceChildren(...languages().map((tag) => new Option(tag, tag, false, tag === shown)));
}

function translation(first, tag) {
  const label = first.cloneNode(true);
  label.dataset.language = tag;
  label.firstChild.data = `${label.firstChild.data.trim()} (${tag}) `;
  Object.assign(label.querySelector("input, textarea"), { value: "", lang: tag });
  return label;
}

function add() {
  const part = byId("question").content.firstElementChild.cloneNode(true);
  part.querySelector("[name=id]").value = `q${(added += 1)}`;
  byId("questions").append(part);
  translate();
  return part;
}

/** What is still to fill in or to correct, by the labels of its fields. */
function lacking() {
  const wrong = [...form.querySelectorAll("input:invalid, textarea:invalid")];
  return wrong.map((field) => {
    const section = field.closest("section").querySelector("h2").textContent;
    return `${section} – ${field.closest("label").firstChild.data.trim()}`;
  });
}

/** Show the draft, or what it lacks. Only the latest answer counts. */
async function show() {
  const mine = (turn += 1);
  const missing = lacking();
  if (missing.length) return say(`To fill in: ${missing.join("; ")}.`);
  const body = draft();
  try {
    const [checked, page] = await Promise.all([
      ask("POST", "/v1/check", body).then((response) => response.json()),
      ask("POST", `/new/preview?language=${encodeURIComponent(byId("language").value)}`, body).then((response) => response.text()),
    ]);
    if (mine !== turn) return;
    say("The study can be published.", checked);
    const frame = byId("preview");
    const top = frame.contentWindow.scrollY;
    frame.addEventListener("load", () => frame.contentWindow.scrollTo(0, top), { once: true });
    frame.srcdoc = page;
  } catch (error) {
    if (mine === turn) say(inWords(error));
  }
}

function say(state, { lines = [], warnings = [] } = {}) {
  byId("state").textContent = state;
  byId("check").textContent = lines.join("\n");
  byId("warnings").replaceChildren(...warnings.map((line) => element("li", line)));
}

/** The document counts its questions from 0, the page from 1. */
const inWords = ({ message }) => message.replace(/questions\[(\d+)\]/, (_, place) => `question ${Number(place) + 1}`);

function changed() {
  arrange();
  clearTimeout(timer);
  timer = setTimeout(show, PAUSE_MS);
}

form.addEventListener("input", ({ target }) => {
  isChanged = true;
  if (target === id) isIdTyped = true;
  changed();
});
form.addEventListener("change", ({ target }) => {
  if (target === tags) translate();
  changed();
});
form.addEventListener("click", ({ target }) => {
  if (!target.matches("[data-remove]")) return;
  target.closest(".question").remove();
  changed();
  byId("add").focus();
});
byId("add").addEventListener("click", () => {
  const part = add();
  changed();
  part.querySelector("input").focus();
});
byId("language").addEventListener("change", show);
byId("save").addEventListener("click", () => form.reportValidity() && save("study.json", new Blob([draft(), "\n"])));
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  byId("problem").textContent = "";
  try {
    await ask("POST", "/v1/studies", draft());
    isChanged = false;
    location.assign(`/share/${encodeURIComponent(id.value)}`);
  } catch (error) {
    const isTaken = error.status === 409;
    byId("problem").textContent = isTaken ? `A study ${id.value} exists already: choose another Id.` : inWords(error);
  }
});
addEventListener("beforeunload", (event) => isChanged && event.preventDefault());

add();
changed();
