// The page's only wiring: signed in or not, and each snapshot to whoever shows a part of it.
import { Refused, post, session } from "./api.js";
import { setUpPlayer, toast } from "./dialogs.js";
import { setUpMonitor } from "./monitor.js";
import { showAreas } from "./areas.js";
import { byId, setClass, setText } from "./dom.js";
import { forgetEvents, setUpEvents, showEvents } from "./events.js";
import { ageLanes, showLanes } from "./lanes.js";
import { Live } from "./live.js";
import { ageRooms, showRooms } from "./rooms.js";
import { clock, follow } from "./time.js";

let heardAt = "";

const live = new Live({
  snapshot(snapshot) {
    heardAt = snapshot.now;
    follow(snapshot.now, snapshot.gateway.timezone);
    inTouch(true);
    showBar(snapshot);
    showLanes(snapshot);
    showAreas(snapshot);
    showEvents(snapshot);
    showRooms(snapshot);
    byId("board").hidden = false;
  },
  here(now) {
    heardAt = now;
  },
  lost: () => inTouch(false),
  signedOut: () => showSignIn(),
});

function inTouch(yes) {
  document.body.classList.toggle("stale", !yes);
  byId("board").inert = !yes; // nobody commands a gate by an old picture
  byId("lost").hidden = yes;
  if (!yes) setText(byId("lost-text"), `Connection lost${heardAt ? `: this is how it was at ${clock(heardAt)}` : ""}. Trying again…`);
}

function showBar({ gateway, central, user }) {
  setText(byId("site"), gateway.site);
  document.title = `${gateway.site} · Edge gateway`;
  const ready = gateway.not_ready.length === 0;
  setText(byId("pill-gateway"), ready ? "Ready" : "Not ready");
  setClass(byId("pill-gateway"), `pill ${ready ? "good" : "bad"}`);
  byId("pill-central").hidden = central === null;
  if (central) {
    const touch = { true: ["Central", "good"], false: ["Central away", "warn"], null: ["Central", ""] }[String(central.reachable)];
    setText(byId("pill-central"), touch[0]);
    setClass(byId("pill-central"), `pill ${touch[1]}`);
  }
  byId("pill-clock").hidden = gateway.clock_trusted;
  const trouble = [...gateway.not_ready, ...(gateway.store_failing ? [`Store: ${gateway.store_failing}`] : [])];
  byId("trouble").hidden = trouble.length === 0;
  setText(byId("trouble"), trouble.join(" · "));
  byId("pills").hidden = false;
  byId("user").hidden = false;
  setText(byId("username"), user.username);
}

function showSignIn() {
  live.stop();
  forgetEvents();
  inTouch(true);
  for (const id of ["board", "pills", "user", "trouble"]) byId(id).hidden = true;
  for (const id of ["lanes", "events", "cameras", "devices"]) byId(id).replaceChildren();
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
  byId("sign-in").hidden = false;
  byId("name-field").focus();
}

function signedIn() {
  byId("sign-in").hidden = true;
  live.start();
}

byId("sign-in-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.currentTarget;
  const button = form.querySelector("button");
  button.disabled = true;
  setText(byId("sign-in-fault"), "");
  try {
    await post("/v1/auth/login", { username: form.username.value, password: form.password.value });
    form.reset();
    signedIn();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    setText(byId("sign-in-fault"), error.message.charAt(0).toUpperCase() + error.message.slice(1));
  } finally {
    button.disabled = false;
  }
});

byId("sign-out").addEventListener("click", async () => {
  try {
    await post("/v1/auth/logout");
    showSignIn();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    toast(error.message, true);
  }
});

async function begin() {
  try {
    if (await session()) signedIn();
    else showSignIn();
  } catch {
    inTouch(false);
    setTimeout(begin, 2000);
  }
}

setUpPlayer();
setUpMonitor();
setUpEvents();
setInterval(() => {
  if (document.body.classList.contains("stale")) return; // what is not heard of any more does not grow older
  ageLanes();
  ageRooms();
}, 1000);
begin();
