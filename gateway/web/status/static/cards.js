// Access cards: look one up, see its state and why it opens no gate, enrol, edit, suspend and delete it.
import { Refused, call, post } from "./api.js";
import { askDesk, showReads } from "./card_desk.js";
import { confirmed, toast } from "./dialogs.js";
import { byId, fromTemplate, keyed, make, setClass, setText } from "./dom.js";
import { enrolLink } from "./lanes.js";
import { clock, dayOf, now } from "./time.js";
import { onComeBack, onEnter, permit } from "./views.js";
import { because, keepNames, recognised, t } from "./words.js";

const PAGE = 25;
const COLOURS = { active: "good", early: "warn", suspended: "warn", expired: "warn", lost: "bad", blocked: "bad" };
const STATES = {
  active: t("active"), early: t("not valid yet"), suspended: t("suspended"), expired: t("expired"), lost: t("lost"), blocked: t("blocked"),
  unusable: t("not usable"),
};
const SYNC = { waiting: t("waits for central"), refused: t("refused by central") };
const FIELDS = ["number", "plate", "holder_name", "valid_until"];
const READ_FIELDS = ["uid", "facility_code", "card_number", "card_format"]; // what a reading says and nobody types
const READ_AS = {
  uid: (value) => t("uid {value}", { value }), facility_code: (value) => t("facility code {value}", { value }),
  card_number: (value) => t("card number {value}", { value }), card_format: (value) => t("card format {value}", { value }),
};
let user = null;
let found = [];
let count = 0;
let asking = 0;
let sought = null; // the reading that was asked for

export function setUpCards() {
  byId("card-form").addEventListener("submit", (event) => {
    event.preventDefault();
    sought = null;
    find();
  });
  byId("card-more").addEventListener("click", () => find({ more: true }));
  byId("card-new").addEventListener("click", () => edit(null));
  byId("card-cancel").addEventListener("click", () => byId("card-dialog").close());
  onEnter("cards", () => {
    byId("card-search").focus();
    if (!user?.view_cards) return;
    find();
    askDesk(user);
    enrolAsked();
  });
  onComeBack("cards", () => {
    if (!user?.view_cards || !byId("card-fault").textContent) return;
    if (sought) findRead(sought);
    else find();
    askDesk(user);
  });
}

export function showCards(snapshot) {
  user = snapshot.user;
  permit("cards", user.view_cards);
  byId("card-new").hidden = !user.add_cards;
  if (user.view_cards) showReads(snapshot, findRead);
}

// The fields of a new card may stand in the address: a link to enrol what was read.
function enrolAsked() {
  const asked = new URLSearchParams(location.search);
  const fields = [...FIELDS, ...READ_FIELDS].filter((name) => asked.has(name)).map((name) => [name, asked.get(name)]);
  if (fields.length === 0 || !user.add_cards) return;
  history.replaceState(null, "", location.pathname); // not once more when the page is loaded again
  edit(null, Object.fromEntries(fields));
}

// A reading's card by its id: what readers tell is not always what is printed.
async function findRead(read) {
  sought = read;
  byId("card-search").value = read.card_id === null ? read.credential : "";
  if (read.card_id === null) return find();
  const own = ++asking;
  try {
    const { access_card: card } = await post("/v1/access", { id: read.card_id });
    if (own !== asking) return;
    found = [card];
    count = 1;
    setText(byId("card-fault"), "");
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (own !== asking) return;
    setText(byId("card-fault"), error.message);
  }
  render();
}

export function forgetCards() {
  user = null;
  sought = null;
  asking += 1; // what is still on its way is nobody's
  found = [];
  count = 0;
  byId("card-form").reset();
  for (const id of ["card-reads-list", "unknown-reads", "card-waiting", "card-conflicts"]) byId(id).replaceChildren();
  byId("cards").replaceChildren();
}

async function find({ more = false } = {}) {
  const own = ++asking;
  const page = more ? found.length / PAGE + 1 : 1;
  try {
    const told = await post("/v1/access/list", { search: byId("card-search").value.trim(), page, page_limit: PAGE });
    if (own !== asking) return;
    found = more ? [...found, ...told.access_cards] : told.access_cards;
    count = told.count;
    setText(byId("card-fault"), "");
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (own !== asking) return;
    setText(byId("card-fault"), error.message);
  }
  render();
}

