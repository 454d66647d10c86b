// Messages of the channel that is open. `page` is what the rest of the page offers: `known`, `here()`,
// `act(values)`, `reply(message)`, `edit(message)`, `menus()`.

import { $, el, face, tell, unseen } from "./dom.js";
import { marks, time } from "./marks.js";
import { file } from "./net.js";
import { card, embed, form, part, poll, sure } from "./parts.js";

const EPHEMERAL = 64;
const THINKS = 128;
const TOGETHER_MS = 7 * 60000;
const EMOJI = ["👍", "❤️", "😂", "🎉", "🤔", "👀"];
const dismissed = new Set();
const pictures = new Map(); // addresses of files that were fetched
let page;
let messages = new Map();
let settling = new Map();

let low = true; // whether the newest message is in sight

export function begin(given) {
  page = given;
  const log = $("#log");
  log.onscroll = () => { low = log.scrollHeight - log.scrollTop - log.clientHeight < 80; };
  new ResizeObserver(stay).observe(log); // a phone's keyboard takes half of it
}

function stay() {
  if (low) $("#log").scrollTop = $("#log").scrollHeight;
}

export function name(author) {
  return page.known.world.people.find((one) => one.id === author.id)?.name || author.global_name || author.username;
}

export function clear(note) {
  messages = new Map();
  for (const wait of settling.values()) clearTimeout(wait);
  settling = new Map();
  $("#log").replaceChildren(...note);
}

// Takes what changed: `set` are messages by key, `gone` keys. `first`: they were there already.
export function take(set, gone, first) {
  const log = $("#log");
  for (const key of gone) {
    messages.delete(key);
    $(`#${key}`)?.remove();
  }
  for (const [key, message] of Object.entries(set)) {
    const fresh = !messages.has(key);
    messages.set(key, message);
    if (dismissed.has(message.id)) continue;
    place(key, draw(message));
    if (!first && message.author.id !== page.known.world.me) aloud(key, message, fresh);
  }
  if (messages.size) $(".empty", log)?.remove();
  group();
  low ||= first;
  stay();
}

export const own = () => [...messages.values()].filter((one) => one.author.id === page.known.world.me && one.type === 0).at(-1);

export function show(id) {
  const found = $(`#m${id}`);
  if (!found) return tell("That message isn't here any more.");
  found.scrollIntoView({ block: "center" });
  found.classList.add("found");
  setTimeout(() => found.classList.remove("found"), 2000);
}

function place(key, made) {
  const old = $(`#${key}`);
  if (old) return old.replaceWith(made);
  const id = BigInt(key.slice(1));
  const log = $("#log");
  const next = [...log.querySelectorAll(".message")].find((one) => BigInt(one.id.slice(1)) > id);
  log.insertBefore(made, next || null);
}

// Says a message once to who listens, when it doesn't grow any more.
function aloud(key, message, fresh) {
  clearTimeout(settling.get(key));
  if (!fresh && !settling.has(key)) return;
  settling.set(key, setTimeout(() => {
    settling.delete(key);
    const text = $(`#${key} .body`)?.innerText || "";
    $("#said").textContent = `${name(message.author)}: ${text.slice(0, 400)}`;
  }, 1500));
}

function group() {
  let before = null;
  for (const one of document.querySelectorAll("#log > .message")) {
    const message = messages.get(one.id);
    const near = before && before.author.id === message.author.id && new Date(message.timestamp) - new Date(before.timestamp) < TOGETHER_MS;
    one.classList.toggle("same", Boolean(near && !message.referenced_message && !message.interaction_metadata && message.type !== 18));
    before = message.type === 18 ? null : message;
  }
}

function draw(message) {
  const { known } = page;
  const mine = message.author.id === known.world.me;
  const hidden = Boolean(message.flags & EPHEMERAL);
  const bot = message.author.id === known.world.bot.id;
  const at = {
    known,
    picture: (url, about) => picture(message, url, about),
    attached: (one) => attached(message, one),
    press: (id) => busy(message, page.act({ do: "press", message: message.id, id })),
    choose: (id, kind, values) => busy(message, page.act({ do: "choose", message: message.id, id, kind, values })),
  };
  if (message.type === 18) {
    return el("article.message.system", { id: `m${message.id}`, "data-message": message.id }, `${name(message.author)} started a thread: `,
      el("button.link", { type: "button", onclick: () => known.go(message.message_reference?.channel_id) }, message.content));
  }
  const asked = message.interaction_metadata;
  const quoted = message.referenced_message;
  const body = el("div.body", {},
    message.flags & THINKS ? el("div.dim.thinks", {}, "thinking …") : message.content ? el("div.text", {}, marks(message.content, known)) : null,
    message.edited_timestamp && !bot ? el("span.small", {}, "(edited)") : null,
    message.message_snapshots?.map((one) => card(null, [el("div.small", {}, "Forwarded"), el("div.text", {}, marks(one.message.content || "", known))])),
    message.poll && poll(message.poll, known),
    message.embeds.map((one) => embed(one, at)),
    message.attachments.filter((one) => !JSON.stringify(message.components).includes(one.url)).map((one) => attached(message, one)),
    message.components.map((one) => part(one, at)));
  return el("article.message", { id: `m${message.id}`, "data-message": message.id, "data-by": name(message.author), "data-hidden": hidden ? "" : null },
    quoted && el("button.quoted", { type: "button", onclick: () => show(quoted.id) }, unseen("In reply to "), el("strong", {}, name(quoted.author)), " ", quoted.content.slice(0, 90) || "a card"),
    asked?.name && el("div.quoted", {}, el("strong", {}, known.person(asked.user?.id)), ` used ${asked.command_type === 3 ? asked.name : `/${asked.name}`}`),
    face(name(message.author), bot),
    el("header", {}, el("strong", {}, name(message.author)), bot && el("span.tag", {}, "APP"), " ", el("span.small", {}, time(new Date(message.timestamp) / 1000, "t"))),
    body,
    hidden && el("div.small.only", {}, `Only ${mine || !asked ? "you" : known.person(asked.user?.id)} can see this · `, el("button.link", { type: "button", onclick: () => dismiss(message) }, "Dismiss")),
    message.reactions.length ? el("div.parts", {}, message.reactions.map((one) => reaction(message, one))) : null,
    message.thread && el("button.link", { type: "button", onclick: () => known.go(message.id) }, `Thread: ${message.thread} ›`),
    hidden || message.flags & THINKS ? null : el("button.icon.more", { type: "button", "aria-label": "More about this message", "aria-haspopup": "menu", onclick: (event) => menu(event.currentTarget, message) }, "⋯"));
}

