// All events that the site holds: by day, lane, kind, severity and text; older ones on demand; one by its address.
import { Refused, call } from "./api.js";
import { byId, keyed, setText } from "./dom.js";
import { createEvent, updateEvent } from "./events.js";
import { clock } from "./time.js";
import { onEnter } from "./views.js";

let site = null;
let shown = [];
let next = null;
let asking = 0;

export function setUpHistory() {
  byId("history-form").addEventListener("submit", (event) => {
    event.preventDefault();
    ask();
  });
  byId("history-form").addEventListener("change", exports);
  byId("history-more").addEventListener("click", () => ask({ older: true }));
  onEnter("events", (id) => (id ? askOne(id) : ask()));
}

export function showHistory(snapshot) {
  site = snapshot;
  const select = byId("history-lane");
  const there = [...select.options].slice(1).map((option) => option.value);
  if (there.join() !== snapshot.lanes.map((lane) => lane.lane_id).join()) {
    select.replaceChildren(select.options[0], ...snapshot.lanes.map((lane) => new Option(lane.name, lane.lane_id)));
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

async function ask({ older = false } = {}) {
  exports();
  const wanted = filter();
  if (older) wanted.set("before", String(next));
  await answered(`/status/event/list?${wanted}`, (told) => {
    shown = older ? [...shown, ...told.events] : told.events;
    next = told.next;
  });
}

async function askOne(id) {
  exports();
  await answered(`/status/event/one/${encodeURIComponent(id)}`, (told) => {
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
  if (own !== asking) return;
  byId("history-more").disabled = false;
  setText(byId("history-fault"), fault);
  render();
}

function render() {
  keyed(byId("history"), site ? shown : [], {
    key: (event) => event.id,
    create: (event) => createEvent(event, { arrived: false }),
    update: (node, event) => updateEvent(node, event, site),
  });
  byId("history").hidden = shown.length === 0;
  byId("history-none").hidden = shown.length !== 0 || next !== null;
  byId("history-more").hidden = next === null;
  const oldest = shown.at(-1);
  setText(byId("history-reached"), next !== null && oldest ? `shown back to ${clock(oldest.date_at)}` : "");
}
