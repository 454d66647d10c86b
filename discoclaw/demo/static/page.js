// The page: who you are, where you are, what you write. Everything else is in the other modules.

import * as commands from "./commands.js";
import { $, el, face, tell, unseen } from "./dom.js";
import { act, ask, follow, session } from "./net.js";
import * as panel from "./panel.js";
import { form } from "./parts.js";
import * as talk from "./talk.js";
import * as welcome from "./welcome.js";

const still = matchMedia("(prefers-reduced-motion: reduce)");
const narrow = matchMedia("(max-width: 900px)");
const seen = JSON.parse(sessionStorage.getItem(`${session} seen`) || "{}"); // by person and channel: the newest message they saw
let me = "";
let at = "start";
let feed = ""; // the channel that is followed, also while the welcome is shown
let stop = new AbortController();
let files = [];
let about = null; // the message that is replied to or edited: { reply } or { edit }
let catalogue = null;
let typed = 0;

const known = {
  world: { me: "", bot: { id: "", name: "" }, people: [], roles: [], places: [] },
  person: (id) => known.world.people.find((one) => one.id === id)?.name || (id === known.world.bot.id ? known.world.bot.name : "somebody"),
  role: (id) => known.world.roles.find((one) => one.id === id)?.name || "a role",
  place: (id) => known.world.places.find((one) => one.id === id),
  async go(id, message) { await page.go(id); if (message) setTimeout(() => talk.show(message), 400); },
};

const page = {
  known,
  here: () => ({ as: me, channel: feed }),
  async act(values, given = [], quiet = false) {
    try {
      const done = await act({ ...page.here(), ...values }, given);
      if (done.modal) await fill(done.modal);
      return done;
    } catch (error) {
      if (!quiet) tell(error.message);
      return null;
    }
  },
  offered() { return (catalogue ||= ask("/commands", page.here())); },
  menus: async () => (await page.offered()).menus,
  reply(message) { about = { reply: message }; draft(); },
  edit(message) { about = { edit: message }; $("#text").value = message.content; draft(); },
  submit: () => $("#composer").requestSubmit(),
  go, be, type,
};

// ------------------------------------------------------------------ who and where

async function be(id) {
  if (id === me) return;
  me = id;
  const place = known.place(feed);
  const left = place?.kind === "dm" || place?.private ? about_.home : feed;
  await watch(left);
  if (at !== "start") at = feed;
  draw();
}

async function go(id) {
  toggle("places", false);
  if (narrow.matches) toggle("held", false);
  at = id;
  if (id === "start") return draw();
  if (!known.place(id)) return tell("You can't read that channel."), go(about_.home);
  if (id !== feed) await watch(id);
  draw();
  if (!narrow.matches) $("#text").focus();
}

// Follow a channel as the person; resolves when it is there.
function watch(id) {
  stop.abort();
  stop = new AbortController();
  feed = id;
  catalogue = about = null;
  files = [];
  commands.leave();
  draft();
  const { signal } = stop;
  return new Promise((ready) => {
    const run = async () => {
      let first = true;
      const take = (change) => {
        if (signal.aborted) return;
        taken(change, first);
        first = false;
        ready();
      };
      for (let wait = 500; !signal.aborted; wait = Math.min(wait * 2, 8000)) {
        first = true;
        try {
          await follow(page.here(), take, signal);
        } catch (error) {
          if (signal.aborted) return;
          if (error.status === 401) return ended("This demo has ended, or the address isn't whole. Open the address that the terminal shows.");
          if (error.status === 400 && feed !== about_.home) return ready(go(about_.home));
        }
        if (signal.aborted) return;
        ended("The demo doesn't answer. Is it still running in the terminal?");
        await new Promise((resolve) => { setTimeout(resolve, wait); });
      }
    };
    run();
  });
}

function ended(text) {
  const told = $("#told");
  told.textContent = text;
  told.hidden = false;
  told.dataset.lasts = "";
}

function taken({ set, gone }, first) {
  const told = $("#told");
  if ("lasts" in told.dataset) { delete told.dataset.lasts; told.hidden = true; }
  const { world, typing, held, ...messages } = set;
  if (world) {
    Object.assign(known.world, world);
    if (first && !Object.keys(seen).some((key) => key.startsWith(`${me} `))) for (const place of world.places) seen[`${me} ${place.id}`] = place.last;
  }
  if (first) {
    const place = known.place(feed);
    panel.reset(known.person(me));
    talk.clear([el("div.empty", {}, el("h2", {}, title(place)), el("p", {}, place.kind === "dm" ? "Only you and the bot can read this." : place.topic || "Nothing was said here yet."))]);
  }
  talk.take(messages, gone, first);
  if (held) panel.take(held);
  if (typing) $("#typing").textContent = typing.length ? `${typing.map(known.person).join(" and ")} ${typing.length > 1 ? "are" : "is"} typing …` : "";
  if (world) draw();
}

