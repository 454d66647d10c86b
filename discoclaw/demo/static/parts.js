// Components of messages and of forms. `at` knows the message and says what a press does:
// `at.known`, `at.picture(url)`, `at.press(id)`, `at.choose(id, kind, values)`.

import { $, el } from "./dom.js";
import { marks } from "./marks.js";

const STYLES = { 1: "primary", 2: "quiet", 3: "good", 4: "bad" };

export function part(one, at) {
  const inside = () => (one.components || []).map((child) => part(child, at));
  switch (one.type) {
    case 1: return el("div.parts", {}, inside());
    case 2: return button(one, at);
    case 3: case 5: case 6: case 7: case 8: return select(one, at);
    case 9: return el("div.section", {}, el("div", {}, inside()), one.accessory && part(one.accessory, at));
    case 10: return el("div.text", {}, marks(one.content, at.known));
    case 11: return at.picture(one.media.url, one.description || "");
    case 12: return el("div.gallery", {}, one.items.map((item) => at.picture(item.media.url, item.description || "")));
    case 13: return at.attached({ url: one.file.url, filename: one.name || "file", size: one.size });
    case 14: return el("hr", { "data-plain": one.divider === false ? "" : null });
    case 17: return card(one.accent_color, inside());
    default: return el("div.dim", {}, `(a component of type ${one.type})`);
  }
}

export function card(colour, children) {
  const made = el("div.card", {}, children);
  if (colour) made.style.setProperty("--edge", `#${colour.toString(16).padStart(6, "0")}`);
  return made;
}

function button(one, at) {
  const label = [one.emoji && el("span", { "aria-hidden": "true" }, one.emoji.id ? "" : one.emoji.name), one.label || (one.label === undefined && one.emoji ? el("span.unseen", {}, one.emoji.name) : "")];
  if (one.style === 5) return el("a.button.quiet", { href: /^https?:/.test(one.url) ? one.url : null, target: "_blank", rel: "noreferrer noopener" }, label, " ↗");
  return el(`button.${STYLES[one.style] || "quiet"}`, { type: "button", disabled: one.disabled, "data-press": one.custom_id, onclick: () => at.press(one.custom_id) }, label);
}

// What can be chosen in a select: [value, label, about, chosen by default].
function choices(one, known) {
  if (one.type === 3) return one.options.map((option) => [option.value, [option.emoji && !option.emoji.id && option.emoji.name, option.label].filter(Boolean).join(" "), option.description, option.default]);
  const set = new Set((one.default_values || []).map((value) => value.id));
  const people = one.type === 5 || one.type === 7 ? known.world.people : [];
  const roles = one.type === 6 || one.type === 7 ? known.world.roles : [];
  const places = one.type === 8 ? known.world.places.filter((place) => place.kind !== "dm" && (!one.channel_types?.length || one.channel_types.includes(place.kind === "thread" ? 11 : 0))) : [];
  return [...people.map((p) => [p.id, p.name]), ...roles.map((r) => [r.id, `@${r.name}`]), ...places.map((p) => [p.id, `#${p.name}`])].map(([id, name]) => [id, name, "", set.has(id)]);
}

function select(one, at) {
  const all = choices(one, at.known);
  const named = one.placeholder || "Choose";
  const least = one.min_values ?? 1;
  const send = (values) => at.choose(one.custom_id, one.type, values);
  if ((one.max_values ?? 1) === 1) {
    const made = el("select", { "aria-label": named, disabled: one.disabled, "data-choose": one.custom_id },
      el("option", { value: "", disabled: least > 0 }, named),
      all.map(([value, label, about, set]) => el("option", { value, selected: set }, about ? `${label} – ${about}` : label)));
    if (!all.some((choice) => choice[3])) made.value = "";
    made.onchange = () => send(made.value ? [made.value] : []);
    return made;
  }
  const boxes = all.map(([value, label, about, set]) => el("label", {}, el("input", { type: "checkbox", value, checked: set }), ` ${label}`, about && el("span.dim", {}, ` ${about}`)));
  const taken = () => boxes.map((box) => $("input", box)).filter((box) => box.checked).map((box) => box.value);
  return el("details.several", { "data-choose": one.custom_id }, el("summary", {}, named), boxes,
    at.bare ? null : el("button.primary", { type: "button", onclick: () => send(taken()) }, "Choose"));
}

// A form (Discord's modal): resolves to what was filled in, or null.
export function form(modal, known) {
  const dialog = $("#form");
  const read = {};
  const field = (one, label, about) => {
    const id = `f-${one.custom_id}`;
    const need = one.required ?? true;
    let input;
    if (one.type === 4) {
      const given = { id, value: one.value || "", placeholder: one.placeholder || "", required: need, "data-field": one.custom_id };
      input = el(one.style === 2 ? "textarea" : "input", { ...given, rows: 5 });
      if (one.max_length) input.maxLength = one.max_length;
      if (one.min_length && (need || one.value)) input.minLength = one.min_length;
      read[one.custom_id] = () => input.value;
    } else {
      input = select({ ...one, disabled: false }, { known, bare: true, choose() {} });
      input.id = id;
      if (input.tagName === "SELECT") input.required = need;
      read[one.custom_id] = () => ({ kind: one.type, values: input.tagName === "SELECT" ? [input.value].filter(Boolean) : [...input.querySelectorAll("input:checked")].map((box) => box.value) });
    }
    return el("div.field", {}, el("label", { htmlFor: id }, label || one.label || "", need ? "" : el("span.dim", {}, " (optional)")), about && el("div.dim", {}, about), input);
  };
  const shown = (one) => {
    if (one.type === 18) return field(one.component, one.label, one.description);
    if (one.type === 1) return one.components.map((child) => field(child));
    return part(one, { known });
  };
  return new Promise((resolve) => {
    let filled = null;
    const submit = (event) => {
      event.preventDefault();
      filled = Object.fromEntries(Object.entries(read).map(([name, value]) => [name, value()]));
      dialog.close();
    };
    dialog.replaceChildren(el("form", { onsubmit: submit },
      el("h2", {}, modal.title),
      modal.components.map(shown),
      el("div.parts.end", {}, el("button.quiet", { type: "button", onclick: () => dialog.close() }, "Cancel"), el("button.primary", { type: "submit" }, "Submit"))));
    dialog.onclose = () => resolve(filled);
    dialog.showModal();
  });
}

// A question with two buttons; resolves to whether it was answered with yes.
export async function sure(question, yes) {
  const answer = await form({ title: question, components: [{ type: 10, content: yes }] }, {});
  return answer !== null;
}

// A poll, without a way to vote.
export function poll(one, known) {
  return card(null, [
    el("div.h3", {}, marks(one.question.text, known)),
    one.answers.map((answer) => el("div.text", {}, `◯ ${answer.poll_media.text}`)),
  ]);
}

export function embed(one, at) {
  const known = at.known;
  return card(one.color, [
    one.author && el("div.small", {}, one.author.name),
    one.title && el("div.h3", {}, marks(one.title, known)),
    one.description && el("div.text", {}, marks(one.description, known)),
    one.fields?.length ? el("div.fields", {}, one.fields.map((field) => el("div", { "data-inline": field.inline ? "" : null }, el("strong", {}, marks(field.name, known)), el("div", {}, marks(field.value, known))))) : null,
    one.image && at.picture(one.image.url, ""),
    one.footer && el("div.small", {}, one.footer.text),
  ]);
}
