"""The page as a file: what is inlined stays what it was, and nothing points outside."""

import json
import re
from html.parser import HTMLParser
from unittest import mock

import pytest

import dynamics
from dynamics.explorer import own_points
from dynamics.explorer.description import page_description
from dynamics.explorer.driver import worker_script
from dynamics.explorer.own_model import page_model
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


@pytest.fixture(scope="module")
def given():
    """Description and worker of a page."""
    system = dynamics.load_system("deep_linear")
    with mock.patch.object(own_points, "MOST_TRIED", 0):
        model = page_model(system, system.Parameters(D=2))
    description = json.loads(json.dumps(page_description(system, model)))
    return description, worker_script(model.script, model.problem)


def test_what_is_inlined_is_what_was_given(given):
    description = given[0] | dict.fromkeys(("summary", "title", "name"), HOSTILE)
    worker = given[1] + HOSTILE
    inlined = Elements(page(description, worker)).scripts[:2]
    assert [json.loads(text) for text in inlined] == [description, worker]


def test_hostile_texts_make_no_elements(given):
    hostile = given[0] | dict.fromkeys(("summary", "title", "source", "version"), HOSTILE)
    assert Elements(page(hostile, HOSTILE)).elements == Elements(page(*given)).elements


def test_nothing_points_outside(given):
    text = page(*given)
    without_names = re.sub(r"http://www.w3.org/[\w/]+", "", text)
    assert not re.search(r"https?:|//[\w-]+\.\w|@import|url\((?!#)", without_names)
    loading = {"src", "href", "action", "data", "poster", "srcset"}
    found = [(tag, a) for tag, a in Elements(text).elements if loading & set(a)]
    assert found == [("link", {"rel": "icon", "href": "data:,"})]
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1]
    assert "default-src 'none'" in policy
    assert "connect-src" not in policy


def test_a_number_that_json_has_no_word_for_is_refused(given):
    run = given[0]["run"] | {"horizon": float("inf")}
    with pytest.raises(ValueError, match="JSON"):
        page(given[0] | {"run": run}, "")
