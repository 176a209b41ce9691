// How long a gate took to open or to close, drawn over its last travels, with the band that is normal for it.
import { make, setText } from "./dom.js";
import { part, titled } from "./svg.js";
import { clock } from "./time.js";

const WIDTH = 320;
const HEIGHT = 90;

export function travelFigure(title, lane, { travels, band, slow }) {
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
  svg.append(titled(`${label}, ${clock(travels[0].at)} to ${clock(travels.at(-1).at)}`));
  if (band) {
    svg.append(part("rect", { class: "band", x: 0, width: WIDTH, y: down(band.high).toFixed(1), height: Math.max(1, down(band.low) - down(band.high)).toFixed(1) }));
    svg.append(part("line", { class: "middle", x1: 0, x2: WIDTH, y1: down(band.middle).toFixed(1), y2: down(band.middle).toFixed(1) }));
  }
  for (const { at, seconds } of travels) {
    const mark = titled(`${clock(at)}: ${seconds.toFixed(1)} s`);
    svg.append(part("circle", { class: band && seconds > band.high ? "beyond" : "", cx: across(at), cy: down(seconds).toFixed(1), r: 2.5 }, mark));
  }
  return svg;
}