const title = (place) => `${place.kind === "dm" ? "@" : "#"}${place.name}`;

function draw() {
  const start = at === "start";
  $("#start").hidden = !start;
  $("#talk").hidden = start;
  const place = known.place(feed);
  $("#title").textContent = start ? "Start here" : place ? title(place) : "";
  $("#topic").textContent = start || !place ? "" : place.topic;
  if (!start && place) seen[`${me} ${feed}`] = place.last;
  sessionStorage.setItem(`${session} seen`, JSON.stringify(seen));
  sessionStorage.setItem(`${session} at`, JSON.stringify([me, at]));
  document.body.dataset.me = known.person(me);
  $("#text").placeholder = place ? `Write as ${known.person(me)}${narrow.matches ? "" : ` in ${place.kind === "dm" ? "a direct message" : `#${place.name}`}, or / for commands`}` : "";
  const marks = { text: "#", thread: "↳", dm: "✉" };
  const entry = (one) => {
    const fresh = BigInt(one.last) > BigInt(seen[`${me} ${one.id}`] || 0) && (start || one.id !== feed);
    return el("button.place", { type: "button", "data-place": one.id, "data-name": one.name, "data-kind": one.kind, "aria-current": !start && one.id === feed ? "page" : null, onclick: () => go(one.id) },
      el("span.mark", { "aria-hidden": "true" }, marks[one.kind]), one.name, one.private && el("span.tag", {}, "private"), fresh && el("span.fresh", {}, unseen("new messages")));
  };
  const of = (...kinds) => known.world.places.filter((one) => kinds.includes(one.kind)).map(entry);
  const kept = document.activeElement?.closest("#places [data-place], #places [data-person]");
  const again = kept && `#places [data-${kept.dataset.place ? "place" : "person"}="${kept.dataset.place || kept.dataset.person}"]`;
  $("#places").replaceChildren(
    el("button.place", { type: "button", "data-place": "start", "aria-current": start ? "page" : null, onclick: () => go("start") }, el("span.mark", { "aria-hidden": "true" }, "★"), "Start here"),
    el("h2", {}, "Channels"), ...of("text", "thread"), el("h2", {}, "Direct messages"), ...of("dm"),
    el("h2", {}, "You are"), el("div.people", { role: "group", "aria-label": "You are" }, known.world.people.map((one) => el("button.person", { type: "button", "data-person": one.name, "aria-pressed": String(one.id === me), title: one.about, onclick: () => be(one.id) },
      face(one.name), el("span", {}, el("strong", {}, one.name), el("span.small", {}, one.about))))));
  if (again) $(again)?.focus();
}

// ------------------------------------------------------------------ writing

function draft() {
  const note = $("#about-this");
  note.hidden = !about;
  if (about) note.replaceChildren(about.edit ? "Editing your message" : `Replying to ${talk.name(about.reply.author)}`, el("button.link", { type: "button", onclick: quit }, "Cancel"));
  $("#files").replaceChildren(...files.map((one) => el("span.chip", {}, `${one.name}`, el("button.icon", { type: "button", "aria-label": `Remove ${one.name}`, onclick: () => { files = files.filter((other) => other !== one); draft(); } }, "✕"))));
  grow();
  if (about) $("#text").focus();
}

function quit() {
  if (about?.edit) $("#text").value = "";
  about = null;
  commands.leave();
  draft();
}

function grow() {
  const text = $("#text");
  text.style.height = "auto";
  text.style.height = `${Math.min(text.scrollHeight + 2, 200)}px`;
}

async function send() {
  const text = $("#text").value;
  const line = commands.chosen();
  if (line && text.startsWith(`/${line.name}`)) {
    const filled = commands.filled();
    if (filled) {
      done(`/${line.name}`);
      await page.act(...filled);
    }
    return;
  }
  if (text.startsWith("/") && !about && !files.length) {
    const found = await commands.named(text.trim());
    if (!found) return tell(`There is no command ${text.split(" ")[0]} here.`);
    commands.pick(...found);
    if (found[0].options.every((one) => !one.required) || found[1]) await send();
    return;
  }
  if (!text.trim() && !files.length) return;
  const given = files;
  const values = about?.edit ? { do: "edit", message: about.edit.id, text } : { do: "send", text, reply: about?.reply?.id };
  done(text);
  if (!(await page.act(values, given)) && !$("#text").value) {
    $("#text").value = text; // nothing that was written is lost
    files = given;
    draft();
  }
}

