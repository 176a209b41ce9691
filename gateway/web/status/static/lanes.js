// Lanes as cards: the barrier, its loops, what goes on, and what one may do.
import { Refused, post, postAtOnce } from "./api.js";
import { asked, confirmed, toast } from "./dialogs.js";
import { byId, fromTemplate, keyed, make, setClass, setText } from "./dom.js";
import { showFollowed } from "./followed.js";
import { clock, lasting, seconds } from "./time.js";
import { because, recognised, say, spoken, t } from "./words.js";

const PHASES = {
  idle: [t("Idle"), ""], armed: [t("Vehicle waiting"), "busy"], deciding: [t("Deciding"), "busy"], opening: [t("Opening"), "busy"],
  open: [t("Gate open"), "good"], passing: [t("Passing"), "busy"], cleared: [t("Cleared"), "good"], closing: [t("Closing"), "busy"],
};
let orderNumber = 0;
export const addressOf = (lane) => `/status/lanes/${encodeURIComponent(lane.lane_id)}`;
// What is said of a lane at rest in place of "Idle".
const AT_REST = new Map([
  ["gate_does_not_move", t("Gate does not move")], ["gate_too_slow", t("Gate moves too slowly")], ["input_stuck", t("Input stuck")],
  ["input_chatters", t("Input chatters")], ["gate_forced_open", t("Gate opened without a command")], ["gate_held_open", t("Gate open too long")],
  ["gate_stopped", t("Gate stopped by a person")], ["inputs_all_on", t("All inputs on")], ["readers_swapped", t("Readers swapped")],
  ["cards_without_vehicle", t("Cards, but no vehicle")], ["vehicles_without_card", t("Vehicles, but no card")],
]);
const NO_WORK = new Set(["idle", "armed", "fault"]);
const ARMING = { on: t("Arming loop occupied"), off: t("Arming loop free"), unknown: t("Arming loop unknown") };
const CLOSING = { on: t("Closing loop occupied"), off: t("Closing loop free"), unknown: t("Closing loop unknown") };
const DIRECTIONS = { entry: t("entry"), exit: t("exit"), "two-way": t("two-way") };
const GATES = {
  closed: t("Gate closed"), opening: t("Gate opening"), open: t("Gate open"), closing: t("Gate closing"), stopped: t("Gate stopped"),
  unknown: t("Gate position unknown"),
};

const decisions = new Map(); // the last reading that was decided on, by lane: it outlives the list of events

export function showLanes(snapshot) {
  for (const event of snapshot.events.toReversed()) if (event.read) decisions.set(event.lane_id, event);
  byId("lanes-section").hidden = !snapshot.user.view_devices;
  byId("no-lanes").hidden = snapshot.lanes.length > 0;
  keyed(byId("lanes"), snapshot.lanes, {
    key: (lane) => lane.lane_id,
    create: createLane,
    update: (node, lane) => updateLane(node, lane, snapshot),
  });
}

export function ageLanes() {
  for (const node of byId("lanes").children) ageOf(node);
}

export function forgetLanes() {
  decisions.clear();
}

export function createLane(lane) {
  const node = fromTemplate("lane-card");
  node.querySelector(".open").addEventListener("click", () => command(node, "open"));
  node.querySelector(".close").addEventListener("click", async () => {
    const sure = await confirmed(
      t("Close {lane}?", { lane: node.lane.name }), t("Look first: nobody and nothing may be under the gate."), t("Close the gate"),
    );
    if (sure) command(node, "close");
  });
  node.querySelector(".stop").addEventListener("click", () => command(node, "stop"));
  node.querySelector(".hold").addEventListener("click", () => order(node, node.lane.order === "hold_open" ? "" : "hold_open"));
  const orders = node.querySelector(".orders");
  orders.id = `order-${++orderNumber}`;
  node.querySelector(".controls label").htmlFor = orders.id;
  orders.addEventListener("change", () => order(node, orders.value));
  node.lane = lane;
  return node;
}

// What is wrong with a lane, a sentence each; what it says twice, once.
export function wrongWith(lane) {
  const words = ["unable", "troubles"].flatMap((list) => lane[list].map(({ text }, place) => say(lane.said?.[list]?.[place]?.text ?? text)));
  return [...new Set(words)];
}

