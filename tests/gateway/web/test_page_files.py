"""The page's modules as one script."""

from __future__ import annotations

import pytest

from gateway.web.status.page_files import one_script

WORDS = "export const word = (name) => `hello ${name}`;\n"
MAIN = 'import { word, twice } from "./words.js";\nword(twice);\n'


def test_a_module_stands_behind_those_that_it_imports():
    script = one_script({"main": MAIN, "words": WORDS + "export async function twice() {}\n"})
    assert script.index("const words_js = ") < script.index("const main_js = ")
    assert "return { word, twice };" in script
    assert "const { word, twice } = words_js;" in script
    assert "import" not in script
    assert "export" not in script


@pytest.mark.parametrize(
    "line",
    ['import main from "./main.js";', 'import { a as b } from "./b.js";', "export default 1;", "export let a = 1;"],
)
def test_a_module_of_another_form_is_refused(line):
    with pytest.raises(ValueError, match=r"^odd\.js: "):
        one_script({"odd": line})
