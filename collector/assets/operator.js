"use strict";

const PERIOD_MS = 5000;

async function refresh() {
  const state = document.getElementById("state");
  try {
    const response = await fetch(location.origin + location.pathname, { cache: "no-store" });
    if (!response.ok) throw new Error(response.statusText);
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    document.getElementById("live").replaceWith(fresh.getElementById("live"));
    state.textContent = "live";
  } catch {
    state.textContent = "no answer from the collector; trying again";
  }
}

if (document.visibilityState !== "hidden") refresh();
setInterval(() => document.visibilityState !== "hidden" && refresh(), PERIOD_MS);
