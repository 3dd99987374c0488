"""Every flag of every command is explained to someone who has not read the program."""

import re

import pytest

import dynamics
from dynamics.cli import COMMANDS, parser_of
from dynamics.library import system_names

PARSERS = [
    (command, name)
    for command, about in COMMANDS.items()
    for name in (system_names() if about.subject == "SYSTEM" else [None])
    if about.module
]


@pytest.mark.parametrize(("command", "name"), PARSERS)
def test_every_flag_says_what_it_is(command, name):
    parser = parser_of(command, name and dynamics.load_system(name))
    unclear = {}
    for action in parser._actions:
        text = action.help or ""
        without = re.sub(r"\(default[^)]*\)", "", text).strip()
        if len(without.split()) < 2 or without.startswith(("of ", "default")):
            unclear[action.dest] = text
    letters = set() if name is None else set(dynamics.load_system(name).notation)
    assert {flag: text for flag, text in unclear.items() if flag not in letters} == {}
    assert parser.description[0].isupper()
