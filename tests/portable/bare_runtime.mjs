// node --import ./bare_runtime.mjs PROGRAM: as in an app of React Native, whose fetch is whatwg-fetch, and an app's own habits.
const { fetch: native } = globalThis;
// Node's own is loaded at its first use, and needs what is then taken away.
await native("data:,");
delete globalThis.TextDecoder;
BigInt.prototype.toJSON = function toJSON() {
  return this.toString();
};
// Requests that know no `cache`, and put the device's clock into the address in its place.
globalThis.Request = class {
  constructor(url, { method = "GET", cache } = {}) {
    this.url = `${new URL(url)}`;
    this.method = method;
    if (method !== "GET" || !/^no-(store|cache)$/.test(cache)) return;
    this.url += `${this.url.includes("?") ? "&" : "?"}_=${Date.now()}`;
  }
};
globalThis.fetch = (url, { cache, ...options } = {}) => native(new Request(url, { cache, ...options }).url, options);
