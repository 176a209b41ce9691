// Beside the list of cards: what was read last, unknown reads of the last day, and what central does not have yet.
import { Refused, call } from "./api.js";
import { byId, keyed, make, setText } from "./dom.js";
import { clock } from "./time.js";
import { because, n, recognised, t } from "./words.js";

const MOST_READS = 6;
const ACTIONS = { create: t("new"), update: t("changed"), delete: t("deleted"), lifecycle: t("state changed") };
let lanes = [];

// The cards that were read last, the newest first, each a way to its record: `find` gets the reading.
export function showReads(snapshot, find) {
  lanes = snapshot.lanes;
  const reads = new Map();
  for (const event of snapshot.events) {
    if (event.read?.credential && !reads.has(event.read.credential)) reads.set(event.read.credential, event);
  }
  const shown = [...reads.values()].slice(0, MOST_READS);
  byId("card-reads").hidden = shown.length === 0;
  keyed(byId("card-reads-list"), shown, {
    key: (event) => event.read.credential,
    create: (event) => {
      const button = make("button", "quiet");
      button.type = "button";
      button.append(event.read.credential, make("span", "small dim"));
      button.addEventListener("click", () => find(button.read));
      return button;
    },
    update: (button, event) => {
      button.read = event.read;
      setText(button.lastChild, ` ${clock(event.date_at)} ${laneName(event.lane_id)}`);
    },
  });
}

export async function askDesk(user) {
  await Promise.all([user.view_events ? part(askUnknown(user)) : null, part(askSync())]);
}

async function part(asking) {
  try {
    await asking;
  } catch (error) {
    if (!(error instanceof Refused)) throw error; // what is shown stays; the view's own fault says what is wrong
  }
}

async function askUnknown(user) {
  const { reads } = await call("GET", "/status/card/unknown");
  byId("unknown-section").hidden = false;
  byId("no-unknown").hidden = reads.length > 0;
  byId("unknown-reads").hidden = reads.length === 0;
  keyed(byId("unknown-reads"), reads, {
    key: (read) => read.credential,
    create: () => {
      const row = make("li", "row between");
      const text = make("p");
      text.append(make("strong"), " ", make("a", "small"));
      row.append(text, make("a", "button"));
      return row;
    },
    update: (row, read) => {
      const [name, event] = row.firstChild.children;
      const fields = new URLSearchParams(read.enrol);
      setText(name, read.credential);
      const where = `${clock(read.date_at)} ${laneName(read.lane_id)}`;
      setText(event, read.times > 1 ? n("{where}, {count} time", "{where}, {count} times", read.times, { where }) : where);
      event.href = `/status/events/${read.event_id}`;
      row.lastChild.hidden = !user.add_cards || fields.size === 0;
      row.lastChild.href = `/status/cards?${fields}`;
      setText(row.lastChild, t("Enrol"));
      row.lastChild.setAttribute("aria-label", t("Enrol {card}", { card: read.credential }));
    },
  });
}

async function askSync() {
  const { sync } = await call("GET", "/status/card/sync");
  byId("card-waiting-section").hidden = sync.waiting.length === 0;
  keyed(byId("card-waiting"), sync.waiting, {
    key: (row) => row.id,
    create: () => make("li"),
    update: (item, row) => {
      const { number, plate, holder_name: holder } = row.fields;
      const what = [holder, number, plate].filter(Boolean).join(", ") || t("card {card}", { card: String(row.record_id) });
      const places = { what, action: ACTIONS[row.action] ?? row.action, time: clock(row.since) };
      const state = row.refused ? t("{what}: {action} since {time}, refused by central", places) : t("{what}: {action} since {time}, waits", places);
      setText(item, row.error ? because(state, recognised(row.error)) : state);
    },
  });
  byId("card-conflicts-section").hidden = sync.conflicts.length === 0;
  keyed(byId("card-conflicts"), sync.conflicts, {
    key: (conflict) => conflict.event_id,
    create: () => {
      const item = make("li");
      item.append(make("a", "small"), " ", make("span"));
      return item;
    },
    update: (item, conflict) => {
      const [address, text] = item.children;
      setText(address, clock(conflict.date_at));
      address.href = `/status/events/${conflict.event_id}`;
      setText(text, recognised(conflict.text));
    },
  });
}

const laneName = (id) => lanes.find((lane) => lane.lane_id === id)?.name ?? "";
