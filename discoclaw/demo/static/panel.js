// What the bot knows about the person who looks: the durable file, the history, the last prompt.

import { $, el } from "./dom.js";
import { time } from "./marks.js";

let page;
let before = null; // what was shown last, of the same person
const parts = {};

export function begin(given) {
  page = given;
  const run = (name, label) => el("button.quiet", { type: "button", onclick: () => page.type(`/${name}`) }, label);
  for (const [name, title, about, open] of [
    ["file", "Memory", "The file with what it knows, as it is on disk. You may edit it: the bot notices.", true],
    ["commits", "History", "Every change, newest first. Nothing is overwritten; undo adds a change. Press one for its details.", true],
    ["prompt", "Last prompt", "What was sent to the model for the last answer to this person.", false],
  ]) {
    parts[name] = { count: el("span.tag"), inside: el("div") };
    parts[name].whole = el("details", { open, "data-held": name }, el("summary", {}, title, " ", parts[name].count), el("p.small", {}, about), parts[name].inside);
  }
  $("#held").replaceChildren(
    el("header", {}, el("h2", { id: "held-title" }), el("button.icon", { type: "button", "data-close": "held", "aria-label": "Close" }, "✕")),
    el("div.parts", {}, run("memory show", "Show"), run("memory preview", "Preview"), run("memory undo", "Undo")),
    el("p.small", { id: "held-path" }),
    ...Object.values(parts).map((one) => one.whole));
}

export function reset(name) {
  before = null;
  $("#held-title").textContent = name === "you" ? "What it knows about you" : `What it knows about ${name}`;
}

export function take(held) {
  $("#held-path").textContent = held.path;
  const items = (held.file.match(/^ {6}"id":/gm) || held.file.match(/"id":/g) || []).length;
  show("file", held.file ? held.file.split("\n") : [], items, "Nothing yet. Say something about yourself.", "\n");
  held.commits = held.commits.map((one) => JSON.stringify(one));
  show("commits", held.commits, held.commits.length, "No changes yet.", null);
  show("prompt", held.prompt ? held.prompt.split("\n") : [], held.prompt ? `${Math.ceil(held.prompt.length / 1024)} KB` : 0, "Nothing was sent to a model for this person yet, or it was taken back.", "\n");
  before = held;
}

// Shows lines, or blocks, and marks those that weren't there before.
function show(name, all, count, empty, joint) {
  const was = before && (Array.isArray(before[name]) ? before[name] : before[name].split("\n"));
  if (was && was.join("\n") === all.join("\n")) return;
  const key = (text) => /commit \w+/.exec(text)?.[0] || text; // where HEAD is may change
  const known = new Set((was || all).map(key));
  const { whole, inside } = parts[name];
  parts[name].count.textContent = count;
  const line = (text) => el(joint ? "span" : "details", { className: known.has(key(text)) ? "" : "new" }, joint ? [text, joint] : change(JSON.parse(text)));
  inside.replaceChildren(all.length ? (joint ? el("pre", {}, all.map(line)) : el("div", {}, all.map(line))) : el("p.dim", {}, empty));
  if (was && name !== "prompt") {
    whole.classList.remove("changed");
    requestAnimationFrame(() => whole.classList.add("changed"));
    const [box, fresh] = [$("pre", inside), [...inside.querySelectorAll(".new")].find((one) => /"(text|status)"/.test(one.textContent))];
    if (fresh && joint) box.scrollTop = fresh.offsetTop - 90;
  }
}

// A change in a line; its log as the terminal shows it below, once it is pressed.
const change = (one) => [el("summary", {}, one.done, " ", el("span.small", {}, time(one.at / 1000, "R"))), el("pre", {}, one.log)];
