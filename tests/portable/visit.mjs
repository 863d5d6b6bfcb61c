// Visits pages as people do, in Chromium or Firefox: reads {browser, executable, scheme, width, visits} from
// standard input and prints what was found at each look, as JSON.
//
// A visit is {url, steps}; a step is ["fill", selector, text], ["click", selector], ["wait", selector] (until it
// shows) or ["look", name] (what axe objects to, what is wider than the screen, what has the focus, the headings).
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import puppeteer from "puppeteer-core";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const WAIT = 20_000;
const FIREFOX_SCHEMES = { dark: 0, light: 1 };

const asked = JSON.parse(readFileSync(0, "utf8"));
const isFirefox = asked.browser === "firefox";
const browser = await puppeteer.launch({
  browser: asked.browser,
  executablePath: asked.executable,
  headless: true,
  args: isFirefox ? [] : ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
  extraPrefsFirefox: { "layout.css.prefers-color-scheme.content-override": FIREFOX_SCHEMES[asked.scheme] },
});

// Runs in the page.
const inspect = async () => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  const shown = (part) => part.checkVisibility();
  return {
    violations: violations.flatMap(({ id, help, nodes }) => nodes.map((node) => `${id}: ${help}: ${node.target}: ${node.html.slice(0, 120)}`)),
    over: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    focus: document.activeElement.id,
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
    headings: [...document.querySelectorAll("h1, h2, h3, h4")].filter(shown).map((part) => Number(part.tagName[1])),
    text: document.body.innerText,
  };
};

// What a screen reader reads, line by line; Chromium alone tells.
const heard = async (page) => {
  const lines = [];
  const walk = ({ role, name, children = [] }) => {
    if (name) lines.push(`${role}: ${name}`);
    children.forEach(walk);
  };
  if (!isFirefox) walk(await page.accessibility.snapshot());
  return lines;
};

const look = async (page) => {
  await page.evaluate(AXE);
  return { ...(await page.evaluate(inspect)), heard: await heard(page) };
};

const retype = async (part, text) => {
  await part.evaluate((field) => { field.value = ""; });
  await part.type(text);
};

const visit = async (page, { url, steps }, looks) => {
  await page.goto(url);
  for (const [verb, target, text] of steps) {
    if (verb === "look") looks[target] = await look(page);
    else {
      // A locator looks again when a page has replaced the part that it found.
      if (verb === "click") await page.locator(target).setTimeout(WAIT).click();
      else {
        const part = await page.waitForSelector(target, { visible: true, timeout: WAIT });
        if (verb === "fill") await retype(part, text);
      }
    }
  }
};

const looks = {};
const errors = [];
try {
  const page = await browser.newPage();
  await page.setViewport({ width: asked.width, height: 900 });
  if (!isFirefox) await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: asked.scheme }]);
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  for (const each of asked.visits) await visit(page, each, looks);
} finally {
  await browser.close();
}
process.stdout.write(JSON.stringify({ looks, errors }));