export function updateLane(node, lane, { user, demo }) {
  node.lane = lane;
  setText(node.querySelector(".lane-name"), lane.name);
  node.querySelector(".lane-name").setAttribute("href", addressOf(lane));
  const way = DIRECTIONS[lane.direction];
  const named = [lane.direction, way].some((word) => lane.name.toLowerCase().includes(word));
  setText(node.querySelector(".lane-way"), named ? "" : way);
  const unable = isUnable(lane);
  const [word, kind, isPhase] = stateOf(lane);
  setClass(node.querySelector(".phase"), `pill phase ${kind}`);
  Object.assign(node.querySelector(".phase").dataset, { word, since: isPhase ? lane.since : "" });
  setClass(node, `card lane ${unable ? "fault-now" : ""}`);
  showScene(node.querySelector(".scene"), lane);
  for (const [name, state, words] of [["arming", lane.vehicle, ARMING], ["closing", lane.under, CLOSING]]) {
    setClass(node.querySelector(`.${name}-lamp`), `lamp ${name}-lamp ${state}`);
    setText(node.querySelector(`.${name}-text`), words[state]);
  }
  setText(node.querySelector(".gate-text"), GATES[lane.position]);
  const note = node.querySelector(".note");
  note.hidden = !lane.note;
  setText(note, spoken(lane, "note"));
  const standing = node.querySelector(".order");
  standing.hidden = !lane.order_text;
  setText(standing, spoken(lane, "order_text"));
  setClass(standing, `order ${lane.order}`);
  const wrong = wrongWith(lane);
  node.querySelector(".troubles").hidden = wrong.length === 0;
  keyed(node.querySelector(".troubles"), wrong, {
    key: (text) => text,
    create: (text) => make("li", "", text),
    update: () => {},
  });
  const orders = node.querySelector(".orders");
  if (document.activeElement !== orders) orders.value = lane.order;
  orders.setAttribute("aria-label", t("Standing order of {lane}", { lane: lane.name }));
  node.querySelector(".controls").hidden = !user.control_devices;
  node.querySelector(".open").setAttribute("aria-label", t("Open {lane}", { lane: lane.name }));
  node.querySelector(".close").setAttribute("aria-label", t("Close {lane}", { lane: lane.name }));
  node.querySelector(".close").hidden = !lane.can_close;
  node.querySelector(".stop").hidden = !lane.can_stop;
  node.querySelector(".stop").setAttribute("aria-label", t("Stop {lane}", { lane: lane.name }));
  const hold = node.querySelector(".hold");
  setText(hold, lane.order === "hold_open" ? t("End hold") : t("Hold"));
  hold.setAttribute("aria-label", lane.order === "hold_open" ? t("End hold of {lane}", { lane: lane.name }) : t("Hold {lane} open", { lane: lane.name }));
  decided(node.querySelector(".decision"), decisions.get(lane.lane_id), user);
  node.querySelector(".demo").hidden = !demo;
  keyed(node.querySelector(".cards"), demo ? demo.cards : [], {
    key: (card) => card.card,
    create: (card) => {
      const button = make("button", "", recognised(card.label));
      button.type = "button";
      button.title = card.card;
      button.addEventListener("click", () => present(node, card, button));
      return button;
    },
    update: (button, card) => button.setAttribute("aria-label", t("Present {card} at {lane}", { card: recognised(card.label), lane: lane.name })),
  });
  ageOf(node);
}

const isUnable = (lane) => lane.phase === "fault" || lane.unable.length > 0;
export const decisionOf = (lane) => decisions.get(lane.lane_id);

// The word for a lane's state, its colour, and whether it is the vehicle's phase, which has an age.
export function stateOf(lane) {
  if (isUnable(lane) && NO_WORK.has(lane.phase)) return [t("Cannot work"), "bad", false];
  const trouble = lane.phase === "idle" && lane.troubles.find((one) => AT_REST.has(one.kind));
  if (trouble) return [AT_REST.get(trouble.kind), "bad", false];
  return [...(PHASES[lane.phase] || [lane.phase, ""]), true];
}

// The drawing of the gate, its loops and the vehicle.
export function showScene(scene, lane) {
  const moving = lane.position === "opening" || lane.position === "closing";
  const car = lane.under === "on" ? "at-closing" : lane.vehicle === "on" ? "at-arming" : "";
  setClass(scene, `scene p-${lane.position} ${moving ? "moving" : ""} ${car}`);
  scene.setAttribute("aria-label", `${GATES[lane.position]} · ${ARMING[lane.vehicle]} · ${CLOSING[lane.under]}`);
  for (const [name, state] of [["arming", lane.vehicle], ["closing", lane.under]]) {
    setClass(scene.querySelector(`.loop.${name}`), `loop ${name} ${state}`);
  }
}

