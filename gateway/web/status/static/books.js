// What goes up to central, in numbers: whether they add up, and why what waits still waits.
import { Refused, post } from "./api.js";
import { byId, keyed, make, setClass, setText } from "./dom.js";
import { clock } from "./time.js";

const EVERY = 3000;
let waits = false;
let asking = false;
let askedAt = -EVERY;

export function setUpBooks() {
  byId("held").addEventListener("toggle", () => {
    askedAt = -EVERY;
    askWhy();
  });
}

export function showBooks({ books, user }) {
  if (books === null) return;
  const rows = [
    ["Accepted", books.accepted, books.balance ? "" : "bad"], ["Delivered", books.delivered, ""],
    ["Waiting", books.waiting, ""], ["Refused", books.parked, books.parked ? "bad" : ""],
    ["Replaced by newer", books.replaced, ""],
    ["Dropped", books.dropped, books.dropped ? "bad" : ""],
  ];
  keyed(byId("books"), rows, {
    key: ([name]) => name,
    create: ([name]) => {
      const box = make("div");
      box.append(make("dt", "", name), make("dd"));
      return box;
    },
    update: (box, [, count, kind]) => {
      setText(box.lastElementChild, String(count));
      setClass(box, kind);
    },
  });
  setText(byId("books-words"), inWords(books));
  const found = books.delivered + books.replaced + books.dropped + books.waiting + books.parked;
  const fault = `The books do not balance: ${books.accepted} were accepted for central, ${found} are accounted for.`
    + " Keep the log and the data folder, and tell the person who looks after the gateway.";
  setText(byId("books-fault"), books.balance ? "" : fault);
  waits = books.waiting > 0 && user.edit_settings;
  byId("held").hidden = !waits;
  setText(byId("held-title"), books.waiting === 1 ? "Why 1 record waits" : `Why ${books.waiting} records wait`);
  askWhy();
}

function inWords({ waiting, parked, oldest_at: oldest }) {
  const parts = [];
  const since = oldest === null ? "" : waiting === 1 ? `, since ${clock(oldest)}` : `, the oldest since ${clock(oldest)}`;
  if (waiting) parts.push((waiting === 1 ? "1 record waits for central" : `${waiting} records wait for central`) + since);
  if (parked) parts.push(parked === 1 ? "1 record was refused and waits for a person" : `${parked} records were refused and wait for a person`);
  return parts.length ? `${parts.join("; ")}.` : "Everything is with central.";
}

// All that waits is gone through for it: only while somebody looks, and not with every snapshot.
async function askWhy() {
  if (!waits || !byId("held").open || asking || performance.now() - askedAt < EVERY) return;
  asking = true;
  try {
    const { reasons } = await post("/status/outbox/books");
    keyed(byId("held-why"), reasons, {
      key: ({ kind, action, error }) => `${kind} ${action} ${error}`,
      create: () => make("li"),
      update: (line, { kind, action, error, count, since }) =>
        setText(line, `${count} × ${kind.replaceAll("_", " ")}: ${action}, since ${clock(since)}: ${error || "not tried yet"}`),
    });
  } catch (error) {
    if (!(error instanceof Refused)) throw error; // asked for again with the next snapshot
  } finally {
    asking = false;
    askedAt = performance.now();
  }
}
