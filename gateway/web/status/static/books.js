// What goes up to central, in numbers: whether they add up, and why what waits still waits.
import { Refused, post } from "./api.js";
import { byId, keyed, make, setClass, setText } from "./dom.js";
import { recordAction, recordKind } from "./records.js";
import { clock } from "./time.js";
import { decimal, n, recognised, t } from "./words.js";

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
    [t("Accepted"), books.accepted, books.balance ? "" : "bad"], [t("Delivered"), books.delivered, ""],
    [t("Waiting"), books.waiting, ""], [t("Refused"), books.parked, books.parked ? "bad" : ""],
    [t("Replaced by newer"), books.replaced, ""],
    [t("Dropped"), books.dropped, books.dropped ? "bad" : ""],
  ];
  keyed(byId("books"), rows, {
    key: ([name]) => name,
    create: ([name]) => {
      const box = make("div");
      box.append(make("dt", "", name), make("dd"));
      return box;
    },
    update: (box, [, count, kind]) => {
      setText(box.lastElementChild, decimal(count, 0));
      setClass(box, kind);
    },
  });
  setText(byId("books-words"), inWords(books));
  const found = books.delivered + books.replaced + books.dropped + books.waiting + books.parked;
  const fault = t(
    "The books do not balance: {accepted} were accepted for central, {found} are accounted for. Keep the log and the data folder, and tell the person who looks after the gateway.",
    { accepted: books.accepted, found },
  );
  setText(byId("books-fault"), books.balance ? "" : fault);
  waits = books.waiting > 0 && user.edit_settings;
  byId("held").hidden = !waits;
  setText(byId("held-title"), n("Why {count} record waits", "Why {count} records wait", books.waiting));
  askWhy();
}

function inWords({ waiting, parked, oldest_at: oldest }) {
  const parts = [];
  if (waiting && oldest === null) parts.push(n("{count} record waits for central.", "{count} records wait for central.", waiting));
  if (waiting && oldest !== null) {
    parts.push(n("{count} record waits for central, since {time}.", "{count} records wait for central, the oldest since {time}.", waiting, { time: clock(oldest) }));
  }
  if (parked) parts.push(n("{count} record was refused and waits for a person.", "{count} records were refused and wait for a person.", parked));
  return parts.length ? parts.join(" ") : t("Everything is with central.");
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
        setText(line, t("{count} × {record}: {action}, since {time}: {why}", {
          count, record: recordKind(kind), action: recordAction(action), time: clock(since), why: error ? recognised(error) : t("not tried yet"),
        })),
    });
  } catch (error) {
    if (!(error instanceof Refused)) throw error; // asked for again with the next snapshot
  } finally {
    asking = false;
    askedAt = performance.now();
  }
}
