// What central refused: a person sends it again, changes a field of it, or drops it.
import { Refused, post } from "./api.js";
import { asked, confirmed, toast } from "./dialogs.js";
import { byId, keyed, make, setText } from "./dom.js";
import { recordAction, recordKind } from "./records.js";
import { clock } from "./time.js";
import { because, recognised, t } from "./words.js";

const AT_A_TIME = 100;
let seen = "";
let wanted = AT_A_TIME;
let total = 0;
let turn = 0;

export function setUpRefused() {
  byId("refused-more").addEventListener("click", () => {
    wanted += AT_A_TIME;
    seen = "";
    load();
  });
}

export function showRefused({ books, user }) {
  const some = books !== null && books.parked > 0 && user.edit_settings;
  byId("refused").hidden = !some;
  total = some ? books.parked : 0;
  const now = some ? JSON.stringify(books) : "";
  if (now === seen) return;
  seen = now;
  if (some) load();
  else {
    turn += 1;
    wanted = AT_A_TIME;
    byId("refused").replaceChildren();
    showRest();
  }
}

// How many there are beyond those that are shown.
function showRest() {
  const shown = byId("refused").children.length;
  byId("refused-rest").hidden = shown === 0 || shown >= total;
  setText(byId("refused-count"), t("The oldest {shown} of {all} that central refused.", { shown, all: total }));
}

async function load() {
  turn += 1;
  const mine = turn;
  try {
    const rows = [];
    for (let after = 0; after !== null && rows.length < wanted;) {
      const { waiting, next } = await post("/status/outbox/list", { after, limit: AT_A_TIME });
      rows.push(...waiting);
      after = next;
    }
    if (mine !== turn) return; // asked for anew meanwhile
    keyed(byId("refused"), rows, { key: (row) => row.id, create, update });
    showRest();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    seen = ""; // asked for again with the next snapshot
  }
}

function create() {
  const node = make("li");
  const buttons = make("p", "actions");
  const all = [
    [t("Send again"), sendAgain], [t("Change"), change], [t("Central has it"), isThere], [t("Central lacks it"), isNotThere], [t("Drop"), drop],
  ];
  for (const [name, act] of all) {
    const button = make("button", "quiet", name);
    button.type = "button";
    button.word = name;
    button.addEventListener("click", () => act(node.row));
    buttons.append(button);
  }
  node.append(make("strong"), make("p", "fault small"), make("p", "dim small"), buttons);
  return node;
}

function update(node, row) {
  node.row = row;
  const [title, fault, detail, buttons] = node.children;
  const name = t("{record} {id}: {action}", { record: recordKind(row.kind), id: String(row.record_id), action: recordAction(row.action) });
  setText(title, name);
  setText(fault, recognised(row.error));
  const fields = Object.entries(row.fields).map(([field, value]) => `${field}=${JSON.stringify(value)}`);
  setText(detail, [t("since {time}", { time: clock(row.since) }), ...fields].join(" · "));
  const [first] = buttons.children;
  first.word = row.unknown ? t("Look again") : t("Send again");
  setText(first, first.word);
  buttons.children[1].hidden = row.unknown || fields.length === 0;
  buttons.children[2].hidden = buttons.children[3].hidden = !row.unknown;
  for (const button of buttons.children) button.setAttribute("aria-label", because(button.word, name));
}

function sendAgain(row) {
  return done("/status/outbox/retry", { id: row.id }, row.unknown ? t("The gateway looks for it again.") : t("Sent again."));
}

function isThere(row) {
  return asked({
    title: t("Under which id does central have it?"),
    text: t("Look for it at central first. It then counts as delivered and is not sent again."),
    label: t("Central's id"),
    yes: t("It has this id"),
    act: async (said) => {
      const found = Number(said.trim());
      if (!(Number.isSafeInteger(found) && found > 0)) throw new Refused(t("Central's id is a whole number, for example 5012."));
      await post("/status/outbox/settle", { id: row.id, central_id: found });
      toast(t("It counts as delivered."));
    },
  });
}

async function isNotThere(row) {
  const sure = await confirmed(t("Send it again?"), t("If central has it after all, it will be there twice."), t("Send again"));
  if (sure) await done("/status/outbox/settle", { id: row.id, not_there: true }, t("Sent again."));
}

function change(row) {
  return asked({
    title: t("What should be sent instead?"),
    text: t("Write one field as name=value. The site uses the new value too."),
    label: t("Field"),
    yes: t("Change and send"),
    value: `${Object.keys(row.fields)[0]}=`,
    act: async (said) => {
      const place = said.indexOf("=");
      const name = said.slice(0, Math.max(place, 0)).trim();
      if (name === "") throw new Refused(t("Write the field's name, an equals sign and the value: name=value."));
      await post("/status/outbox/edit", { id: row.id, fields: { [name]: meant(said.slice(place + 1), row.fields[name]) } });
      toast(t("Changed and sent again."));
    },
  });
}

// As text where the field is one now; else as JSON, where it is that. null takes a field out.
function meant(text, before) {
  if (typeof before === "string" && text.trim() !== "null") return text.trim();
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    return text.trim();
  }
  // A browser rounds such a number, or takes it for none; another number would be another card.
  if (typeof value === "number" && (Number.isInteger(value) ? !Number.isSafeInteger(value) : !Number.isFinite(value))) {
    throw new Refused(t("{value} is too large for this page: use edge-gateway outbox edit.", { value: text.trim() }));
  }
  return value;
}

async function drop(row) {
  const sure = await confirmed(t("Drop it?"), t("Central will never get it. After the next fetch, the site uses central's own record again."), t("Drop"));
  if (sure) await done("/status/outbox/drop", { id: row.id }, t("Dropped."));
}

async function done(path, body, said) {
  try {
    await post(path, body);
    toast(said);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    toast(error.message, true);
  }
}
