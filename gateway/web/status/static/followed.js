// A command followed until the gate has moved, or why it has not.
import { keyed, make, setClass, setText } from "./dom.js";
import { seconds } from "./time.js";
import { actor, because, spoken, t } from "./words.js";

const SHOWN_FOR = 120; // seconds after it was asked for
const STEPS = { recorded: 1, sent: 1, acknowledged: 2, done: 3 };
const THERE = { open: "open", close: "closed", stop: "stopped" }; // the gate's position
const WORDS = {
  open: [(who) => t("Open by {who}", { who }), t("opening"), t("open")],
  close: [(who) => t("Close by {who}", { who }), t("closing"), t("closed")],
  stop: [(who) => t("Stop by {who}", { who }), t("stopping"), t("stopped")],
};

// The steps of a lane's last command: [word, state], state being "done", "next", "" or "failed".
function steps({ command, position, said }) {
  const [, moving, arrived] = WORDS[command.action];
  const failed = command.state === "refused" ? t("not done") : command.state === "unknown" ? t("not seen to move") : "";
  if (failed) return [[t("asked"), "done"], [because(failed, spoken({ ...command, said: said?.command }, "detail")), "failed"]];
  let reached = STEPS[command.state];
  if (reached === 3 && position === THERE[command.action]) reached = 4;
  return [t("asked"), t("acknowledged"), moving, arrived].map((word, place) => [word, place < reached ? "done" : place === reached ? "next" : ""]);
}

export function showFollowed(node, lane) {
  const { command } = lane;
  const failed = command?.state === "refused" || command?.state === "unknown";
  const usual = command?.by === "lane" && !failed && !node.closest(".whole"); // what a lane does all day
  node.hidden = !command || usual || seconds(command.requested_at) > SHOWN_FOR;
  if (node.hidden) return;
  setText(node.querySelector("strong"), WORDS[command.action][0](actor(command.by)));
  keyed(node.querySelector("ol"), steps(lane).map(([word, state], place) => ({ word, state, place })), {
    key: (step) => step.place,
    create: () => make("li"),
    update: (item, step) => {
      setText(item, step.word);
      setClass(item, step.state);
    },
  });
}
