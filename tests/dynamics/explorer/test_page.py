"""The page as a file: what is inlined stays what it was, and nothing points outside."""

import json
import re
from html.parser import HTMLParser

import pytest
from mock_model import DESCRIPTION, worker

from dynamics.explorer.page import page

HOSTILE = "</script><!-- <script>alert(1)</script> --> & \"quoted\" 'twice' $title \u2028 ${x}"


class Elements(HTMLParser):
    """Elements of a page with their attributes, and what is in scripts."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.scripts, self._open = [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._open = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._open = None

    def handle_data(self, data):
        if self._open == "script":
            self.scripts[-1] += data


def inlined(text):
    description, script, _ = Elements(text).scripts
    return json.loads(description), json.loads(script)


def test_what_is_inlined_is_what_was_given():
    description = DESCRIPTION | {"summary": HOSTILE, "title": HOSTILE, "name": HOSTILE}
    text = page(description, worker() + HOSTILE)
    assert inlined(text) == (description, worker() + HOSTILE)


def test_hostile_texts_make_no_elements():
    plain = Elements(page(DESCRIPTION, worker()))
    hostile = DESCRIPTION | dict.fromkeys(("summary", "title", "source", "version"), HOSTILE)
    assert Elements(page(hostile, HOSTILE)).elements == plain.elements


def test_nothing_points_outside():
    text = page(DESCRIPTION, worker())
    without_names = text.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|//[\w-]+\.\w|@import|url\((?!#)", without_names)
    loading = {"src", "href", "action", "data", "poster", "srcset"}
    found = [(tag, a) for tag, a in Elements(text).elements if loading & set(a)]
    assert found == [("link", {"rel": "icon", "href": "data:,"})]
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1]
    assert "default-src 'none'" in policy
    assert "connect-src" not in policy


def test_a_number_that_json_has_no_word_for_is_refused():
    run = DESCRIPTION["run"] | {"horizon": float("inf")}
    with pytest.raises(ValueError, match="JSON"):
        page(DESCRIPTION | {"run": run}, "")
