// Names of the records that go to central, and of what is done with them there.
import { t } from "./words.js";

const KINDS = {
  access_card: t("access card"), device: t("device"), camera: t("camera"), camera_event: t("camera event"), entry: t("entry"), event: t("event"),
};
const ACTIONS = {
  create: t("create"), update: t("update"), delete: t("delete"), lifecycle: t("lifecycle"), config: t("settings of the device"),
};

export const recordKind = (kind) => KINDS[kind] ?? kind.replaceAll("_", " ");
export const recordAction = (action) => ACTIONS[action] ?? action.replaceAll("_", " ");
