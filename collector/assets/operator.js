"use strict";

const PERIOD_MS = 5000;

async function refresh() {
  const state = document.getElementById("state");
  try {
    const response = await fetch(location.origin + location.pathname + location.search, { cache: "no-store" });
    // Signed out elsewhere, or the key was removed: the form says so.
    if (response.status === 401) location.reload();
    if (!response.ok) throw new Error(response.statusText);
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    // What was opened stays open, and whoever reads with a keyboard stays where they were.
    for (const { id } of document.querySelectorAll("#live details[open]")) fresh.getElementById(id)?.setAttribute("open", "");
    const focused = document.activeElement?.closest("#live details")?.id;
    const link = document.activeElement?.closest("#live a")?.getAttribute("href");
    document.getElementById("live").replaceWith(fresh.getElementById("live"));
    if (focused) document.getElementById(focused)?.querySelector("summary").focus();
    if (link) document.querySelector(`#live a[href="${CSS.escape(link)}"]`)?.focus();
    state.textContent = "live";
  } catch {
    state.textContent = "no answer from the collector; trying again";
  }
}

if (document.visibilityState !== "hidden") refresh();
setInterval(() => document.visibilityState !== "hidden" && refresh(), PERIOD_MS);
