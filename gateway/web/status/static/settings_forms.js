// The common parts of the site file as fields, and what somebody changed in them as edits.
import { make, makeNamed } from "./dom.js";
import { t } from "./words.js";

const DAYS = {
  mon: t("mon"), tue: t("tue"), wed: t("wed"), thu: t("thu"), fri: t("fri"), sat: t("sat"), sun: t("sun"), holiday: t("holiday"),
};
const WORKDAYS = Object.keys(DAYS).slice(0, 5);
const SECONDS = { waiting_seconds: t("Open without a vehicle until it closes (s)"), held_open_seconds: t("Held open until an alarm (s)"), clear_seconds: t("Free so long before it closes (s)") };
const SCHEDULES = { schedule: t("Open only during"), hold_open_schedule: t("Held open during"), lock_down_schedule: t("Locked down during") };
let number = 0;

export function fill(parent, parts) {
  parent.replaceChildren();
  if (parts === null) return;
  const names = parts.schedules.map((one) => one.id);
  parent.append(group(t("Site"), [entry("site", "", "", [text("name", t("Name"), parts.site.name)])]));
  if (parts.lanes.length) parent.append(group(t("Lanes"), parts.lanes.map((lane) => entry("lanes", lane.id, lane.id, laneFields(lane, names))), true));
  for (const [section, title] of [["devices", t("Devices")], ["cameras", t("Cameras")], ["areas", t("Areas")]]) {
    if (parts[section].length) parent.append(group(title, parts[section].map((one) => entry(section, String(one.id), String(one.id), named(section, one)))));
  }
  const schedules = group(t("Schedules"), parts.schedules.map(schedule));
  schedules.append(adder(t("New schedule"), t("Name of the schedule"), "text", (id) => schedule({ id, windows: [] }, true)));
  const holidays = group(t("Holidays"), parts.holidays.map((one) => holiday(one)));
  holidays.append(adder(t("New holiday"), t("Date of the holiday"), "date", (date) => holiday({ date, name: "" }, true)));
  parent.append(schedules, holidays);
}

export function collected(parent, parts) {
  const edits = [];
  for (const node of parent.querySelectorAll(".entry")) {
    const { section, id } = node.dataset;
    if (node.dataset.removed) {
      if (!node.dataset.added) edits.push({ section, id, remove: true });
      continue;
    }
    const values = {};
    for (const field of node.querySelectorAll("[data-key]")) {
      if (field.value !== field.dataset.before) values[field.dataset.key] = valueOf(field);
    }
    const edit = { section, id, values };
    if (section === "schedules") {
      const windows = [...node.querySelectorAll(".window")].map(windowOf);
      const before = parts.schedules.find((one) => one.id === id)?.windows ?? null;
      if (JSON.stringify(windows) !== JSON.stringify(before?.map(shownWindow) ?? null)) edit.windows = windows;
    }
    if (Object.keys(values).length || edit.windows || node.dataset.added) edits.push(edit);
  }
  return edits;
}

function valueOf(field) {
  if (field.value === "") return field.dataset.key === "name" ? "" : null; // empty: its default counts
  return field.type === "number" ? Number(field.value) : field.value;
}

function group(title, nodes, open = false) {
  const part = make("details", "card part");
  part.append(make("summary", "", title), ...nodes);
  part.open = open;
  return part;
}

function entry(section, id, title, fields) {
  const node = make("fieldset", "entry");
  Object.assign(node.dataset, { section, id });
  if (title) node.append(makeNamed("legend", "", title));
  node.append(...fields);
  return node;
}

const named = (section, one) => [text("name", t("Name"), one.name), ...(section === "areas" ? [count("limit", t("Places"), one.limit)] : [])];

function laneFields(lane, names) {
  return [
    text("name", t("Name"), lane.name),
    ...Object.entries(SECONDS).map(([key, label]) => count(key, label, lane[key], "any")),
    ...Object.entries(SCHEDULES).map(([key, label]) => choice(key, label, lane[key], names)),
  ];
}

function labelled(label, field, key, value) {
  const row = make("p", "field");
  const name = make("label", "", label);
  field.id = name.htmlFor = `setting-${(number += 1)}`;
  if (key) field.dataset.key = key;
  field.value = value ?? "";
  field.dataset.before = field.value;
  row.append(name, field);
  return row;
}

function text(key, label, value) {
  const field = make("input");
  field.maxLength = 120;
  field.required = key === "name";
  return labelled(label, field, key, value);
}

function count(key, label, value, step = "1") {
  const field = make("input");
  Object.assign(field, { type: "number", min: "0", step, inputMode: "decimal" });
  return labelled(label, field, key, value);
}

function choice(key, label, value, names) {
  const field = make("select");
  for (const name of ["", ...names]) {
    const option = make("option", "", name || "–");
    option.value = name;
    field.append(option);
  }
  return labelled(label, field, key, value);
}

function removable(node, label, added) {
  if (added) node.dataset.added = "yes";
  const button = make("button", "quiet", t("Remove"));
  button.type = "button";
  button.setAttribute("aria-label", t("Remove {name}", { name: label }));
  button.addEventListener("click", () => {
    node.dataset.removed = "yes";
    node.hidden = true;
    node.closest("form").dispatchEvent(new Event("input"));
  });
  node.append(button);
  return node;
}

function holiday({ date, name }, added = false) {
  const field = text("name", t("Name"), name);
  field.querySelector("input").required = false;
  return removable(entry("holidays", date, date, [field]), date, added);
}

const shownWindow = ({ days, start, end }) => ({ days, start: start.slice(0, 5), end: end.slice(0, 5) });

function schedule({ id, windows }, added = false) {
  const node = entry("schedules", id, id, []);
  const rows = make("div", "windows");
  rows.append(...windows.map(shownWindow).map(hours));
  const more = make("button", "quiet", t("Add hours"));
  more.type = "button";
  more.setAttribute("aria-label", t("Add hours to {schedule}", { schedule: id }));
  more.addEventListener("click", () => rows.append(hours({ days: WORKDAYS, start: "08:00", end: "18:00" })));
  node.append(rows, more);
  return removable(node, id, added);
}

function hours({ days, start, end }) {
  const row = make("div", "window row wrap");
  for (const [day, word] of Object.entries(DAYS)) {
    const label = make("label", "day");
    const box = make("input");
    Object.assign(box, { type: "checkbox", value: day, checked: days.includes(day) });
    label.append(box, ` ${word}`);
    row.append(label);
  }
  for (const [name, word, value] of [["from", t("from"), start], ["until", t("until"), end]]) {
    const label = make("label", "", `${word} `);
    const field = make("input");
    Object.assign(field, { type: "time", value, required: true, className: name });
    label.append(field);
    row.append(label);
  }
  const away = make("button", "quiet", t("Remove hours"));
  away.type = "button";
  away.addEventListener("click", () => row.remove());
  row.append(away);
  return row;
}

function windowOf(row) {
  const days = [...row.querySelectorAll("input[type=checkbox]:checked")].map((box) => box.value);
  return { days, start: row.querySelector(".from").value, end: row.querySelector(".until").value };
}

function adder(label, what, type, made) {
  const row = make("p", "row wrap adder");
  const name = make("label", "hidden", what);
  const field = make("input");
  Object.assign(field, { type, maxLength: 120, placeholder: what, id: `setting-${(number += 1)}` });
  name.htmlFor = field.id;
  const button = make("button", "", label);
  button.type = "button";
  button.addEventListener("click", () => {
    if (!field.value) return field.focus();
    row.before(made(field.value));
    field.value = "";
  });
  row.append(name, field, button);
  return row;
}