export function ageOf(node) {
  const pill = node.querySelector(".phase");
  const { word, since } = pill.dataset;
  setText(pill, since ? `${word} · ${lasting(seconds(since))}` : word);
  showFollowed(node.querySelector(".followed"), node.lane);
}

// The last card or plate: its decision and why, and where nobody knows it the way to enrol it.
function decided(line, event, user) {
  line.hidden = !event || !user.view_events;
  if (line.hidden) return;
  setText(line.querySelector("time"), clock(event.date_at));
  setText(line.querySelector("span"), spoken(event, "description"));
  enrolLink(line.querySelector(".enrol"), event.read, user);
}

export function enrolLink(link, read, user) {
  const fields = new URLSearchParams(read?.enrol);
  link.hidden = !user.add_cards || fields.size === 0;
  link.href = `/status/cards?${fields}`;
  setText(link, read?.enrol.plate ? t("Enrol this plate") : t("Enrol this card"));
}

const RECORDED = {
  open: (lane) => t("Open recorded for {lane}. Watch the gate for the movement.", { lane }),
  close: (lane) => t("Close recorded for {lane}. Watch the gate for the movement.", { lane }),
  stop: (lane) => t("Stop recorded for {lane}. Check that the gate has stopped.", { lane }),
};
const UNRECORDED = {
  open: (lane) => t("Open sent to {lane}, but NOT recorded: the disk cannot be written to. Write down who did it and why.", { lane }),
  close: (lane) => t("Close sent to {lane}, but NOT recorded: the disk cannot be written to. Write down who did it and why.", { lane }),
  stop: (lane) => t("Stop sent to {lane}, but NOT recorded: the disk cannot be written to. Write down who did it and why.", { lane }),
};

// While an answer is awaited that button alone rests: a stop must not wait for an open.
export async function command(node, action) {
  const button = node.querySelector(`.controls .${action}`);
  const focused = document.activeElement;
  button.disabled = true;
  try {
    const { lane_id, gate_id } = node.lane;
    const { command: told } = action === "stop" // which is never too late
      ? await post("/status/lane/stop", { lane_id }) : await postAtOnce(`/v1/device/${action}`, { id: gate_id });
    const said = told.recorded ? RECORDED : UNRECORDED;
    toast(said[action](node.lane.name), !told.recorded);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    toast(because(node.lane.name, error.message), true);
  } finally {
    button.disabled = false;
    if (document.activeElement === document.body) focused.focus(); // a button at rest has lost it
  }
}

const ORDERS = {
  hold_open: {
    title: (lane) => t("Hold {lane} open?", { lane }), yes: t("Hold open"),
    text: t("The gate opens and stays open until somebody ends this. Nobody is asked for a card."),
  },
  lock_down: {
    title: (lane) => t("Lock {lane} down?", { lane }), yes: t("Lock down"),
    text: t("No card lets anybody in until somebody ends this. The fire input still opens the gate."),
  },
  normal: {
    title: (lane) => t("Let {lane} work as usual?", { lane }), yes: t("Let work as usual"),
    text: t("Cards decide, and the schedule does not count, until somebody ends this."),
  },
  "": {
    title: (lane) => t("Let {lane} work as scheduled?", { lane }), yes: t("Let work as scheduled"),
    text: t("A person's order ends, and the schedule counts again."),
  },
};

async function order(node, wanted) {
  const { lane_id, name } = node.lane;
  let seen = node.lane.standing;
  const select = node.querySelector(".orders"); // snapshots set it back while the question is open
  const { title, text, yes } = ORDERS[wanted];
  const done = await asked({
    title: title(name), text, label: t("Why (kept with the event)"), yes,
    act: async (reason) => {
      const instead_of = seen ?? {};
      seen = node.lane.standing; // what is refused says what has come meanwhile; the same once more is meant
      await postAtOnce("/status/lane/order", { lane_id, order: wanted || null, reason, instead_of });
      toast(t("{name}: recorded.", { name }));
    },
  });
  if (done) select.blur();
  else select.value = node.lane.order;
}

async function present(node, card, button) {
  button.disabled = true;
  try {
    await post("/status/demo/present", { lane_id: node.lane.lane_id, card: card.card });
    toast(t("{card} presented at {lane}.", { card: recognised(card.label), lane: node.lane.name }));
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    toast(error.message, true);
  } finally {
    button.disabled = false;
  }
}
