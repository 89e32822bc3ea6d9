// Numbers for people, and elements that hold text as text.

/** A time in nanoseconds with the unit that suits it. */
export function time(nanoseconds) {
  if (nanoseconds == null) return "";
  const steps = [[1e9, "s"], [1e6, "ms"], [1e3, "us"]];
  const [scale, unit] = steps.find(([scale]) => Math.abs(nanoseconds) >= scale) || [1, "ns"];
  return `${(nanoseconds / scale).toPrecision(4).replace(/\.?0+$/, "")} ${unit}`;
}

/** A count in some digits and a letter. */
export function count(value) {
  if (value == null || !isFinite(value)) return "";
  const steps = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
  const [scale, letter] = steps.find(([scale]) => Math.abs(value) >= scale) || [1, ""];
  const digits = scale === 1 && Number.isInteger(value) ? String(value) : (value / scale).toPrecision(3);
  return digits + letter;
}

/** A share from 0 to 1 in percent. */
export function percent(share) {
  return share == null ? "" : `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;
}

/** An element with attributes and children; text stays text, whatever it holds. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value == null || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

/** A colour of the style sheet, for canvases. */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** The hue of a kernel by its place in the table. */
export function hue(place) {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  return `hsl(${(place * 137.5 + 210) % 360} 62% ${dark ? 62 : 45}%)`;
}
