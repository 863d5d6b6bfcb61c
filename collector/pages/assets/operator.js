// The operator's page: it shows fresh counts, and acts through the same HTTP API as the commands.

import { ask, element, save } from "./asking.js";

const PERIOD_MS = 5000;
const MOST_LINES = 200;
const byId = (id) => document.getElementById(id);

const focusOn = (act, study = "") => document.querySelector(`[data-act="${act}"]${study && `[data-study="${CSS.escape(study)}"]`}`)?.focus();

async function refresh() {
  const state = byId("state");
  try {
    const response = await fetch(location.origin + location.pathname + location.search, { cache: "no-store" });
    // Signed out elsewhere, or the key was removed: the form says so.
    if (response.status === 401) location.reload();
    if (!response.ok) throw new Error(response.statusText);
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    // What was opened stays open, and the keyboard's focus stays in its place.
    for (const { id } of document.querySelectorAll("#live details[open]")) fresh.getElementById(id)?.setAttribute("open", "");
    const details = document.activeElement?.closest("#live details")?.id;
    const link = document.activeElement?.closest("#live a")?.getAttribute("href");
    const { act, study } = document.activeElement?.dataset ?? {};
    byId("live").replaceWith(fresh.getElementById("live"));
    if (details) byId(details)?.querySelector("summary").focus();
    if (link) document.querySelector(`#live a[href="${CSS.escape(link)}"]`)?.focus();
    if (act) focusOn(act, study);
    state.textContent = "live";
  } catch {
    state.textContent = "no answer from the collector; trying again";
  }
}

const asked = async (...request) => (await ask(...request)).json();
const post = (path, document = {}) => asked("POST", path, JSON.stringify(document));
const studyPath = (study, rest) => `/v1/studies/${encodeURIComponent(study)}${rest}`;

function labelled(text, input) {
  const label = element("label", text);
  label.append(input);
  return label;
}

function table(caption, heads, rows) {
  const made = element("table");
  const head = element("tr");
  head.append(...heads.map((text) => element("th", text, { scope: "col" })));
  const lines = rows.map((cells) => {
    const line = element("tr");
    line.append(...cells.map((cell) => {
      const place = element("td");
      place.append(cell);
      return place;
    }));
    return line;
  });
  const [top, body] = [element("thead"), element("tbody")];
  top.append(head);
  body.append(...lines);
  made.append(element("caption", caption), top, body);
  const scroll = element("div", "", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: caption });
  scroll.append(made);
  return scroll;
}

/** A field for each value that all of a study's tickets can carry. */
async function carriedFields(study) {
  const { public: fields = [], languages } = await asked("GET", studyPath(study, ""));
  const plain = (text) => (typeof text === "object" ? text[languages[0]] : text);
  return fields.filter(({ source }) => source === "ticket").map(({ id, text = id, choices = [] }) => {
    const input = choices.length ? element("select") : element("input", "", { inputMode: "decimal" });
    if (choices.length) input.append(new Option(""), ...choices.map((label) => new Option(plain(label))));
    return labelled(`${plain(text)}: what all of these carry`, Object.assign(input, { name: `public.${id}`, required: true }));
  });
}

async function download(study) {
  save(`${study}.ndjson`, await (await ask("GET", studyPath(study, "/export?format=ndjson"))).blob());
}

async function keys() {
  const { keys: found } = await asked("GET", "/v1/keys");
  const rows = found.map((key) => {
    const button = element("button", `Revoke ${key.name}`, { type: "button" });
    button.dataset.act = "revoke";
    button.dataset.key = key.name;
    return [key.name, key.role, key.studies?.join(", ") ?? "all", key.expires ?? "none", key.used ?? "never", button];
  });
  const role = element("select", "", { name: "role" });
  role.append(...["publish", "read", "operate"].map((name) => new Option(name)));
  return [
    rows.length ? table("Who may publish, read and operate", ["name", "role", "studies", "last day", "last used", "revoke"], rows)
      : element("p", "There is none: only the operator’s token is good."),
    element("h3", "Make a key"),
    labelled("Name", element("input", "", { name: "name", required: true, maxLength: 64 })),
    labelled("Role", role),
    labelled("Studies, by id and with spaces between; none for all", element("input", "", { name: "studies" })),
    labelled("Last day (UTC), if it has one", element("input", "", { name: "expires", type: "date" })),
  ];
}

async function log() {
  const { entries } = await asked("GET", `/v1/audit-log?limit=${MOST_LINES}`);
  const rows = entries.map((one) => [one.at, one.key, one.action, one.study ?? "", one.detail]);
  return [table(`What operators did, the last ${MOST_LINES} lines, the newest day first`, ["day (UTC)", "key", "what", "study", "more"], rows)];
}

