// How long a gate took to open or to close, drawn over its last travels, with the band that is normal for it.
import { make, setText } from "./dom.js";
import { part, titled } from "./svg.js";
import { clock } from "./time.js";
import { decimal, recognised, t } from "./words.js";

const WIDTH = 320;
const HEIGHT = 90;

export function travelFigure({ title, label }, lane, { travels, band, slow }) {
  const node = make("figure");
  const caption = make("figcaption", "small");
  setText(caption, travels.length ? told(title, travels.at(-1), band) : t("{direction}: no travel was timed yet.", { direction: title }));
  node.append(caption);
  if (travels.length) node.append(plot(label({ lane, first: clock(travels[0].at), last: clock(travels.at(-1).at) }), travels, band));
  if (slow) node.append(make("p", "small slow", t("Slower than its own history: {why}.", { why: recognised(slow) })));
  return node;
}

function told(direction, travel, band) {
  const last = decimal(travel.seconds, 1);
  if (!band) return t("{direction}: last {last} s; not enough travels yet to tell what is normal.", { direction, last });
  const [low, high, middle] = [band.low, band.high, band.middle].map((amount) => decimal(amount, 1));
  return t("{direction}: last {last} s; normal {low} to {high} s, most often {middle} s.", { direction, last, low, high, middle });
}

function plot(label, travels, band) {
  const first = Date.parse(travels[0].at);
  const span = Math.max(1, Date.parse(travels.at(-1).at) - first);
  const top = 1.15 * Math.max(band?.high ?? 0, ...travels.map(({ seconds }) => seconds), 1);
  const across = (at) => (8 + (WIDTH - 16) * ((Date.parse(at) - first) / span)).toFixed(1);
  const down = (seconds) => HEIGHT * (1 - seconds / top);
  const svg = part("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", class: "plot" });
  svg.append(titled(label));
  if (band) {
    svg.append(part("rect", { class: "band", x: 0, width: WIDTH, y: down(band.high).toFixed(1), height: Math.max(1, down(band.low) - down(band.high)).toFixed(1) }));
    svg.append(part("line", { class: "middle", x1: 0, x2: WIDTH, y1: down(band.middle).toFixed(1), y2: down(band.middle).toFixed(1) }));
  }
  for (const { at, seconds } of travels) {
    const mark = titled(t("{time}: {seconds} s", { time: clock(at), seconds: decimal(seconds, 1) }));
    svg.append(part("circle", { class: band && seconds > band.high ? "beyond" : "", cx: across(at), cy: down(seconds).toFixed(1), r: 2.5 }, mark));
  }
  return svg;
}
