// Signing in, with a second factor where the account has one, and the menu of who is signed in.
import { Refused, post } from "./api.js";
import { toast } from "./dialogs.js";
import { byId, make, setText } from "./dom.js";
import { LANGUAGES, choose, language, t } from "./words.js";

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

// `why` is said where a session has ended that nobody ended here.
export function showSignIn({ code = false, why = "" } = {}) {
  byId("user").hidden = true;
  byId("user").open = false;
  byId("sign-in").hidden = false;
  byId("sign-in-form").hidden = code;
  byId("code-form").hidden = !code;
  for (const form of [byId("sign-in-form"), byId("code-form")]) form.reset();
  setText(byId("sign-in-why"), why);
  for (const fault of ["sign-in-fault", "code-fault"]) setText(byId(fault), "");
  byId(code ? "code-field" : "name-field").focus();
}

export function showAccount(user) {
  byId("user").hidden = false;
  setText(byId("username"), user.username);
  setText(byId("account-name"), user.username);
  setText(byId("account-role"), `${user.role || t("No role")} · ${user.central ? t("account of central") : t("account of this site")}`);
}

export function setUpAccount({ signedIn, signedOut }) {
  setUpLanguages();
  const done = () => {
    byId("sign-in").hidden = true;
    signedIn();
  };
  onSubmit(byId("sign-in-form"), byId("sign-in-fault"), async (form) => {
    const { user } = await post("/v1/auth/login", { username: form.username.value, password: form.password.value });
    form.reset();
    if (user?.mfa_enabled) showSignIn({ code: true });
    else done();
  });
  onSubmit(byId("code-form"), byId("code-fault"), async (form) => {
    try {
      await post("/v1/auth/mfa", { token: form.code.value });
    } catch (error) {
      form.reset(); // a code that was refused does not become right
      byId("code-field").focus();
      throw error;
    }
    form.reset();
    done();
  });
  const signOut = async () => {
    try {
      await post("/v1/auth/logout");
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (byId("sign-in").hidden) return toast(error.message, true);
    }
    signedOut();
  };
  byId("sign-out").addEventListener("click", signOut);
  byId("code-back").addEventListener("click", signOut);
  const menu = byId("user");
  document.addEventListener("click", (event) => {
    if (!menu.contains(event.target)) menu.open = false;
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
}

function onSubmit(form, fault, send) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("button[type=submit]");
    button.disabled = true;
    setText(fault, "");
    try {
      await send(form);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      setText(fault, sentence(error.message));
    } finally {
      button.disabled = false;
    }
  });
}

function setUpLanguages() {
  for (const select of document.querySelectorAll(".languages")) {
    for (const [name, text] of Object.entries(LANGUAGES)) {
      const option = make("option", "", text);
      option.value = option.lang = name;
      select.append(option);
    }
    select.value = language;
    select.addEventListener("change", () => choose(select.value));
  }
}
