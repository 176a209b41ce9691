// What central refused: a person sends it again, changes a field of it, or drops it.
import { Refused, post } from "./api.js";
import { asked, confirmed, toast } from "./dialogs.js";
import { byId, keyed, make, setText } from "./dom.js";
import { clock } from "./time.js";

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
  setText(byId("refused-count"), `The oldest ${shown} of ${total} that central refused.`);
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
    ["Send again", sendAgain], ["Change", change], ["Central has it", isThere], ["Central lacks it", isNotThere], ["Drop", drop],
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
  const name = `${row.kind.replaceAll("_", " ")} ${row.record_id}: ${row.action}`;
  setText(title, name);
  setText(fault, row.error);
  const fields = Object.entries(row.fields).map(([field, value]) => `${field}: ${JSON.stringify(value)}`);
  setText(detail, [`since ${clock(row.since)}`, ...fields].join(" · "));
  const [first] = buttons.children;
  first.word = row.unknown ? "Look again" : "Send again";
  setText(first, first.word);
  buttons.children[1].hidden = row.unknown || fields.length === 0;
  buttons.children[2].hidden = buttons.children[3].hidden = !row.unknown;
  for (const button of buttons.children) button.setAttribute("aria-label", `${button.word}: ${name}`);
}

function sendAgain(row) {
  return done("/status/outbox/retry", { id: row.id }, row.unknown ? "The gateway looks for it again." : "Sent again.");
}

function isThere(row) {
  return asked({
    title: "Under which id does central have it?",
    text: "Look for it at central first. It then counts as delivered and is not sent again.",
    label: "Central's id",
    yes: "It has this id",
    act: async (said) => {
      const found = Number(said.trim());
      if (!(Number.isSafeInteger(found) && found > 0)) throw new Refused("Central's id is a whole number, for example 5012.");
      await post("/status/outbox/settle", { id: row.id, central_id: found });
      toast("It counts as delivered.");
    },
  });
}

async function isNotThere(row) {
  const sure = await confirmed("Send it again?", "If central has it after all, it will be there twice.", "Send again");
  if (sure) await done("/status/outbox/settle", { id: row.id, not_there: true }, "Sent again.");
}

function change(row) {
  return asked({
    title: "What should be sent instead?",
    text: "Write one field as name=value. The site uses the new value too.",
    label: "Field",
    yes: "Change and send",
    value: `${Object.keys(row.fields)[0]}=`,
    act: async (said) => {
      const place = said.indexOf("=");
      const name = said.slice(0, Math.max(place, 0)).trim();
      if (name === "") throw new Refused("Write the field's name, an equals sign and the value: name=value.");
      await post("/status/outbox/edit", { id: row.id, fields: { [name]: meant(said.slice(place + 1), row.fields[name]) } });
      toast("Changed and sent again.");
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
    throw new Refused(`${text.trim()} is too large for this page: use edge-gateway outbox edit.`);
  }
  return value;
}

async function drop(row) {
  const sure = await confirmed("Drop it?", "Central will never get it. After the next fetch, the site uses central's own record again.", "Drop");
  if (sure) await done("/status/outbox/drop", { id: row.id }, "Dropped.");
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
