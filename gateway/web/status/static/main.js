// The page's only wiring: signed in or not, and each snapshot to whoever shows a part of it.
import { setUpAccount, showAccount, showSignIn } from "./account.js";
import { firstSession } from "./api.js";
import { callsAtOnce, forgetAttention, setUpAttention, showAttention, showTitle } from "./attention.js";
import { setUpNotices, setUpPlayer, setUpQuestions } from "./dialogs.js";
import { setUpBooks, showBooks } from "./books.js";
import { ageCommissioning, forgetCommissioning, setUpCommissioning, showCommissioning } from "./commissioning.js";
import { showAreas } from "./areas.js";
import { byId, setClass, setText } from "./dom.js";
import { forgetEvents, setUpEvents, showEvents } from "./events.js";
import { forgetCards, setUpCards, showCards } from "./cards.js";
import { forgetFleet, setUpFleet, showFleetLink } from "./fleet.js";
import { forgetHistory, setUpHistory, showHistory } from "./history.js";
import { ageLane, forgetLane, setUpLane, showLane } from "./lane.js";
import { ageLanes, forgetLanes, showLanes } from "./lanes.js";
import { setUpLines, showLines } from "./lines.js";
import { Live } from "./live.js";
import { retryPictures } from "./live_picture.js";
import { ageProblems, setUpProblems, showProblems } from "./problems.js";
import { setUpRefused, showRefused } from "./refused.js";
import { forgetSettings, setUpSettings, showSettings } from "./settings.js";
import { ageEquipment, makeRoom, refusesUs, setUpEquipment, showEquipment } from "./equipment.js";
import { clock, follow, otherZone } from "./time.js";
import { setUpLog, showLog } from "./log.js";
import { setUpReceivers, showReceivers } from "./receivers.js";
import { setUpTrends, showTrends } from "./trends.js";
import { comeBack, setUpViews, show } from "./views.js";
import { keepNames, spoken, t, translateDocument } from "./words.js";
import { ageWall, forgetWall, setUpWall, showWall } from "./wall.js";

const FIRST_LANES = 12;
const LONGEST_REST = 1000; // ms
let heardAt = "";
let resting = false; // while only the first screen is shown

const live = new Live({
  snapshot(snapshot) {
    heardAt = snapshot.now;
    follow(snapshot.now, snapshot.gateway.timezone);
    keepNames("site", namesOf(snapshot));
    inTouch(true);
    showBar(snapshot);
    showFleetLink(snapshot);
    showAttention(snapshot);
    showProblems(snapshot);
    if (resting) return; // what has come meanwhile is shown with the rest
    const first = byId("board").hidden;
    if (first && location.pathname === "/status/" && document.visibilityState === "visible") {
      makeRoom(snapshot);
      showAreas(snapshot);
      showLanes({ ...snapshot, lanes: snapshot.lanes.slice(0, FIRST_LANES) }); // the first screen before all the rest
      reveal();
      resting = true;
      whenPainted(endRest);
      return;
    }
    showRest(snapshot);
    if (first) reveal();
  },
  here(now) {
    heardAt = now;
    follow(now); // the clock of either end may have been set
  },
  lost: () => inTouch(false),
  signedOut: () => signedOut(t("Your session has ended: it was signed out elsewhere, unused for too long, or its account has changed. Sign in again to go on where you were.")),
  mayRest: () => !callsAtOnce(),
});

// Names that people gave.
function namesOf({ gateway, user, lanes, areas, devices, cameras }) {
  const named = [...lanes, ...areas, ...devices, ...cameras].map((one) => one.name);
  return [gateway.site, user.username, ...named];
}

function reveal() {
  byId("board").hidden = byId("views").hidden = false;
  show();
}

// Whoever goes to another view does so at once: what it shows must be there by then.
function endRest() {
  if (!resting) return;
  resting = false;
  if (!byId("board").hidden) showRest(live.state);
}

// Frames are drawn between the two; a page that is hidden meanwhile draws none.
function whenPainted(act) {
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(act)));
  setTimeout(act, LONGEST_REST);
}