// Each action: its title, what it does, its fields, and its request, which gives a sentence and secrets to show.
const ACTS = {
  close: {
    title: "Close the study",
    text: "It takes no reports until it is opened again. If reports leave in windows, those under way are refused once it is closed, and lost if it stays closed.",
    run: async ({ study }) => `Version ${(await post(studyPath(study, "/close"))).version} is closed.`,
  },
  open: {
    title: "Open the study",
    text: "It takes reports again, on its days. Reports that were withdrawn stay withdrawn.",
    run: async ({ study }) => `Version ${(await post(studyPath(study, "/open"))).version} takes reports on its days.`,
  },
  invite: {
    title: "Make tickets",
    text: "From then on only invited people can take part. Each link lets one report in, and is shown once.",
    fields: async ({ study }) => [
      labelled("How many, up to 1000", element("input", "", { name: "count", type: "number", min: 1, max: 1000, value: 10, required: true })),
      ...(await carriedFields(study)),
    ],
    async run({ study, link }, values) {
      const carried = [...values].filter(([name]) => name.startsWith("public.")).map(([name, value]) => ({ field: name.slice(7), value }));
      const { tickets, warnings } = await post(studyPath(study, "/tickets"), { count: Number(values.get("count")), public: carried });
      const said = [`${tickets.length} tickets were made; they are shown this once.`, ...warnings].join(" ");
      return [said, tickets.map((word) => `${new URL(link, location)}#ticket=${word}`)];
    },
  },
  export: {
    title: "Export the reports",
    text: "The browser saves one line of JSON for each report. For many reports, or a table, use the command ldpkit export.",
    run: ({ study }) => download(study).then(() => "The reports are saved."),
  },
  publish: {
    title: "Publish a study",
    text: "Takes the file that ldpkit check accepts. Devices answer a version once, so a published version never changes.",
    fields: () => [labelled("study.json", element("input", "", { name: "file", type: "file", accept: ".json,application/json", required: true }))],
    async run(_data, values) {
      const { id, version } = await asked("POST", "/v1/studies", values.get("file"));
      return [`Version ${version} of ${id} is published. People answer here:`, [String(new URL(`/s/${id}`, location))]];
    },
  },
  keys: {
    title: "Keys",
    text: "",
    fields: keys,
    button: "Make the key",
    async run(_data, values) {
      const studies = values.get("studies").split(/\s+/).filter(Boolean);
      const wanted = { name: values.get("name"), role: values.get("role") };
      if (studies.length) wanted.studies = studies;
      if (values.get("expires")) wanted.expires = values.get("expires");
      const { key, warnings } = await post("/v1/keys", wanted);
      return [[`The key ${wanted.name} is shown this once.`, ...warnings].join(" "), [key]];
    },
  },
  revoke: {
    title: "Revoke the key",
    text: "The key stops working.",
    run: ({ key }) => asked("DELETE", `/v1/keys/${encodeURIComponent(key)}`).then(() => `The key ${key} is revoked.`),
  },
  log: { title: "Audit log", text: "", fields: log },
};

const dialog = byId("dialog");
let [act, data] = [null, {}];

function show(said, secrets = []) {
  const list = element("ul", "", { className: "shown" });
  for (const secret of secrets) {
    const line = element("li");
    line.append(element("code", secret));
    list.append(line);
  }
  byId("fields").replaceChildren(...(secrets.length ? [list] : []));
  byId("said").textContent = said;
  byId("do").hidden = true;
  byId("leave").textContent = "Close";
}

async function begin(button) {
  [act, data] = [ACTS[button.dataset.act], { ...button.dataset }];
  const subject = data.study ?? data.key;
  byId("what").textContent = subject ? `${act.title}: ${subject}` : act.title;
  byId("effect").textContent = act.text;
  Object.assign(byId("do"), { textContent: act.button ?? act.title, hidden: !act.run, disabled: false });
  Object.assign(byId("leave"), { textContent: act.run ? "Do nothing" : "Close" });
  byId("fields").replaceChildren();
  for (const id of ["said", "problem"]) byId(id).textContent = "";
  if (!dialog.open) dialog.showModal();
  const begun = data;
  try {
    const fields = (await act.fields?.(data)) ?? [];
    // Another action may have begun meanwhile.
    if (data === begun) byId("fields").replaceChildren(...fields);
  } catch (error) {
    if (data === begun) byId("problem").textContent = error.message;
  }
}

function setRunning(is) {
  for (const id of ["do", "leave"]) byId(id).disabled = is;
}

async function finish(event) {
  event.preventDefault();
  // What is shown once must not come into a closed dialog.
  setRunning(true);
  byId("problem").textContent = "";
  try {
    const result = await act.run(data, new FormData(event.target));
    show(...(Array.isArray(result) ? result : [result]));
    refresh();
  } catch (error) {
    byId("problem").textContent = error.message;
  }
  setRunning(false);
}

document.addEventListener("click", ({ target }) => {
  const button = target.closest("[data-act]");
  if (button) begin(button);
});
byId("act").addEventListener("submit", finish);
byId("leave").addEventListener("click", () => dialog.close());
dialog.addEventListener("cancel", (event) => byId("leave").disabled && event.preventDefault());
dialog.addEventListener("close", () => focusOn(data.act, data.study));

if (document.visibilityState !== "hidden") refresh();
setInterval(() => document.visibilityState !== "hidden" && refresh(), PERIOD_MS);
