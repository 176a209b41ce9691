// What each part of the site did on each day of the last weeks, and how long each gate took: what wears out shows here.
import { Refused, call } from "./api.js";
import { bars, count, total } from "./bars.js";
import { byId, make, makeNamed, setText } from "./dom.js";
import { tellKept } from "./equipment.js";
import { clock, lasting } from "./time.js";
import { travelFigure } from "./travels.js";
import { onComeBack, onEnter } from "./views.js";

const AGAIN = 60000;
const MOST_SHOWN = 6;
const DIRECTIONS = [["opening", "Opening"], ["closing", "Closing"]];
const FAILURES = { silent: "Without an answer", garbled: "Not understood", echoed: "Sent back", late: "Too late" };
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
    tellKept(trends.events.oldest ? `${count(trends.events.kept)}, since ${clock(trends.events.oldest)}` : "none yet");
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
  const times = travels ? DIRECTIONS.map(([name, title]) => travelFigure(title, lane.name, travels[name])) : [];
  const told = trends.lanes.find(({ id }) => id === lane.lane_id);
  if (!told) return card(lane.name, ...times);
  const { cycles, missed_vehicles: missed, unsteady_inputs: unsteady } = told;
  return card(
    lane.name, ...times,
    bars(`Cycles: ${count(cycles.at(-1))} today${perDay(cycles, trends)}.`, { ...trends, columns: [["Cycles", cycles]] }),
    bars(
      total(missed) ? `Vehicles that a loop may have missed: ${inAll(missed)}. They passed unannounced, or were let in and not seen to pass.` : "No loop seems to have missed a vehicle.",
      { ...trends, columns: [["Vehicles", missed]], worse: true },
    ),
    bars(
      total(unsteady) ? `Inputs that chattered or stuck: ${inAll(unsteady)}.` : "No input chattered or stuck.",
      { ...trends, columns: [["Times", unsteady]], worse: true },
    ),
  );
}

const inAll = (amounts) => `${count(total(amounts))} in four weeks, ${count(amounts.at(-1))} today`;

// Of the days that are over and of which all is known.
function perDay(amounts, { days, since }) {
  const whole = amounts.filter((_, place) => days[place] > since && place < days.length - 1);
  return whole.length ? `; ${count(Math.round(total(whole) / whole.length))} a day before` : "";
}

function lineCards({ units, devices, ...trends }) {
  const failing = units.map(withShare).filter(({ bad }) => bad).toSorted((one, other) => other.share - one.share);
  const lost = devices.filter(({ losses }) => total(losses)).toSorted((one, other) => total(other.losses) - total(one.losses));
  const others = units.length - Math.min(failing.length, MOST_SHOWN);
  const rest = [
    failing.length > MOST_SHOWN ? `Of the other ${others} units, at most ${percent(failing[MOST_SHOWN].share)} of the requests failed.` : others ? `${failing.length ? "All other units" : "All units"} answered every request.` : "",
    lost.length > MOST_SHOWN ? `${lost.length - MOST_SHOWN} more devices were lost at times.` : lost.length ? "No other device was lost." : "No device was lost.",
  ];
  return [
    ...failing.slice(0, MOST_SHOWN).map((unit) => unitCard(unit, trends)),
    ...lost.slice(0, MOST_SHOWN).map(({ name, losses }) => card(name, bars(`Lost: ${inAll(losses)}.`, { ...trends, columns: [["Losses", losses]], worse: true }))),
    make("li", "small dim", rest.filter(Boolean).join(" ")),
  ];
}

function withShare(unit) {
  const bad = total(Object.values(unit.failed).map(total));
  return { ...unit, bad, share: bad / Math.max(1, total(unit.requests)) };
}

function unitCard({ line, unit, devices, requests, failed, bad, share }, trends) {
  const columns = Object.entries(failed).filter(([, amounts]) => total(amounts)).map(([kind, amounts]) => [FAILURES[kind] ?? kind, amounts]);
  const [often] = columns.reduce((most, one) => (total(one[1]) > total(most[1]) ? one : most));
  const said = `${count(bad)} of ${count(total(requests))} requests failed (${percent(share)}), most often: ${often.toLowerCase()}.`;
  return card(`${devices.join(", ") || line} · ${line}/${unit}`, bars(said, { ...trends, columns, worse: true }));
}

const percent = (share) => (share < 0.0001 ? "under 0.01 %" : `${(100 * share).toFixed(2)} %`);

function cameraCard({ name, gaps, seconds }, trends) {
  const minutes = seconds.map((amount) => Math.ceil(amount / 60));
  const many = total(gaps);
  const said = many ? `${many === 1 ? "1 gap" : `${count(many)} gaps`} in four weeks, ${lasting(total(seconds))} of footage missing.` : "No gap in its footage.";
  return card(name, bars(said, { ...trends, columns: [["Minutes missing", minutes]], worse: true }));
}
