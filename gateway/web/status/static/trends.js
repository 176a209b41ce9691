// What each part of the site did on each day of the last weeks, and how long each gate took: what wears out shows here.
import { Refused, call } from "./api.js";
import { bars, total } from "./bars.js";
import { byId, make, makeNamed, setText } from "./dom.js";
import { tellKept } from "./equipment.js";
import { clock, lasting } from "./time.js";
import { travelFigure } from "./travels.js";
import { onComeBack, onEnter } from "./views.js";
import { decimal, n, t } from "./words.js";

const AGAIN = 60000;
const MOST_SHOWN = 6;
const DIRECTIONS = [
  ["opening", { title: t("Opening"), label: (places) => t("Opening times of {lane}, {first} to {last}", places) }],
  ["closing", { title: t("Closing"), label: (places) => t("Closing times of {lane}, {first} to {last}", places) }],
];
const FAILURES = {
  silent: [t("Without an answer"), t("without an answer")], garbled: [t("Not understood"), t("not understood")], echoed: [t("Sent back"), t("sent back")],
  late: [t("Too late"), t("too late")],
};
let lanes = [];
let entered = false;
let timer = 0;

export function setUpTrends() {
  onEnter("health", () => {
    entered = true;
    look();
  }, () => { entered = false; });
  onComeBack("health", () => {
    if (byId("trends-fault").textContent) look();
  });
}

export function showTrends({ lanes: known, user, cameras }) {
  const first = lanes.length === 0;
  lanes = known;
  const may = user.view_events && user.view_devices;
  for (const id of ["travels-section", "line-trends-section"]) byId(id).hidden = !may || lanes.length === 0;
  byId("camera-trends-section").hidden = !may || !user.view_cameras || cameras.length === 0;
  if (first && entered) look();
}

async function look() {
  clearTimeout(timer);
  if (!entered) return;
  timer = setTimeout(look, AGAIN);
  if (byId("travels-section").hidden || document.visibilityState !== "visible") return;
  try {
    const [{ travels }, { trends }] = await Promise.all([call("GET", "/status/gate/travels"), call("GET", "/status/trends")]);
    setText(byId("trends-fault"), "");
    tellKept(trends.events.oldest ? t("{count}, since {time}", { count: trends.events.kept, time: clock(trends.events.oldest) }) : t("none yet"));
    byId("travels").replaceChildren(...lanes.map((lane) => laneCard(lane, travels[lane.lane_id], trends)));
    byId("line-trends").replaceChildren(...lineCards(trends));
    byId("camera-trends").replaceChildren(...trends.cameras.map((camera) => cameraCard(camera, trends)));
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    setText(byId("trends-fault"), error.message);
  }
}

function card(name, ...figures) {
  const node = make("li", "card trend");
  node.append(makeNamed("h3", "", name), ...figures);
  return node;
}

function laneCard(lane, travels, trends) {
  const times = travels ? DIRECTIONS.map(([name, words]) => travelFigure(words, lane.name, travels[name])) : [];
  const told = trends.lanes.find(({ id }) => id === lane.lane_id);
  if (!told) return card(lane.name, ...times);
  const { cycles, missed_vehicles: missed, unsteady_inputs: unsteady } = told;
  return card(
    lane.name, ...times,
    bars(cyclesOf(cycles, trends), { ...trends, columns: [[t("Cycles"), cycles]] }),
    bars(
      total(missed)
        ? t("Vehicles that a loop may have missed: {count} in four weeks, {today} today. They passed unannounced, or were let in and not seen to pass.", inAll(missed))
        : t("No loop seems to have missed a vehicle."),
      { ...trends, columns: [[t("Vehicles"), missed]], worse: true },
    ),
    bars(
      total(unsteady) ? t("Inputs that chattered or stuck: {count} in four weeks, {today} today.", inAll(unsteady)) : t("No input chattered or stuck."),
      { ...trends, columns: [[t("Times"), unsteady]], worse: true },
    ),
  );
}

const inAll = (amounts) => ({ count: total(amounts), today: amounts.at(-1) });

// A day before: of the days that are over and of which all is known.
function cyclesOf(amounts, { days, since }) {
  const today = amounts.at(-1);
  const whole = amounts.filter((_, place) => days[place] > since && place < days.length - 1);
  if (!whole.length) return t("Cycles: {today} today.", { today });
  return t("Cycles: {today} today; {before} a day before.", { today, before: Math.round(total(whole) / whole.length) });
}

function lineCards({ units, devices, ...trends }) {
  const failing = units.map(withShare).filter(({ bad }) => bad).toSorted((one, other) => other.share - one.share);
  const lost = devices.filter(({ losses }) => total(losses)).toSorted((one, other) => total(other.losses) - total(one.losses));
  const others = units.length - Math.min(failing.length, MOST_SHOWN);
  const rest = [
    otherUnits(failing, others),
    lost.length > MOST_SHOWN
      ? n("{count} more device was lost at times.", "{count} more devices were lost at times.", lost.length - MOST_SHOWN)
      : lost.length ? t("No other device was lost.") : t("No device was lost."),
  ];
  return [
    ...failing.slice(0, MOST_SHOWN).map((unit) => unitCard(unit, trends)),
    ...lost.slice(0, MOST_SHOWN).map(({ name, losses }) => card(name, bars(t("Lost: {count} in four weeks, {today} today.", inAll(losses)), { ...trends, columns: [[t("Losses"), losses]], worse: true }))),
    make("li", "small dim", rest.filter(Boolean).join(" ")),
  ];
}

function otherUnits(failing, others) {
  if (failing.length > MOST_SHOWN) {
    const places = { share: percent(failing[MOST_SHOWN].share) };
    return n("Of the other {count} unit, at most {share} of the requests failed.", "Of the other {count} units, at most {share} of the requests failed.", others, places);
  }
  if (!others) return "";
  return failing.length ? t("All other units answered every request.") : t("All units answered every request.");
}

function withShare(unit) {
  const bad = total(Object.values(unit.failed).map(total));
  return { ...unit, bad, share: bad / Math.max(1, total(unit.requests)) };
}

function unitCard({ line, unit, devices, requests, failed, bad, share }, trends) {
  const columns = Object.entries(failed).filter(([, amounts]) => total(amounts)).map(([kind, amounts]) => [FAILURES[kind][0], amounts, FAILURES[kind][1]]);
  const [, , often] = columns.reduce((most, one) => (total(one[1]) > total(most[1]) ? one : most));
  const said = t("{count} of {all} requests failed ({share}), most often: {often}.", { count: bad, all: total(requests), share: percent(share), often });
  return card(`${devices.join(", ") || line} · ${line}/${unit}`, bars(said, { ...trends, columns, worse: true }));
}

const percent = (share) => (share < 0.0001 ? t("under {share} %", { share: decimal(0.01, 2) }) : t("{share} %", { share: decimal(100 * share, 2) }));

function cameraCard({ name, gaps, seconds }, trends) {
  const minutes = seconds.map((amount) => Math.ceil(amount / 60));
  const many = total(gaps);
  const said = many
    ? n("{count} gap in four weeks, {time} of footage missing.", "{count} gaps in four weeks, {time} of footage missing.", many, { time: lasting(total(seconds)) })
    : t("No gap in its footage.");
  return card(name, bars(said, { ...trends, columns: [[t("Minutes missing"), minutes]], worse: true }));
}