function dismiss(message) {
  dismissed.add(message.id);
  $(`#m${message.id}`).remove();
  group();
}

async function busy(message, work) {
  const made = $(`#m${message.id}`);
  made?.setAttribute("aria-busy", "true");
  try {
    await work;
  } finally {
    $(`#m${message.id}`)?.removeAttribute("aria-busy");
  }
}

function reaction(message, one) {
  const emoji = one.emoji.name;
  return el("button.reaction", { type: "button", "aria-pressed": String(one.me), onclick: () => page.act({ do: "react", message: message.id, emoji, on: !one.me }) }, emoji, ` ${one.count}`);
}

// ------------------------------------------------------------------ files

async function fetched(message, url, type) {
  if (!pictures.has(url)) {
    pictures.set(url, file({ ...page.here(), message: message.id, url, type }).then((blob) => URL.createObjectURL(blob)));
  }
  return pictures.get(url);
}

function picture(message, url, about) {
  const type = { jpg: "image/jpeg", jpeg: "image/jpeg", gif: "image/gif", webp: "image/webp" }[url.split(".").pop().toLowerCase()] || "image/png";
  const made = el("img", { alt: about || "A picture", onload: stay });
  if (/^https?:/.test(url)) fetched(message, url, type).then((found) => { made.src = found; }, () => { made.alt = "A picture that isn't here"; });
  return made;
}

function attached(message, one) {
  if (/^image\/(png|jpeg|gif|webp)$/.test(one.content_type || "")) return el("div.attached", {}, picture(message, one.url, one.description || one.filename));
  const size = one.size < 1024 ? `${one.size} bytes` : `${Math.round(one.size / 1024)} KB`;
  const save = async () => {
    const href = await fetched(message, one.url, "").catch((error) => tell(error.message));
    if (href) el("a", { href, download: one.filename }).click();
  };
  return el("div.attached", {}, el("button.quiet", { type: "button", onclick: save }, `${one.filename}`, el("span.small", {}, ` ${size}`)));
}

// ------------------------------------------------------------------ the menu of a message

async function menu(button, message) {
  const shown = $("#menu");
  const mine = message.author.id === page.known.world.me;
  const place = page.known.place(page.here().channel);
  const item = (label, work, given = {}) => el("button", { type: "button", role: "menuitem", ...given, onclick: () => { shown.hidePopover(); work(); } }, label);
  const act = (values) => page.act({ message: message.id, ...values });
  shown.replaceChildren(
    el("div.parts", {}, EMOJI.map((emoji) => item(emoji, () => act({ do: "react", emoji, on: !message.reactions.some((one) => one.me && one.emoji.name === emoji) })))),
    item("Reply", () => page.reply(message)),
    ...(mine ? [item("Edit", () => page.edit(message))] : []),
    ...(place?.kind === "text" ? [item(message.thread ? "Open the thread" : "Open a thread", () => thread(message))] : []),
    ...(mine || place?.kind !== "dm" ? [item("Delete", async () => { if (await sure("Delete this message?", message.content || "(no text)")) act({ do: "delete" }); })] : []),
    ...(await page.menus()).map((one) => item(one, () => act({ do: "menu", name: one }), { "data-menu": one })));
  shown.showPopover();
  const box = button.getBoundingClientRect();
  shown.style.top = `${Math.max(8, Math.min(box.bottom, innerHeight - shown.offsetHeight - 8))}px`;
  shown.style.left = `${Math.max(8, box.right - shown.offsetWidth)}px`;
  $("button", shown).focus();
}

async function thread(message) {
  if (message.thread) return page.known.go(message.id);
  const modal = { title: "Open a thread", components: [{ type: 18, label: "Name", component: { type: 4, custom_id: "name", value: message.content.slice(0, 40), max_length: 100 } }] };
  const filled = await form(modal, page.known);
  const made = filled && await page.act({ do: "thread", message: message.id, name: filled.name });
  if (made?.channel) page.known.go(made.channel);
}
