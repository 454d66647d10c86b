// Discord's markdown as elements. `known` looks up people, roles, channels; `known.go` opens a channel.

import { el } from "./dom.js";

const INSIDE = "((?:\\\\[\\s\\S]|[^\\\\])+?)"; // what a mark is around; \* and the like don't end it
const TIMES = {
  t: { timeStyle: "short" }, T: { timeStyle: "medium" }, d: { dateStyle: "short" }, D: { dateStyle: "long" },
  f: { dateStyle: "long", timeStyle: "short" }, F: { dateStyle: "full", timeStyle: "short" },
};
const SPANS = [["year", 31536000], ["month", 2592000], ["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];

const RULES = [
  [/\\([^\sA-Za-z0-9])/y, (m) => m[1]],
  [/(`+)([\s\S]*?[^`])\1(?!`)/y, (m) => el("code", {}, m[2])],
  [new RegExp(`\\*\\*${INSIDE}\\*\\*(?!\\*)`, "y"), (m, known) => el("strong", {}, inline(m[1], known))],
  [new RegExp(`__${INSIDE}__(?!_)`, "y"), (m, known) => el("u", {}, inline(m[1], known))],
  [new RegExp(`~~${INSIDE}~~`, "y"), (m, known) => el("s", {}, inline(m[1], known))],
  [new RegExp(`\\|\\|${INSIDE}\\|\\|`, "y"), (m, known) => spoiler(inline(m[1], known))],
  [new RegExp(`\\*(?=\\S)${INSIDE}(?<=[^\\s\\\\])\\*(?!\\*)`, "y"), (m, known) => el("em", {}, inline(m[1], known))],
  [new RegExp(`(?<!\\w)_(?=\\S)${INSIDE}_(?!\\w)`, "y"), (m, known) => el("em", {}, inline(m[1], known))],
  [/\[((?:\\.|[^\[\]\\])+)\]\(<?(https?:\/\/[^\s<>)]+)>?\)/y, (m, known) => link(m[2], inline(m[1], known), known)],
  [/<(https?:\/\/[^\s<>]+)>/y, (m, known) => link(m[1], null, known)],
  [/https?:\/\/[^\s<>]*[^\s<>.,:;"')\]!?*_~|]/y, (m, known) => link(m[0], null, known)],
  [/<@!?(\d+)>/y, (m, known) => el("span.mention", {}, `@${known.person(m[1])}`)],
  [/<@&(\d+)>/y, (m, known) => el("span.mention", {}, `@${known.role(m[1])}`)],
  [/<#(\d+)>/y, (m, known) => channel(m[1], known)],
  [/<t:(-?\d{1,12})(?::([tTdDfFR]))?>/y, (m) => time(Number(m[1]), m[2])],
  [/<\/([^:<>\n]{1,100}):\d+>/y, (m) => el("span.mention", {}, `/${m[1]}`)],
  [/<a?(:\w+:)\d+>/y, (m) => m[1]],
  [/@(?:everyone|here)\b/y, (m) => el("span.mention", {}, m[0])],
];

function link(url, label, known) {
  const inside = /^https:\/\/discord\.com\/channels\/(?:@me|\d+)\/(\d+)(?:\/(\d+))?$/.exec(url);
  const place = inside && known.place(inside[1]);
  if (place) return el("button.link", { type: "button", onclick: () => known.go(inside[1], inside[2]) }, label || `#${place.name} › message`);
  return el("a", { href: url, target: "_blank", rel: "noreferrer noopener" }, label || url);
}

function channel(id, known) {
  const place = known.place(id);
  return place ? el("button.mention", { type: "button", onclick: () => known.go(id) }, `#${place.name}`) : el("span.mention", {}, "#no-access");
}

function spoiler(children) {
  return el("button.spoiler", { type: "button", "aria-label": "Spoiler", onclick() { this.classList.add("shown"); this.removeAttribute("aria-label"); } }, children);
}

function ago(seconds) {
  const from = seconds - Date.now() / 1000;
  const [unit, size] = SPANS.find(([, one]) => Math.abs(from) >= one) || ["second", 1];
  return new Intl.RelativeTimeFormat("en", { numeric: "auto" }).format(Math.trunc(from / size), unit);
}

export function time(seconds, form = "f") {
  const at = new Date(seconds * 1000);
  if (Number.isNaN(at.valueOf())) return String(seconds);
  const full = new Intl.DateTimeFormat("en-GB", TIMES.F).format(at);
  const text = form === "R" ? ago(seconds) : new Intl.DateTimeFormat("en-GB", TIMES[form]).format(at);
  return el("time", { dateTime: at.toISOString(), title: full, "data-ago": form === "R" ? seconds : null }, text);
}
setInterval(() => {
  for (const one of document.querySelectorAll("[data-ago]")) one.textContent = ago(Number(one.dataset.ago));
}, 20000);

function inline(text, known) {
  const found = [];
  let plain = "";
  for (let at = 0; at < text.length;) {
    let hit = null;
    for (const [rule, make] of "\\`*_~|[<h@".includes(text[at]) ? RULES : []) {
      rule.lastIndex = at;
      if ((hit = rule.exec(text))) {
        found.push(plain, make(hit, known));
        plain = "";
        at += hit[0].length; // not `lastIndex`: what is inside may have used the same rule
        break;
      }
    }
    if (!hit) plain += text[at++];
  }
  return [...found, plain].filter((one) => one !== "");
}

// All of a text: headings, small print, quotations, lists, blocks of code.
export function marks(text, known) {
  const made = document.createDocumentFragment();
  const pieces = text.split(/```(?:[\w+#.-]*\n)?([\s\S]*?)```\n?/);
  pieces.forEach((piece, number) => {
    if (number % 2) made.append(el("pre", {}, el("code", {}, piece.replace(/\n$/, ""))));
    else if (piece) made.append(...lines(piece, known));
  });
  return made;
}

function lines(text, known) {
  const made = [];
  let paragraph = null;
  let quote = null;
  const all = text.replace(/\n$/, "").split("\n");
  for (let number = 0; number < all.length; number += 1) {
    const line = all[number];
    const heading = /^(#{1,3}) +(.+)$/.exec(line);
    const item = /^( *)(?:[-*]|(\d+)\.) +(.+)$/.exec(line);
    if (line.startsWith(">>> ")) {
      made.push(el("blockquote", {}, lines([line.slice(4), ...all.slice(number + 1)].join("\n"), known)));
      return made;
    }
    if (line.startsWith("> ") || line === ">") {
      if (!quote) made.push((quote = el("blockquote")));
      else quote.append(el("br"));
      quote.append(...inline(line.slice(2), known));
      paragraph = null;
      continue;
    }
    quote = null;
    if (heading) made.push(el(`div.h${heading[1].length}`, { role: "heading", "aria-level": String(heading[1].length + 2) }, inline(heading[2], known)));
    else if (line.startsWith("-# ")) made.push(el("div.small", {}, inline(line.slice(3), known)));
    else if (item) made.push(el("div.item", { "data-deep": item[1].length > 1 ? "" : null }, el("span", { "aria-hidden": "true" }, item[2] ? `${item[2]}.` : "•"), el("span", {}, inline(item[3], known))));
    else {
      if (paragraph) paragraph.append(el("br"));
      else made.push((paragraph = el("div.p")));
      paragraph.append(...inline(line, known));
      continue;
    }
    paragraph = null;
  }
  return made;
}
