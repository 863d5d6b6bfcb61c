// The page with a study's link: copies it, or the lines for another page.

document.addEventListener("click", async ({ target }) => {
  const text = target.closest("[data-copy]")?.dataset.copy;
  if (!text) return;
  await navigator.clipboard.writeText(text);
  document.getElementById("said").textContent = "Copied.";
});
