// A command followed until the gate has moved, or why it has not.
import { keyed, make, setClass, setText } from "./dom.js";
import { seconds } from "./time.js";

const SHOWN_FOR = 120; // seconds after it was asked for
const STEPS = { recorded: 1, sent: 1, acknowledged: 2, done: 3 };
const WORDS = {
  open: ["Open", "opening", "open"], close: ["Close", "closing", "closed"], stop: ["Stop", "stopping", "stopped"],
};

// The steps of a lane's last command: [word, state], state being "done", "next", "" or "failed".
export function steps({ command, position }) {
  const [, moving, there] = WORDS[command.action];
  const failed = command.state === "refused" || command.state === "unknown";
  if (failed) return [["asked", "done"], [`${command.state === "refused" ? "not done" : "not seen to move"}: ${command.detail}`, "failed"]];
  let reached = STEPS[command.state];
  if (reached === 3 && position === there) reached = 4;
  return ["asked", "acknowledged", moving, there].map((word, place) => [word, place < reached ? "done" : place === reached ? "next" : ""]);
}

export function showFollowed(node, lane) {
  const { command } = lane;
  const failed = command?.state === "refused" || command?.state === "unknown";
  const usual = command?.by === "lane" && !failed && !node.closest(".whole"); // what a lane does all day
  node.hidden = !command || usual || seconds(command.requested_at) > SHOWN_FOR;
  if (node.hidden) return;
  setText(node.querySelector("strong"), `${WORDS[command.action][0]} by ${command.by === "lane" ? "the lane" : command.by}`);
  keyed(node.querySelector("ol"), steps(lane).map(([word, state], place) => ({ word, state, place })), {
    key: (step) => step.place,
    create: () => make("li"),
    update: (item, step) => {
      setText(item, step.word);
      setClass(item, step.state);
    },
  });
}
