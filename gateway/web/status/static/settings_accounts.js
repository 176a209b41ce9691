// Accounts of the site: who may sign in, with which role, and whether with a second factor.
import { Refused, call, post } from "./api.js";
import { asked, confirmed, toast } from "./dialogs.js";
import { byId, fromTemplate, keyed, make, makeNamed, setText, withCode } from "./dom.js";
import { because, keepNames, t } from "./words.js";

const PASSWORD = { type: "password", required: "", autocomplete: "new-password" };
let roles = [];

export async function showAccounts() {
  show((await call("GET", "/status/settings/accounts")).accounts);
}

function show(told) {
  if (!byId("account-new").firstElementChild) {
    byId("account-new").append(fromTemplate("account-form"));
    byId("account-add").addEventListener("submit", add);
    withCode(byId("account-factor"), t("Each person sets up a second factor with `edge-gateway users mfa`."));
  }
  roles = told.roles.map((role) => role.name);
  const choice = byId("account-add").elements.role;
  if (choice.options.length !== roles.length) choice.replaceChildren(...roles.map((name) => makeNamed("option", "", name)));
  keepNames("accounts", [...told.accounts.map((account) => account.username), ...roles]);
  keyed(byId("accounts"), told.accounts, { key: (account) => account.username, create, update });
}

function create(account) {
  const row = make("li", "row between wrap");
  const { username } = account;
  const buttons = make("span", "row wrap");
  const button = (name, text, act) => {
    const one = make("button", `quiet ${name}`, text);
    one.type = "button";
    one.setAttribute("aria-label", because(text, username));
    one.addEventListener("click", act);
    buttons.append(one);
  };
  button("password", t("New password"), () =>
    asked({ title: t("New password of {who}", { who: username }), text: t("All sessions of the account end."), label: t("Password"), yes: t("Set"), field: PASSWORD, act: (password) => change({ do: "password", username, password }) }));
  button("able", t("Disable"), () => attempt({ do: row.dataset.disabled ? "enable" : "disable", username }));
  button("factor", t("Take second factor away"), async () => {
    if (await confirmed(t("Take the second factor of {who} away?", { who: username }), t("Until a new one is set up, the password alone signs in."), t("Take away"))) attempt({ do: "no-second-factor", username });
  });
  button("remove", t("Remove"), async () => {
    if (await confirmed(t("Remove {name}?", { name: username }), t("The account and its sessions end."), t("Remove"))) attempt({ do: "remove", username });
  });
  row.append(make("span", "whom"), buttons);
  return row;
}

function update(row, account) {
  row.dataset.disabled = account.disabled ? "yes" : "";
  const facts = [account.role, account.mfa ? t("with a second factor") : t("without a second factor"), account.disabled ? t("may not sign in") : ""];
  setText(row.querySelector(".whom"), because(account.username, facts.filter(Boolean).join(", ")));
  setText(row.querySelector(".able"), account.disabled ? t("Enable") : t("Disable"));
  row.querySelector(".factor").hidden = !account.mfa;
}

async function add(event) {
  event.preventDefault();
  const form = event.target;
  const { username, password, role } = form.elements;
  setText(byId("account-fault"), "");
  try {
    await change({ do: "add", username: username.value, password: password.value, role: role.value });
    form.reset();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    setText(byId("account-fault"), error.message);
  }
}

async function change(wanted) {
  show((await post("/status/settings/account", wanted)).accounts);
}

async function attempt(wanted) {
  try {
    await change(wanted);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    toast(error.message, true);
  }
}