function done(text) {
  welcome.said(me, feed, text);
  if (document.activeElement.closest("#options")) $("#text").focus();
  $("#text").value = "";
  files = [];
  about = null;
  commands.leave();
  draft();
}

// Types a text as a person would, and sends it.
async function type(text) {
  if (at === "start") await go(feed);
  if (narrow.matches) toggle("held", false);
  quit();
  const box = $("#text");
  for (let length = still.matches ? text.length : 1; length <= text.length; length += 1) {
    box.value = text.slice(0, length);
    if (length < text.length) await new Promise((resolve) => { setTimeout(resolve, 14); });
  }
  await send();
}

async function fill(modal) {
  const values = await form(modal, known);
  if (values) await page.act({ do: "submit", modal: modal.key, values });
}

function attach(given) {
  files = [...files, ...given].slice(0, 10);
  draft();
}

// ------------------------------------------------------------------ drawers, keys, files

function toggle(name, on = !document.body.classList.contains(`${name}-open`)) {
  if (on && narrow.matches) document.body.classList.remove(name === "held" ? "places-open" : "held-open");
  document.body.classList.toggle(`${name}-open`, on);
  for (const one of ["places", "held"]) {
    const open = document.body.classList.contains(`${one}-open`);
    $(`[data-open=${one}]`).setAttribute("aria-expanded", String(open));
    $(`#${one}`).inert = !open && (one === "held" || narrow.matches);
  }
  $("#shade").hidden = !narrow.matches || !/(places|held)-open/.test(document.body.className);
}

function listen() {
  for (const name of ["places", "held"]) $(`[data-open=${name}]`).onclick = () => toggle(name);
  document.addEventListener("click", (event) => { if (event.target.closest("[data-close=held], #shade")) { toggle("places", false); toggle("held", false); } });
  narrow.addEventListener("change", () => toggle("held", !narrow.matches));
  $("[data-theme-switch]").onclick = () => theme((document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "")) === "dark" ? "light" : "dark");
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && narrow.matches && !event.defaultPrevented) { toggle("places", false); toggle("held", false); }
  });
  $("#composer").onsubmit = (event) => { event.preventDefault(); send(); };
  $("#text").oninput = () => {
    grow();
    const chosen = commands.chosen();
    if (chosen && !$("#text").value.startsWith(`/${chosen.name}`)) commands.leave();
    if (Date.now() - typed > 8000 && $("#text").value) { typed = Date.now(); page.act({ do: "type" }, [], true); }
  };
  $("#text").onkeydown = (event) => {
    if (commands.key(event)) return;
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); send(); }
    else if (event.key === "Escape") { quit(); event.preventDefault(); }
    else if (event.key === "ArrowUp" && !$("#text").value && talk.own()) { page.edit(talk.own()); event.preventDefault(); }
  };
  $("#text").onpaste = (event) => { if (event.clipboardData.files.length) { attach(event.clipboardData.files); event.preventDefault(); } };
  $("#file").onchange = (event) => { attach(event.target.files); event.target.value = ""; };
  $("#talk").ondragover = (event) => { event.preventDefault(); $("#talk").classList.add("drop"); };
  $("#talk").ondragleave = () => $("#talk").classList.remove("drop");
  $("#talk").ondrop = (event) => { event.preventDefault(); $("#talk").classList.remove("drop"); attach(event.dataTransfer.files); };
}

function theme(name) {
  document.documentElement.dataset.theme = name;
  localStorage.setItem("theme", name);
}

let about_; // what the program tells once: steps, model, folder
async function start() {
  const chosen = localStorage.getItem("theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
  listen();
  try {
    about_ = await ask("/about");
  } catch (error) {
    $("#start").hidden = false;
    $("#start").replaceChildren(el("div.inner", {}, el("h2", {}, "This page needs its whole address"), el("p", {}, "Open the address that the terminal shows. It ends with a key behind #, which is new for each demo.")));
    return;
  }
  for (const one of [talk, commands, panel]) one.begin(page);
  toggle("held", !narrow.matches);
  welcome.begin(page, about_);
  const [who, where] = JSON.parse(sessionStorage.getItem(`${session} at`) || "[]");
  me = who || about_.steps[0].acts[0].who;
  await watch(about_.home);
  await go(where || "start");
  document.body.dataset.ready = "";
}
window.addEventListener("hashchange", () => location.reload());
start();