function render() {
  keepNames("cards", found.map((card) => card.holder_name || card.username).filter(Boolean));
  keyed(byId("cards"), found, { key: (card) => card.id, create: create, update: update });
  byId("cards").hidden = found.length === 0;
  byId("no-cards").hidden = found.length !== 0;
  const isAsked = sought || byId("card-search").value.trim();
  setText(byId("no-cards"), isAsked ? t("No card has this in its number, plate or name.") : t("This site has no card yet."));
  enrolLink(byId("cards-enrol"), found.length ? null : sought, user);
  place();
  setText(byId("card-count"), found.length ? t("{count} of {all}", { count: found.length, all: count }) : "");
  byId("card-more").hidden = found.length >= count || found.length % PAGE !== 0;
}

// What somebody has asked for stands right below the form, where a phone shows it.
function place() {
  const both = [byId("card-desk"), byId("cards-found")];
  const [upper, lower] = sought || byId("card-search").value.trim() ? both.reverse() : both;
  if (upper.nextElementSibling !== lower) upper.after(lower);
}

function create() {
  const node = fromTemplate("card-row");
  node.querySelector(".edit").addEventListener("click", () => edit(node.card));
  node.querySelector(".suspend").addEventListener("click", () => suspend(node.card));
  node.querySelector(".delete").addEventListener("click", () => remove(node.card));
  node.querySelector(".about").addEventListener("toggle", () => about(node));
  return node;
}

const asSeen = (card) => ({ "If-Match": `"${card.etag}"` }); // nobody overwrites what another has changed meanwhile
const nameOf = (card) => card.holder_name || card.username || t("No holder");

// A day ends at its end; a moment is a moment.
const isPast = (bound) => (bound.length === 10 ? bound < dayOf(now()) : Date.parse(bound) <= now());
const isToCome = (bound) => (bound.length === 10 ? bound > dayOf(now()) : Date.parse(bound) > now());

// A card's state now: its own word, and for an active one what the time makes of it.
function stateOf({ decided_as: state, valid_from: from, valid_until: until }) {
  if (state !== "active") return state ?? "unusable";
  if (until && isPast(String(until))) return "expired";
  return from && isToCome(String(from)) ? "early" : state;
}

function update(node, card) {
  node.card = card;
  setText(node.querySelector("strong"), nameOf(card));
  const state = stateOf(card);
  setText(node.querySelector(".status"), STATES[state] ?? state);
  setClass(node.querySelector(".status"), `pill status ${COLOURS[state] ?? ""}`);
  const sync = SYNC[card.sync] ?? "";
  setText(node.querySelector(".sync"), sync && card.sync_error ? because(sync, recognised(card.sync_error)) : sync);
  const numbers = [
    card.number ? t("number {number}", { number: card.number }) : "", card.plate ? t("plate {plate}", { plate: card.plate }) : "", card.has_pin ? t("PIN") : "",
  ];
  setText(node.querySelector(".numbers"), numbers.filter(Boolean).join(" · ") || t("no number"));
  const { valid_from: from, valid_until: until } = card;
  setText(node.querySelector(".validity"), validity(from, until));
  const suspended = card.decided_as === "suspended";
  const suspend = suspended ? t("Let it count again") : t("Suspend");
  setText(node.querySelector(".suspend"), suspend);
  for (const [name, word, allowed] of [["edit", t("Edit"), user.edit_cards], ["suspend", suspend, user.edit_cards], ["delete", t("Delete"), user.delete_cards]]) {
    const button = node.querySelector(`.${name}`);
    button.hidden = !allowed;
    button.setAttribute("aria-label", because(word, `${nameOf(card)}, ${card.number ?? card.plate ?? card.id}`));
  }
}

function validity(from, until) {
  if (from && until) return t("from {begin} until {end}", { begin: clock(from), end: clock(until) });
  if (from) return t("from {time}", { time: clock(from) });
  return until ? t("until {time}", { time: clock(until) }) : "";
}

