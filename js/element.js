/**
 * <ldp-study src="https://collect.example.org/s/habits">: a collector's page of a study, within a page of another site.
 *
 * The person answers in a frame of the collector's origin, so the page around it learns that the frame is there ("ready")
 * and that nothing is left to do in it ("done"), never an answer. The frame has a height of its own and scrolls: one
 * that grew with what it shows would tell what that is.
 */

const LOADED_WITHIN_MS = 15_000;
const LOOPBACK = new Set(["localhost", "127.0.0.1", "[::1]"]);
const STUDY = /^\/s\/[^/]+$/;
const STYLE = ":host { display: block; height: 42rem } :host([hidden]) { display: none } " +
  "iframe { width: 100%; height: 100%; border: 0 }";

export class StudyElement extends HTMLElement {
  static observedAttributes = ["src", "lang", "invitation"];

  #frame;
  #origin;
  #late;
  #state = "loading";

  /** "loading", "ready", "done"; "blocked" where no study came, "refused" where `src` is none that a frame may show. */
  get state() {
    return this.#state;
  }

  connectedCallback() {
    addEventListener("message", this.#hear);
    this.#load();
  }

  disconnectedCallback() {
    removeEventListener("message", this.#hear);
    clearTimeout(this.#late);
  }

  attributeChangedCallback(_name, before, now) {
    // Not of what HTML says before the element is on the page: then it is loaded once.
    if (this.isConnected && this.shadowRoot && before !== now) this.#load();
  }

  #load() {
    clearTimeout(this.#late);
    this.#frame = this.#origin = undefined;
    let address;
    try {
      address = addressOf(this);
    } catch ({ message }) {
      return this.#end("refused", message);
    }
    this.#state = "loading";
    this.#origin = address.origin;
    this.#frame = frameOf(address, this.title || "Study");
    this.#show(this.#frame);
    const { href, origin } = address;
    const advice = `The study does not show here. Its collector has to list this site: frame_ancestors = ["${location.origin}"]. `;
    this.#late = setTimeout(() => this.#end("blocked", advice, linkTo(href, origin)), LOADED_WITHIN_MS);
  }

  #hear = ({ source, origin, data }) => {
    if (!this.#frame || source !== this.#frame.contentWindow || origin !== this.#origin) return;
    const said = data?.ldpkit;
    if (said !== "ready" && said !== "done") return;
    clearTimeout(this.#late);
    // "done" stays, also where the frame loads again in another language.
    if (this.#state !== "done") this.#tell(said);
  };

  #end(state, ...words) {
    const said = document.createElement("p");
    said.append(...words);
    said.setAttribute("role", "alert");
    this.#show(said);
    console.error(`<ldp-study>: ${words[0]}`);
    this.#tell(state);
  }

  #tell(state) {
    this.#state = state;
    this.dispatchEvent(new CustomEvent(state, { bubbles: true, composed: true }));
  }

  #show(node) {
    const root = this.shadowRoot ?? this.attachShadow({ mode: "open" });
    const style = document.createElement("style");
    style.textContent = STYLE;
    root.replaceChildren(style, node);
  }
}

/** The study's page, in the element's language and with its invitation. Throws an Error for what a frame may not show. */
function addressOf(element) {
  const src = element.getAttribute("src") ?? "";
  if (!URL.canParse(src)) throw new Error(`src must be a study's page such as https://collect.example.org/s/habits`);
  const address = new URL(src);
  if (!STUDY.test(address.pathname)) throw new Error(`src must end in /s/ and the study's id`);
  if (address.protocol !== "https:" && !LOOPBACK.has(address.hostname)) throw new Error("src must be https://");
  // What is of the page's own origin the page could read.
  if (address.origin === location.origin) throw new Error("src must be of another origin than this page: link to it instead");
  if (element.lang) address.searchParams.set("lang", element.lang);
  const invitation = element.getAttribute("invitation");
  if (invitation) address.hash = new URLSearchParams({ invitation });
  return address;
}

function frameOf({ href }, title) {
  const frame = document.createElement("iframe");
  Object.assign(frame, { src: href, title, referrerPolicy: "no-referrer" });
  // Not: to lead the page elsewhere, or to open windows.
  frame.setAttribute("sandbox", "allow-scripts allow-same-origin allow-forms");
  return frame;
}

function linkTo(href, text) {
  const link = document.createElement("a");
  Object.assign(link, { href, rel: "noopener noreferrer", target: "_blank" });
  link.append(text);
  return link;
}

if (!customElements.get("ldp-study")) customElements.define("ldp-study", StudyElement);
