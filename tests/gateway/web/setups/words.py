"""The page's words alone, in a browser of another language: its own texts, and what it recognises of the gateway's."""

from __future__ import annotations

from gateway.web.status.page_files import STATIC, one_script

_MODULES = ("catalogue", "recognised", "words")
_CALL = (
    "async ([call, given]) => {{\n{}return given.map((one) => words_js[call](...one).replaceAll('\\u00a0', ' '));\n}}"
)


async def in_french(gateway, browser_page, call, given):
    """Return the answers of a function of `words.js` in French, for each list of arguments."""
    script = one_script({name: (STATIC / f"{name}.js").read_text("utf-8") for name in _MODULES})
    async with browser_page(language="fr") as page:
        await page.goto(f"{gateway.url}/status/")
        return await page.evaluate(_CALL.format(script), [call, given])


async def recognised_in_french(gateway, browser_page, texts):
    """Return the sentences of the gateway as a French page shows them, by the sentence."""
    shown = await in_french(gateway, browser_page, "recognised", [[text] for text in texts])
    return dict(zip(texts, shown, strict=True))
