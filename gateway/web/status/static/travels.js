// How long each gate took to open and to close, drawn over its last travels, with the band that is normal for it.
import { Refused, call } from "./api.js";
import { byId, keyed, make, setText } from "./dom.js";
import { clock } from "./time.js";
import { onEnter } from "./views.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 320;
const HEIGHT = 90;
const DIRECTIONS = [["opening", "Opening"], ["closing", "Closing"]];
let lanes = [];
let entered = false;

export function setUpTravels() {
  onEnter("health", () => {
    entered = true;
    ask();
  }, () => { entered = false; });
}

export function showTravels(snapshot) {
  const first = lanes.length === 0;
  lanes = snapshot.lanes;
  byId("travels-section").hidden = !snapshot.user.view_events || lanes.length === 0;
  if (first && entered) ask();
}

async function ask() {
  if (byId("travels-section").hidden) return;
  const answer = await call("GET", "/status/gate/travels").catch((error) => {
    if (!(error instanceof Refused)) throw error;
    return { travels: {} };
  });
  const told = lanes.filter((lane) => lane.lane_id in answer.travels).map((lane) => ({ lane, answer: answer.travels[lane.lane_id] }));
  keyed(byId("travels"), told, {
    key: ({ lane }) => lane.lane_id,
    create: () => make("li", "card travel"),
    update: (row, { lane, answer }) => row.replaceChildren(named(lane.name), ...DIRECTIONS.map(([name, title]) => figure(title, lane.name, answer[name]))),
  });
}

function named(lane) {
  const heading = make("h3");
  heading.translate = false;
  heading.textContent = lane;
  return heading;
}

function figure(title, lane, { travels, band, slow }) {
  const node = make("figure");
  const caption = make("figcaption", "small");
  const normal = band ? `normal ${band.low.toFixed(1)} to ${band.high.toFixed(1)} s, most often ${band.middle.toFixed(1)} s` : "not enough travels yet to tell what is normal";
  setText(caption, travels.length ? `${title}: last ${travels.at(-1).seconds.toFixed(1)} s; ${normal}.` : `${title}: no travel was timed yet.`);
  node.append(caption);
  if (travels.length) node.append(plot(`${title} times of ${lane}`, travels, band));
  if (slow) node.append(make("p", "small slow", `Slower than its own history: ${slow}.`));
  return node;
}

function plot(label, travels, band) {
  const first = Date.parse(travels[0].at);
  const span = Math.max(1, Date.parse(travels.at(-1).at) - first);
  const top = 1.15 * Math.max(band?.high ?? 0, ...travels.map(({ seconds }) => seconds), 1);
  const across = (at) => (8 + (WIDTH - 16) * ((Date.parse(at) - first) / span)).toFixed(1);
  const down = (seconds) => HEIGHT * (1 - seconds / top);
  const svg = part("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", class: "plot" });
  svg.append(titled(part("title"), `${label}, ${clock(travels[0].at)} to ${clock(travels.at(-1).at)}`));
  if (band) {
    svg.append(part("rect", { class: "band", x: 0, width: WIDTH, y: down(band.high).toFixed(1), height: Math.max(1, down(band.low) - down(band.high)).toFixed(1) }));
    svg.append(part("line", { class: "middle", x1: 0, x2: WIDTH, y1: down(band.middle).toFixed(1), y2: down(band.middle).toFixed(1) }));
  }
  for (const { at, seconds } of travels) {
    const dot = part("circle", { class: band && seconds > band.high ? "beyond" : "", cx: across(at), cy: down(seconds).toFixed(1), r: 2.5 });
    dot.append(titled(part("title"), `${clock(at)}: ${seconds.toFixed(1)} s`));
    svg.append(dot);
  }
  return svg;
}

function part(tag, attributes = {}) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

function titled(node, text) {
  node.textContent = text;
  return node;
}
