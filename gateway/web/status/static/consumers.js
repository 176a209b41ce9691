// Programs that pull the site's lists by cursor: how far each has come, and one that will not come again is forgotten.
import { Refused, post } from "./api.js";
import { confirmed, toast } from "./dialogs.js";
import { byId, keyed, make, makeNamed, setClass, setText } from "./dom.js";
import { lasting, seconds } from "./time.js";

const LISTS = { event: "events", camera_event: "camera events", entry: "parking entries" };
const MOST_COUNTED = 10000;

export function showConsumers({ consumers }) {
  byId("consumers-section").hidden = consumers.length === 0;
  const accounts = new Map();
  for (const consumer of consumers) accounts.set(consumer.account, [...(accounts.get(consumer.account) || []), consumer]);
  keyed(byId("consumers"), [...accounts], { key: ([account]) => account, create, update });
}

export function ageConsumers() {
  for (const node of byId("consumers").children) age(node);
}

function create([account]) {
  const node = make("li", "consumer");
  const forget = make("button", "quiet", "Forget");
  forget.type = "button";
  forget.setAttribute("aria-label", `Forget ${account}`);
  forget.addEventListener("click", () => forgotten(account));
  const head = make("p", "row between");
  head.append(makeNamed("strong", "", account), forget);
  node.append(head, make("ul", "small"));
  return node;
}

function update(node, [, consumers]) {
  node.consumers = consumers;
  age(node);
}

function age(node) {
  keyed(node.lastElementChild, node.consumers, {
    key: ({ list, filter }) => `${list} ${filter}`,
    create: () => make("li"),
    update: (line, consumer) => {
      setText(line, pulled(consumer));
      setClass(line, consumer.holds ? "" : "warn");
    },
  });
}

function pulled({ list, filter, unread, read_at: readAt, holds }) {
  const what = LISTS[list] + (filter ? ` (${filter})` : "");
  const left = unread >= MOST_COUNTED ? `${MOST_COUNTED} or more unread` : unread ? `${unread} unread` : "all read";
  const waited = holds ? "" : "; the gateway no longer waits for it";
  return `${what}: ${left}, last read ${lasting(seconds(readAt))} ago${waited}`;
}

async function forgotten(account) {
  const sure = await confirmed(
    `Forget how far ${account} has read?`,
    "The gateway no longer keeps records for it. If it reads again, it starts as a new program. This is recorded with your name.", "Forget",
  );
  if (!sure) return;
  try {
    await post("/status/consumer/forget", { account });
    toast(`${account} is forgotten.`);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    toast(error.message, true);
  }
}
