/**
 * <ldp-study src="https://collect.example.org/s/habits">: a collector's page of a study, in a frame.
 *
 * The page around it learns "ready" and "done", never an answer. The height is fixed: one that grew with
 * the content would tell what that is.
 */

const LOADED_WITHIN_MS = 15_000;
const LOOPBACK = new Set(["localhost", "127.0.0.1", "[::1]"]);
// Not in a style element: a page's Content-Security-Policy may forbid these.
const STYLE = new CSSStyleSheet();
STYLE.replaceSync(`:host { display: block; height: 42rem } :host([hidden]) { display: none }
iframe { width: 100%; height: 100%; border: 0 }`);

export class StudyElement extends HTMLElement {
  static observedAttributes = ["src", "lang", "ticket"];

  #frame;
  #late;
  #state = "loading";

  /** "loading", "ready", "done"; "blocked" where no study came, "refused" where no frame may show `src`. */
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
    this.#frame = undefined;
    try {
      const { href } = addressOf(this);
      this.#state = "loading";
      // Not: to lead the page elsewhere, or to open windows.
      const sandbox = "allow-scripts allow-same-origin allow-forms";
      const title = this.title || "Study";
      this.#frame = made("iframe", { sandbox, title, referrerpolicy: "no-referrer", src: href });
      this.#show(this.#frame);
      const link = made("a", { href, rel: "noopener noreferrer", target: "_blank" }, href);
      const setting = `frame_ancestors = ["${location.origin}"]`;
      const advice =
        `The study does not show here. Either its collector does not list this site (write ${setting} into its ` +
        "ldpkit.toml and start it again), or it has no such study. This opens it in a tab: ";
      this.#late = setTimeout(() => this.#end("blocked", advice, link), LOADED_WITHIN_MS);
    } catch ({ message }) {
      this.#end("refused", message);
    }
  }

  #hear = ({ source, origin, data }) => {
    const isFrame = this.#frame && source === this.#frame.contentWindow;
    if (!isFrame || origin !== new URL(this.#frame.src).origin) return;
    const state = data?.ldpkit;
    if (state !== "ready" && state !== "done") return;
    clearTimeout(this.#late);
    // "done" stays, also where the frame loads again in another language.
    if (this.#state !== "done") this.#tell(state);
  };

  #end(state, ...words) {
    this.#show(made("p", { role: "alert" }, ...words));
    console.error(`<ldp-study>: ${words[0]}`);
    this.#tell(state);
  }

  #tell(state) {
    this.#state = state;
    this.dispatchEvent(new CustomEvent(state, { bubbles: true, composed: true }));
  }

  #show(node) {
    const root = this.shadowRoot ?? this.attachShadow({ mode: "open" });
    root.adoptedStyleSheets = [STYLE];
    root.replaceChildren(node);
  }
}

/** The study's page, in the element's language and with its ticket. Throws an Error for what a frame may not show. */
function addressOf(element) {
  const src = element.getAttribute("src") ?? "";
  const refuseUnless = (good, words) => {
    if (!good) throw new Error(`src must ${words}`);
  };
  refuseUnless(URL.canParse(src), "be a study's page such as https://collect.example.org/s/habits");
  const address = new URL(src);
  refuseUnless(/^\/s\/[^/]+$/.test(address.pathname), "end in /s/ and the study's id");
  refuseUnless(address.protocol === "https:" || LOOPBACK.has(address.hostname), "be https://");
  // What is of the page's own origin the page could read.
  refuseUnless(address.origin !== location.origin, "be of another origin than this page: link to it instead");
  if (element.lang) address.searchParams.set("lang", element.lang);
  const ticket = element.getAttribute("ticket");
  if (ticket) address.hash = new URLSearchParams({ ticket });
  return address;
}

function made(name, attributes, ...content) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...content);
  return element;
}

if (!customElements.get("ldp-study")) customElements.define("ldp-study", StudyElement);
