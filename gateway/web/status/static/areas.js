// Areas: how many are inside, and an operator's word about it.
import { post } from "./api.js";
import { asked, toast } from "./dialogs.js";
import { byId, fromTemplate, keyed, setClass, setText } from "./dom.js";
import { n, t } from "./words.js";

export function showAreas({ areas, user }) {
  byId("areas-section").hidden = areas.length === 0;
  keyed(byId("areas"), areas, {
    key: (area) => area.area_id,
    create: () => {
      const node = fromTemplate("area-row");
      node.querySelector(".correct").addEventListener("click", () => correct(node.area));
      return node;
    },
    update: (node, area) => {
      node.area = area;
      const full = area.limit !== null && area.count >= area.limit;
      setText(node.querySelector(".area-name"), area.name);
      setText(node.querySelector(".area-count"), area.limit === null ? n("{count} inside", "{count} inside", area.count) : t("{count} of {all}", { count: area.count, all: area.limit }));
      setClass(node.querySelector(".area-count"), `area-count pill ${full ? "warn" : ""}`);
      const button = node.querySelector(".correct");
      button.hidden = !user.correct_counts;
      button.setAttribute("aria-label", t("Correct the count of {area}", { area: area.name }));
    },
  });
}

async function correct(area) {
  await asked({
    title: t("How many are in {area}?", { area: area.name }),
    text: t("The gateway counted {count}. Your number is recorded with your name.", { count: area.count }),
    label: t("Vehicles inside"),
    yes: t("Correct the count"),
    value: String(area.count),
    field: { type: "number", min: "0", max: "1000000", required: "" },
    act: async (said) => {
      await post("/status/area/count", { area_id: area.area_id, count: Number(said) });
      toast(n("{area}: {count} inside.", "{area}: {count} inside.", Number(said), { area: area.name }));
    },
  });
}
