// Views of the page, each with an address of its own: the back button works, and an address can be sent to somebody.
import { toast } from "./dialogs.js";
import { t } from "./words.js";

const BASE = "/status/";
const FLEET = "/fleet/"; // a view whose address stands beside the others
const UNKNOWN = "?unknown"; // a browser asked for an address that there is not, and was sent here
const VIEWS = { "": "now", lanes: "lanes", commissioning: "commissioning", events: "events", cards: "cards", lines: "lines", health: "health", settings: "settings", wall: "wall", fleet: "fleet" };
const entered = {}; // what a view does as it is entered, by its name
const left = {}; // and as it is left
const back = {}; // and as the gateway is back while it is shown
const barred = new Set(); // views that the account does not have
let shown = "";
let prepare = () => {};
let finish = () => {};

// `before` is called before a view is shown, and `after` once its link is the current one.
export function setUpViews({ before, after }) {
  [prepare, finish] = [before, after];
  document.addEventListener("click", (event) => {
    const link = event.target.closest(`a:is([href^="${BASE}"], [href="${FLEET}"]):not([download])`);
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    go(link.getAttribute("href"));
  });
  addEventListener("popstate", show);
  if (location.search === UNKNOWN) {
    history.replaceState(null, "", BASE);
    toast(t("There is nothing at that address. This is the start."), true);
  }
}

export function onEnter(view, act, leave) {
  (entered[view] ??= []).push(act);
  if (leave) (left[view] ??= []).push(leave);
}

// Without a right to it, a view has no link, and its address, which somebody may have sent, says so.
export function permit(view, allowed) {
  barred[allowed ? "delete" : "add"](view);
  for (const link of document.querySelectorAll(`:is(#views, #user) a[href="${BASE}${view}"]`)) link.hidden = !allowed;
}

// What could not be had while the gateway was away is asked for again.
export function onComeBack(view, act) {
  (back[view] ??= []).push(act);
}

export function comeBack() {
  for (const act of back[shown] ?? []) act();
}

export function go(address) {
  if (address !== location.pathname + location.search) history.pushState(null, "", address);
  show();
  scrollTo(0, 0);
}

// Show the view of the address. What stands behind its name, as the id of an event, goes to the view.
export function show() {
  prepare();
  const [name, id = ""] = location.pathname === FLEET ? ["fleet"] : location.pathname.slice(BASE.length).split("/");
  const view = barred.has(name) ? "barred" : VIEWS[name] ?? "now";
  for (const node of document.querySelectorAll(".view")) node.hidden = node.id !== `view-${view}`;
  for (const link of document.querySelectorAll("#views a, #user a")) {
    if (link.getAttribute("href") === (view === "fleet" ? FLEET : BASE + (["now", "lanes", "commissioning"].includes(view) ? "" : name))) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  finish();
  if (shown !== view) for (const leave of left[shown] ?? []) leave();
  shown = view;
  for (const act of entered[view] ?? []) act(plain(id));
}

// A part of an address as it is meant; one that is typed wrongly stays as it is, and names nothing.
function plain(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
