/** A noisy number as a dot beside the scale of its question, which noise may leave. */

import { written } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";

/** A picture of {low, high, value}. The words beside it say the same. */
export function scaleOf({ low, high, value }) {
  const start = Math.min(low, value);
  const width = Math.max(high, value) - start || 1;
  const across = (number) => 3 + (94 * (number - start)) / width;
  const picture = shape("svg", { class: "on-scale", viewBox: "0 0 100 12", "aria-hidden": "true" });
  picture.append(
    shape("rect", { class: "scale", x: across(low), y: 2, width: across(high) - across(low), height: 2 }),
    shape("circle", { class: "answer", cx: across(value), cy: 3, r: 2.5 }),
    ...[low, high].map((bound, place) => {
      const label = shape("text", { x: across(bound), y: 11, "text-anchor": place ? "end" : "start" });
      label.textContent = written(bound);
      return label;
    }),
  );
  return picture;
}

function shape(kind, attributes) {
  const element = document.createElementNS(SVG, kind);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}
