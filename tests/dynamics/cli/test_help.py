"""Every flag of every command is explained to someone who has not read the program."""

import re

import pytest

import dynamics
from dynamics.cli import COMMANDS, main, parser_of
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


def test_the_first_page_says_the_words_that_the_commands_use(capsys):
    assert main(["--help"]) == 0
    page = capsys.readouterr().out
    for word in ("reduced", "full", "population", "empirical"):
        assert re.search(rf"^  {word} +\S+ \S+", page, re.MULTILINE)
    assert "attdyn compare positional_attention\n" in page


def test_the_help_says_which_run_is_made_without_flags():
    text = parser_of("compare", dynamics.load_system("positional_attention")).format_help()
    last = " ".join(text.split("\n\n")[-1].split())
    assert last == (
        "The showcase is --D 9 --C 3 --random_sets mixed; its law is the mixed one, a toy law in "
        "which no random set is all of one sign; the paper's law is --random_sets any. "
        "Defaults with --full empirical: --eta 0.02 --steps 10000 --samples 8000 --q 0.25."
    )


@pytest.mark.parametrize("name", system_names())
def test_a_run_whose_parameters_are_the_usual_ones_has_no_more_to_say(name):
    text = parser_of("run", dynamics.load_system(name)).format_help()
    usual = dynamics.load_system(name).default_runs["run"].parameters
    assert ("The showcase is --" in text) == bool(usual)
