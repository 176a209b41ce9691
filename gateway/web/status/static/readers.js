// Programs that pull the site's lists by cursor: how far each has come, and one that will not come again is forgotten.
import { Refused, post } from "./api.js";
import { confirmed, toast } from "./dialogs.js";
import { byId, keyed, make, setClass, setText } from "./dom.js";
import { lasting, seconds } from "./time.js";

const LISTS = { event: "events", camera_event: "camera events", entry: "parking entries" };
const MOST_COUNTED = 10000;

export function showReaders({ readers }) {
  byId("readers-section").hidden = readers.length === 0;
  const accounts = new Map();
  for (const reader of readers) accounts.set(reader.account, [...(accounts.get(reader.account) || []), reader]);
  keyed(byId("readers"), [...accounts], { key: ([account]) => account, create, update });
}

export function ageReaders() {
  for (const node of byId("readers").children) age(node);
}

function create([account]) {
  const node = make("li", "reader");
  const forget = make("button", "quiet", "Forget");
  forget.type = "button";
  forget.setAttribute("aria-label", `Forget ${account}`);
  forget.addEventListener("click", () => forgotten(account));
  const head = make("p", "row between");
  head.append(make("strong", "", account), forget);
  node.append(head, make("ul", "small"));
  return node;
}

function update(node, [, readers]) {
  node.readers = readers;
  age(node);
}

function age(node) {
  keyed(node.lastElementChild, node.readers, {
    key: ({ list, filter }) => `${list} ${filter}`,
    create: () => make("li"),
    update: (line, reader) => {
      setText(line, pulled(reader));
      setClass(line, reader.holds ? "" : "warn");
    },
  });
}

function pulled({ list, filter, unread, read_at: readAt, holds }) {
  const what = LISTS[list] + (filter ? ` (${filter})` : "");
  const left = unread >= MOST_COUNTED ? `${MOST_COUNTED} or more unread` : unread ? `${unread} unread` : "all read";
  const waited = holds ? "" : "; not waited for any more";
  return `${what}: ${left}, asked ${lasting(seconds(readAt))} ago${waited}`;
}

async function forgotten(account) {
  const sure = await confirmed(
    `Forget how far ${account} has read?`,
    "What it has not read is no longer kept for it. If it comes again, it counts as new. Recorded with your name.", "Forget",
  );
  if (!sure) return;
  try {
    await post("/status/reader/forget", { account });
    toast(`${account} is forgotten.`);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    toast(error.message, true);
  }
}
