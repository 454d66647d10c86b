// The five steps: a page of their own, and a line above the composer with what comes next.

import { $, el } from "./dom.js";
import { session } from "./net.js";

let page;
let steps = [];
const kept = `${session} steps`;
const done = new Set(JSON.parse(sessionStorage.getItem(kept) || "[]"));
const key = (step, number) => `${step.id}:${number}`;
const complete = (step) => step.acts.every((_, number) => done.has(key(step, number)));

export function begin(given, about) {
  page = given;
  steps = about.steps;
  const model = about.model
    ? `The model is ${about.model}.`
    : "A built-in offline model answers, so it understands little. Set ANTHROPIC_API_KEY to have a real one.";
  $("#start").replaceChildren(el("div.inner", {},
    el("h2", {}, "A bot that remembers you, and shows you what it knows"),
    el("p", {}, "This is a small Discord inside your browser, with the real bot in it. You can be three people; the bot keeps a memory of each. Five steps show what that is good for. Each button goes to the right place, types for you and sends."),
    el("div", { id: "steps" }),
    el("p.dim", {}, `${model} Nothing leaves this machine for this page. What the bot knows is in files: ${about.folder}`)));
  draw();
}

export function draw() {
  const number = steps.findIndex((step) => !complete(step));
  const next = steps[number];
  const first = next ? next.acts.findIndex((_, one) => !done.has(key(next, one))) : -1;
  $("#steps").replaceChildren(...steps.map((step, place) => el("section.step", { "data-step": step.id, "data-done": complete(step) ? "" : null },
    el("span.number", { "aria-hidden": "true" }, complete(step) ? "✓" : place + 1),
    el("div", {}, el("h3", {}, step.title, complete(step) && el("span.unseen", {}, " (done)")), el("p", {}, step.about), el("div.parts", {}, step.acts.map((_, which) => button(step, which, step === next && which === first)))))));
  $("#guide").replaceChildren(
    el("span.small", {}, next ? `Step ${number + 1} of ${steps.length}: ${next.title}` : "You have seen all five steps. Say what you like."),
    next ? button(next, first, true) : "", el("button.link", { type: "button", "data-place": "start", onclick: () => page.go("start") }, "All steps"));
}

function button(step, number, primary) {
  const act = step.acts[number];
  const ticked = done.has(key(step, number));
  return el(`button.${primary ? "primary" : "quiet"}`, { type: "button", "data-step": step.id, "data-act": number, title: act.say || null, onclick: () => take(step, number) }, ticked ? "✓ " : "", act.label);
}

async function take(step, number) {
  const act = step.acts[number];
  await page.be(act.who);
  await page.go(act.where);
  if (act.say) await page.type(act.say);
  if (act.go || act.say.startsWith("/")) tick(step, number);
}

function tick(step, number) {
  done.add(key(step, number));
  sessionStorage.setItem(kept, JSON.stringify([...done]));
  draw();
}

// Something was said, with a button or by hand: whether it belongs to a step.
export function said(who, where, text) {
  for (const step of steps) {
    step.acts.forEach((act, number) => {
      if (act.say && act.who === who && act.where === where && act.say.toLowerCase() === text.trim().toLowerCase()) tick(step, number);
    });
  }
}
