// Webhooks: which programs take the site's events, whether they do, and what a person may do about it.
import { Refused, post } from "./api.js";
import { toast } from "./dialogs.js";
import { byId, keyed, make, makeNamed, setClass, setText } from "./dom.js";
import { onEnter } from "./views.js";
import { n, recognised, t } from "./words.js";

const LOOK = 5000;
let may = false;
let entered = false;
let timer = 0;

export function setUpReceivers() {
  onEnter("health", () => {
    entered = true;
    look();
  }, () => { entered = false; });
}

export function showReceivers({ user }) {
  const first = !may && user.edit_settings;
  may = user.edit_settings;
  if (first && entered) look();
}

async function look() {
  clearTimeout(timer);
  if (!entered || !may) return;
  timer = setTimeout(look, LOOK);
  if (document.visibilityState !== "visible") return;
  try {
    const { webhooks } = await post("/status/webhook/list");
    byId("receivers-section").hidden = webhooks.length === 0;
    keyed(byId("receivers"), webhooks, { key: ({ id }) => id, create, update });
  } catch (error) {
    if (!(error instanceof Refused)) throw error; // asked again soon
  }
}

function create({ id, url }) {
  const node = make("li", "receiver");
  const head = make("p", "row between wrap");
  const name = makeNamed("strong", "", new URL(url).host); // the rest of its address may be a secret
  head.append(name, make("span", "pill"));
  const acts = make("p", "row wrap");
  acts.append(
    button(t("Enable again"), () => act("/status/webhook/enable", { id }, () => t("It is sent to again."))),
    button(t("Send a test"), () => act("/status/webhook/test", { id }, tested)),
    button(t("Send again what was given up"), () => act("/status/webhook/replay", { id }, ({ count }) => n("{count} message is sent again.", "{count} messages are sent again.", count))),
  );
  node.append(head, make("p", "small"), acts);
  return node;
}

const tested = ({ taken, fault }) => (taken ? t("The receiver took the test.") : t("The receiver did not take the test: {why}", { why: recognised(fault) }));

function update(node, { status, reason, last_error: error, waiting, delivered, failed, dropped }) {
  const [name, pill] = node.firstElementChild.children;
  const works = status === "enabled";
  const [word, kind] = works ? (error ? [t("Failing"), "warn"] : [t("Good"), "good"]) : [t("Disabled"), "bad"];
  setText(pill, word);
  setClass(pill, `pill ${kind}`);
  const parts = [
    works ? (error ? t("last: {why}", { why: recognised(error) }) : "") : t("nothing is sent: {why}", { why: recognised(reason) }),
    waiting ? n("{count} waits", "{count} wait", waiting) : t("nothing waits"), n("{count} delivered", "{count} delivered", delivered),
    failed ? n("{count} given up", "{count} given up", failed) : "", dropped ? n("{count} dropped", "{count} dropped", dropped) : "",
  ];
  setText(node.children[1], parts.filter(Boolean).join(" · "));
  const [enable, test, replay] = node.lastElementChild.children;
  enable.hidden = works;
  replay.hidden = !failed;
  test.setAttribute("aria-label", t("Send a test to {receiver}", { receiver: name.textContent }));
}

function button(text, pressed) {
  const node = make("button", "quiet", text);
  node.type = "button";
  node.addEventListener("click", pressed);
  return node;
}

async function act(path, body, told) {
  try {
    toast(told(await post(path, body)));
    look();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    toast(error.message, true);
  }
}
