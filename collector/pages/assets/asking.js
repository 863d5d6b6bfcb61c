// What the operator's pages share: requests of the HTTP API, and elements.

/** One request of the API, with the cookie of this page. Throws an Error with the problem in words. */
export async function ask(method, path, body) {
  const headers = { "LDPKit-Page": "1" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const response = await fetch(path, { method, headers, body, cache: "no-store" });
  if (response.ok) return response;
  const { title, detail, field } = await response.json().catch(() => ({}));
  const words = [title ?? response.statusText, field, detail].filter(Boolean).join(": ");
  throw Object.assign(new Error(words), { status: response.status });
}

/** Elements are made with textContent only: studies, keys and answers of the API hold text of others. */
export function element(name, text = "", properties = {}) {
  return Object.assign(document.createElement(name), { textContent: text }, properties);
}

/** Have the browser save a file. */
export function save(name, content) {
  const url = URL.createObjectURL(content);
  element("a", "", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 5000);
}
