// One bar for each day, with the figures in a table behind it.
import { make, setText } from "./dom.js";
import { part, titled } from "./svg.js";
import { dayShown } from "./time.js";
import { decimal, n, t } from "./words.js";

const WIDTH = 320;
const HEIGHT = 60;

export const total = (amounts) => amounts.reduce((sum, amount) => sum + amount, 0);
// What a day stands for in a figure.
const amountOf = (day, count) => t("{day}: {count}", { day: dayShown(day), count });

// `columns`: [name, amounts] each, which are drawn on top of each other. `since`: the first day of which anything is known.
export function bars(said, { days, since, columns, worse = false }) {
  const node = make("figure");
  const caption = make("figcaption", "small");
  setText(caption, said);
  node.append(caption);
  const sums = days.map((_, place) => total(columns.map(([, amounts]) => amounts[place])));
  if (Math.max(...sums) === 0) return node; // the sentence says it all
  const known = days.map((day, place) => ({ day, place, sum: sums[place] })).filter(({ day }) => day >= since);
  node.append(drawn(said, days.length, known, worse), scale(days[0], Math.max(...sums)), table(known, columns));
  return node;
}

function drawn(label, length, known, worse) {
  const most = Math.max(...known.map(({ sum }) => sum));
  const step = WIDTH / length;
  const svg = part("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", class: `plot bars ${worse ? "worse" : ""}` });
  svg.append(titled(label));
  for (const { day, place, sum } of known) {
    const height = sum === 0 ? 0 : Math.max(2, (HEIGHT - 4) * (sum / most));
    const box = { x: (place * step + 1).toFixed(1), y: (HEIGHT - height).toFixed(1), width: (step - 2).toFixed(1), height: height.toFixed(1) };
    svg.append(part("rect", { ...box, class: place === length - 1 ? "today" : "" }, titled(amountOf(day, sum))));
  }
  return svg;
}

function scale(first, most) {
  const row = make("p", "row between small dim");
  row.ariaHidden = "true";
  row.append(make("span", "", dayShown(first)), make("span", "", n("up to {count} a day", "up to {count} a day", most)), make("span", "", t("today")));
  return row;
}

function table(known, columns) {
  const node = make("details", "small by-day");
  const body = make("table");
  const head = make("tr");
  head.append(...[t("Day"), ...columns.map(([name]) => name)].map(header("col")));
  const rows = [...known].reverse().map(({ day, place }) => {
    const row = make("tr");
    row.append(header("row")(dayShown(day)), ...columns.map(([, amounts]) => make("td", "", decimal(amounts[place], 0))));
    return row;
  });
  body.append(head, ...rows);
  node.append(make("summary", "", t("By day")), body);
  return node;
}

const header = (scope) => (text) => {
  const cell = make("th", "", text);
  cell.scope = scope;
  return cell;
};
