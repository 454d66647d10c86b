// Slash commands: what is offered while somebody types, and the fields of a command's options.

import { $, el } from "./dom.js";

const KINDS = { 4: "number", 10: "number", 11: "file" };
let page;
let command = null; // the one whose options are being filled in
let fields = {};
let offered = [];
let owner = null; // the field that the suggestions are for
let marked = 0;
let asking = 0;

export function begin(given) {
  page = given;
  $("#text").addEventListener("input", suggest);
  $("#text").addEventListener("blur", () => left($("#text")));
}

export const chosen = () => command;

export function leave() {
  command = null;
  fields = {};
  $("#options").hidden = true;
  $("#options").replaceChildren();
  hide();
}

function hide() {
  offered = [];
  $("#choices").hidden = true;
  $("#text").removeAttribute("aria-activedescendant");
}

const left = (input) => setTimeout(() => { if (owner === input && document.activeElement !== input) hide(); }, 150);

function offer(all, input) {
  offered = all;
  owner = input;
  marked = 0;
  $("#choices").hidden = !all.length;
  $("#choices").replaceChildren(...all.map((one, number) => el("div", { role: "option", id: `choice-${number}`, "data-choice": one.label, onpointerdown: (event) => { event.preventDefault(); one.take(); } },
    el("strong", {}, one.label), " ", el("span.dim", {}, one.about || ""))));
  mark(input);
}

function mark(input) {
  [...$("#choices").children].forEach((one, number) => one.setAttribute("aria-selected", String(number === marked)));
  $("#choices").children[marked]?.scrollIntoView({ block: "nearest" });
  if (offered.length) input.setAttribute("aria-activedescendant", `choice-${marked}`);
}

// Whether a key was for the list of suggestions.
export function key(event) {
  const whole = event.key === "Enter" && event.target.id === "text" && offered.some((one) => one.label === event.target.value.trim());
  if (whole) hide(); // the command is there already: use it
  if (!offered.length) return false;
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    marked = (marked + (event.key === "ArrowDown" ? 1 : offered.length - 1)) % offered.length;
    mark(event.target);
  } else if (event.key === "Escape") hide();
  else if (event.key === "Tab" || event.key === "Enter") offered[marked].take();
  else return false;
  event.preventDefault();
  return true;
}

async function suggest() {
  const text = $("#text").value;
  if (!text.startsWith("/") || text.includes("\n")) return hide();
  const { commands } = await page.offered();
  if ($("#text").value !== text) return;
  const typed = text.slice(1).toLowerCase();
  const exact = commands.find((one) => typed.startsWith(`${one.name} `));
  if (exact) return pick(exact, text.slice(exact.name.length + 2));
  const words = typed.split(" ").filter(Boolean);
  const fits = commands.filter((one) => one.name.startsWith(typed) || words.every((word) => one.name.includes(word)));
  const rank = (one) => (one.name.startsWith(typed) ? 0 : 10) + one.name.split(" ").length;
  fits.sort((one, other) => rank(one) - rank(other));
  offer(fits.slice(0, 25).map((one) => ({ label: `/${one.name}`, about: one.about, take: () => pick(one, "") })), $("#text"));
}

// Begin to use a command; `rest` goes into its first option.
export function pick(one, rest) {
  leave();
  command = one;
  $("#text").value = `/${one.name}`;
  const made = one.options.map((option, number) => el("label.option", {}, el("span", {}, option.name, option.required ? "" : el("span.dim", {}, " (optional)")), field(option, number ? "" : rest)));
  $("#options").replaceChildren(el("span.small", {}, one.about), ...made);
  $("#options").hidden = false;
  const first = Object.values(fields)[0];
  (first || $("#text")).focus();
  if (first && rest) complete(one.options[0], first);
}

function field(option, value) {
  const { world } = page.known;
  const given = { "data-option": option.name, title: option.description, required: option.required };
  let all = option.choices && !option.autocomplete ? option.choices.map((one) => [String(one.value), one.name]) : null;
  if (option.type === 5) all = [["true", "Yes"], ["false", "No"]];
  if (option.type === 6 || option.type === 9) all = world.people.map((one) => [one.id, one.name]);
  if (option.type === 8 || option.type === 9) all = [...(all || []), ...world.roles.map((one) => [one.id, `@${one.name}`])];
  if (option.type === 7) all = world.places.filter((one) => one.kind !== "dm").map((one) => [one.id, `#${one.name}`]);
  const made = all
    ? el("select", given, el("option", { value: "" }, "–"), all.map(([id, name]) => el("option", { value: id, selected: id === value }, name)))
    : el("input", { ...given, type: KINDS[option.type] || "text", value: KINDS[option.type] === "file" ? null : value, step: option.type === 10 ? "any" : null, placeholder: option.description });
  fields[option.name] = made;
  made.onkeydown = (event) => {
    if (key(event)) return;
    if (event.key === "Escape") { leave(); $("#text").value = ""; $("#text").focus(); }
    if (event.key === "Enter") { event.preventDefault(); page.submit(); }
  };
  if (option.autocomplete) {
    made.oninput = () => complete(option, made);
    made.onfocus = () => complete(option, made);
    made.onblur = () => left(made);
  }
  return made;
}

async function complete(option, input) {
  const number = asking += 1;
  await new Promise((resolve) => { setTimeout(resolve, 120); });
  if (number !== asking || !command) return;
  const found = await page.act({ do: "complete", name: command.name, option: option.name, value: input.value, options: values() }, [], true);
  if (number !== asking || document.activeElement !== input) return;
  offer((found?.choices || []).map((one) => ({ label: one.name, take: () => { input.dataset.shown = one.name; input.value = one.name; input.dataset.value = one.value; hide(); } })), input);
}

function values() {
  const filled = {};
  for (const [name, input] of Object.entries(fields)) {
    const kind = command.options.find((one) => one.name === name).type;
    if (kind === 11) filled[name] = input.files.length ? input.files[0].name : "";
    else if (kind === 5) filled[name] = input.value ? input.value === "true" : "";
    else filled[name] = input.dataset.shown === input.value && input.dataset.value ? input.dataset.value : input.value;
  }
  return filled;
}

// The act of the command that was filled in, with its files; null if something is missing.
export function filled() {
  const missing = Object.values(fields).find((one) => !one.reportValidity());
  if (missing) return null;
  const files = Object.values(fields).flatMap((one) => [...(one.files || [])]);
  return [{ do: "slash", name: command.name, options: values() }, files];
}

// The command that a line of text names, and the rest of it.
export async function named(text) {
  const { commands } = await page.offered();
  const fits = commands.filter((one) => text === `/${one.name}` || text.startsWith(`/${one.name} `));
  const one = fits.sort((a, b) => b.name.length - a.name.length)[0];
  return one ? [one, text.slice(one.name.length + 2)] : null;
}
