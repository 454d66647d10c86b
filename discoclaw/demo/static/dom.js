// Making elements. Whatever people or the bot wrote becomes text, never markup.

export const $ = (selector, inside = document) => inside.querySelector(selector);

// An element: `given` are its properties, or attributes where it has no such property.
export function el(tag, given = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const made = document.createElement(name);
  if (classes.length) made.className = classes.join(" ");
  for (const [key, value] of Object.entries(given)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on") || (key in made && !key.startsWith("aria"))) made[key] = value;
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false));
  return made;
}

export const unseen = (text) => el("span.unseen", {}, text);

// The first letter of a name on its colour.
export function face(name, bot = false) {
  return el("span.face", { "aria-hidden": "true", "data-tone": bot ? "bot" : String(name.charCodeAt(0) % 5) }, bot ? "✦" : [...name][0].toUpperCase());
}

let fading;
export function tell(text) {
  const told = $("#told");
  told.textContent = text;
  told.hidden = false;
  clearTimeout(fading);
  fading = setTimeout(() => { told.hidden = true; }, 6000);
}