const listed = (names) => names.map((name) => name?.name ?? name?.id ?? name).join(", ");

// Why it opens a gate or does not, as far as the card itself says; its events say the rest.
async function about(node) {
  const { card } = node;
  if (!node.querySelector(".about").open) return;
  const list = node.querySelector(".about ul");
  const events = make("a", "", t("What happened with it"));
  events.href = `/status/events?${new URLSearchParams({ search: card.number || card.plate || card.holder_name || String(card.id) })}`;
  try {
    const { warnings } = await post("/v1/access", { id: card.id });
    const said = warnings.map(recognised);
    const state = stateOf(card);
    if (state === "expired" && card.valid_until) said.push(t("It has expired: it was valid until {time}.", { time: clock(card.valid_until) }));
    if (state === "early") said.push(t("It is not valid before {time}.", { time: clock(card.valid_from) }));
    if (card.zones?.length) said.push(t("It is for these zones or lanes alone: {names}.", { names: listed(card.zones) }));
    if (card.schedules?.length) said.push(t("It is valid at these times alone: {names}.", { names: listed(card.schedules) }));
    if (said.length === 0) said.push(t("Nothing about the card itself keeps it from opening a gate."));
    list.replaceChildren(...said.map((text) => make("li", "", text)), make("li"));
    list.lastChild.append(events);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    list.replaceChildren(make("li", "fault", error.message));
  }
}

async function suspend(card) {
  const status = card.decided_as === "suspended" ? "active" : "suspended";
  await done(() => call("PATCH", "/v1/access/lifecycle", { id: card.id, status }, asSeen(card)), t("{name}: {state}.", { name: nameOf(card), state: STATES[status] }));
}

async function remove(card) {
  const sure = await confirmed(t("Delete the card of {who}?", { who: nameOf(card) }), t("It opens no gate any more, and central deletes it too."), t("Delete the card"));
  if (sure) await done(() => call("DELETE", "/v1/access", { id: card.id }, asSeen(card)), t("The card of {who} is deleted.", { who: nameOf(card) }));
}

async function done(act, text) {
  try {
    await act();
    toast(text);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    toast(error.message, true);
  }
  await find();
  askDesk(user);
}

// A new card, or another one's fields. What is refused is said in the dialog, which stays open.
function edit(card, read = {}) {
  const form = byId("card-fields");
  setText(byId("card-dialog-title"), card ? t("Card of {who}", { who: nameOf(card) }) : t("New card"));
  setText(byId("card-save"), card ? t("Save") : t("Add the card"));
  setText(byId("card-dialog-fault"), "");
  const fromReader = READ_FIELDS.filter((name) => read[name]);
  setText(byId("card-read-as"), fromReader.map((name) => READ_AS[name](String(read[name]))).join(", "));
  for (const name of FIELDS) form.elements[name].value = String(card?.[name] ?? read[name] ?? "").slice(0, name === "valid_until" ? 10 : undefined);
  form.onsubmit = async (event) => {
    event.preventDefault();
    const typed = Object.fromEntries(FIELDS.map((name) => [name, form.elements[name].value.trim()]));
    const before = Object.fromEntries(FIELDS.map((name) => [name, card?.[name] ? String(card[name]) : ""]));
    const changed = FIELDS.filter((name) => typed[name] !== (name === "valid_until" ? before[name].slice(0, 10) : before[name]));
    const body = Object.fromEntries(changed.map((name) => [name, typed[name] || null]));
    for (const name of fromReader) body[name] = read[name];
    try {
      const told = Object.keys(body).length ? await (card ? call("PATCH", "/v1/access", { id: card.id, ...body }, asSeen(card)) : call("PUT", "/v1/access", body)) : {};
      byId("card-dialog").close();
      if (told?.warnings?.length) toast(told.warnings.map(recognised).join(" "), true);
      else toast(card ? t("Saved.") : t("Added: it counts at once."));
      await find();
      askDesk(user);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      setText(byId("card-dialog-fault"), error.message);
      find(); // behind the dialog the card as it is
    }
  };
  byId("card-dialog").showModal();
}