function showRest(snapshot) {
  showLanes(snapshot);
  showLane(snapshot);
  showCommissioning(snapshot);
  showWall(snapshot);
  showAreas(snapshot);
  showEvents(snapshot);
  showHistory(snapshot);
  showCards(snapshot);
  showLines(snapshot);
  showEquipment(snapshot);
  showBooks(snapshot);
  showRefused(snapshot);
  showTrends(snapshot);
  showReceivers(snapshot);
  showLog(snapshot);
  showSettings(snapshot);
}

let focused = null; // in the board, when the line went

function inTouch(yes) {
  const board = byId("board");
  const back = yes && board.inert && live.isOn;
  document.body.classList.toggle("stale", !yes);
  if (!yes && !board.inert) focused = board.contains(document.activeElement) ? document.activeElement : null;
  board.inert = !yes; // nobody commands a gate by an old picture
  if (yes && document.activeElement === document.body) focused?.focus({ preventScroll: true });
  if (yes) focused = null;
  byId("lost").hidden = yes;
  if (back) {
    comeBack();
    retryPictures();
  }
  if (!yes) setText(byId("lost-text"), heardAt ? t("Connection lost: the page shows the state at {time}. Trying again…", { time: clock(heardAt) }) : t("Connection lost. Trying again…"));
}

function showBar({ gateway, central, problems, user }) {
  setText(byId("site"), gateway.site);
  setText(byId("pill-gateway"), spoken(gateway, "headline"));
  const colour = gateway.ready && problems.every((problem) => problem.severity === "notice") ? "good" : "warn";
  setClass(byId("pill-gateway"), `pill ${gateway.ready ? colour : "bad"}`);
  byId("pill-zone").hidden = otherZone() === "";
  setText(byId("pill-zone"), t("Site time {zone}", { zone: otherZone() }));
  byId("pill-central").hidden = central === null;
  if (central) {
    const there = refusesUs(central) ? [t("Central refuses sign-in"), "warn"] : [t("Central"), "good"];
    const touch = { true: there, false: [t("Central offline"), "warn"], null: [t("Central"), ""] }[String(central.reachable)];
    setText(byId("pill-central"), touch[0]);
    setClass(byId("pill-central"), `pill ${touch[1]}`);
  }
  byId("pills").hidden = false;
  showAccount(user);
}

function signedOut(why = "") {
  live.end();
  forgetAttention();
  forgetEvents();
  forgetLane();
  forgetCommissioning();
  forgetLanes();
  forgetWall();
  forgetHistory();
  forgetCards();
  forgetFleet();
  forgetSettings();
  inTouch(true);
  for (const id of ["board", "views", "pills", "user"]) byId(id).hidden = true;
  for (const id of ["problems", "lanes", "events", "cameras", "devices", "refused", "held-why", "lines"]) byId(id).replaceChildren();
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
  showSignIn({ why });
}

async function begin() {
  try {
    const { user, mfa_pending } = await firstSession();
    if (user) live.start();
    else showSignIn({ code: mfa_pending });
  } catch {
    inTouch(false);
    setTimeout(begin, 2000);
  }
}

translateDocument();
setUpAttention();
setUpAccount({ signedIn: () => live.start(), signedOut });
setUpPlayer();
setUpQuestions();
setUpNotices();
setUpEvents();
setUpLane();
setUpCommissioning();
setUpWall();
setUpHistory();
setUpCards();
setUpLines();
setUpFleet();
setUpSettings();
setUpTrends();
setUpReceivers();
setUpLog();
setUpViews({ before: endRest, after: showTitle });
setUpEquipment();
setUpBooks();
setUpRefused();
setUpProblems();
setInterval(() => {
  if (document.body.classList.contains("stale")) return; // what is not heard of any more does not grow older
  ageLanes();
  ageLane();
  ageCommissioning();
  ageWall();
  ageProblems();
  ageEquipment();
}, 1000);
begin();
