// All events that the site holds: by day, lane, kind, severity and text; older ones on demand; one by its address.
import { Refused, call } from "./api.js";
import { byId, keyed, makeNamed, setText } from "./dom.js";
import { createEvent, updateEvent } from "./events.js";
import { clock, dayAfter, dayOf, now } from "./time.js";
import { go, onComeBack, onEnter, permit } from "./views.js";
import { t } from "./words.js";

const PAGE = 50; // as many as the gateway answers with at once
const MOST_STRETCHES = 20;

let site = null;
let shown = [];
let next = null;
let asking = 0;
let one = ""; // the id of the one event that the address names

export function setUpHistory() {
  const form = byId("history-form");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    go(`/status/events${filter().size ? `?${filter()}` : ""}`); // so that it can be sent to somebody
  });
  form.addEventListener("change", exports);
  byId("history-more").addEventListener("click", () => ask({ older: true }));
  byId("history-days").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    form.start_date.value = form.end_date.value = dayOfButton(button.dataset);
    form.requestSubmit();
  });
  onEnter("events", (id) => {
    const asked = new URLSearchParams(location.search);
    for (const field of form.elements) {
      if (field.name) field.value = asked.get(field.name) ?? (field.name === "severity" ? "info" : "");
    }
    mark();
    one = id;
    byId("history-all").hidden = !one;
    for (const part of ["history-title", "history-days", "history-form"]) byId(part).hidden = Boolean(one);
    return again();
  });
  onComeBack("events", () => {
    if (byId("history-fault").textContent) again();
  });
}

// The day of a button: so many days from today, or from the one that is shown; "" for all.
function dayOfButton({ days, step }) {
  if (step) return dayAfter(byId("history-form").start_date.value || dayOf(now()), Number(step));
  return days === "" ? "" : dayAfter(dayOf(now()), Number(days));
}

function mark() {
  const { start_date: from, end_date: until } = byId("history-form");
  for (const button of byId("history-days").querySelectorAll("[data-days]")) {
    const pressed = from.value === until.value && from.value === dayOfButton(button.dataset);
    button.setAttribute("aria-pressed", String(pressed));
  }
}

export function showHistory(snapshot) {
  site = snapshot;
  permit("events", snapshot.user.view_events);
  const select = byId("history-lane");
  const there = [...select.options].slice(1).map((option) => option.value);
  if (there.join() !== snapshot.lanes.map((lane) => lane.lane_id).join()) {
    select.replaceChildren(select.options[0], ...snapshot.lanes.map((lane) => {
      const option = makeNamed("option", "", lane.name);
      option.value = lane.lane_id;
      return option;
    }));
  }
  if (!byId("view-events").hidden) render();
}

export function forgetHistory() {
  const select = byId("history-lane");
  select.replaceChildren(select.options[0]);
  byId("history-form").reset();
  shown = [];
  next = null;
  site = null;
  render();
}

function filter() {
  const fields = [...new FormData(byId("history-form"))].filter(([, value]) => value !== "");
  return new URLSearchParams(fields);
}

function exports() {
  for (const form of ["csv", "xlsx"]) byId(`history-${form}`).href = `/status/event/${form}?${filter()}`;
}

// One page of events; where few pass among many, the gateway answers in stretches, and the next one is asked for.
async function ask({ older = false } = {}) {
  exports();
  const wanted = filter();
  const had = older ? shown.length : 0;
  for (let stretch = 0; stretch < MOST_STRETCHES; stretch += 1) {
    const on = older || stretch > 0;
    if (on) wanted.set("before", String(next));
    const counted = await answered(`/status/event/list?${wanted}`, (told) => {
      shown = on ? [...shown, ...told.events] : told.events;
      next = told.next;
    });
    if (!counted || next === null || shown.length - had >= PAGE) return;
  }
}

const again = () => (one ? askOne() : ask());

async function askOne() {
  exports();
  await answered(`/status/event/one/${encodeURIComponent(one)}`, (told) => {
    shown = [told.event];
    next = null;
  });
}

// Only the answer to what was asked last counts.
async function answered(address, take) {
  const own = ++asking;
  byId("history-more").disabled = true;
  let fault = "";
  try {
    const told = await call("GET", address);
    if (own === asking) take(told);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    fault = error.message;
  }
  if (own !== asking) return false;
  byId("history-more").disabled = false;
  setText(byId("history-fault"), fault);
  render();
  return fault === "";
}

function render() {
  keyed(byId("history"), site ? shown : [], {
    key: (event) => event.id,
    create: (event) => createEvent(event, { arrived: false }),
    update: (node, event) => {
      updateEvent(node, event, site);
      const proof = node.querySelector(".proof");
      proof.hidden = !one || !site.user.view_footage;
      proof.href = `/status/proof/${event.id}`;
    },
  });
  byId("history").hidden = shown.length === 0;
  byId("history-none").hidden = shown.length !== 0 || next !== null || byId("history-fault").textContent !== "";
  byId("history-more").hidden = next === null;
  const oldest = shown.at(-1);
  setText(byId("history-reached"), next !== null && oldest ? t("shown back to {time}", { time: clock(oldest.date_at) }) : "");
}
