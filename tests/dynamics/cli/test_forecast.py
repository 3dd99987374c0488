import shlex
from dataclasses import replace
from types import SimpleNamespace

import pytest

from dynamics.cli import forecast, main, train
from dynamics.cli.arguments import CommandRequest


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.01, "1 s"), (44.4, "44 s"), (600.0, "10 min"), (7200.0, "2 h"), (1e6, "12 days")],
)
def test_durations_have_two_digits(seconds, words):
    assert forecast.duration(seconds) == words


def test_a_long_run_says_that_the_flow_is_quicker(tmp_path, monkeypatch, capsys):
    def not_trained(*_):
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(train, "_trained", not_trained)
    words = ["run", "positional_attention", "--D=16", "--C=4", "--steps", "100000000", "--out=x"]
    assert main(words) == 130
    first = capsys.readouterr().err.splitlines()[0]
    assert "31 min of gradient descent are predicted" in first
    assert len(first) < 300
    command = first.split(": ")[-1]
    assert command.endswith("--time=2000000")
    assert main([*shlex.split(command)[1:], "--print_config"]) == 0
    captured = capsys.readouterr()
    assert (captured.err, captured.out.splitlines()[-1]) == ("", "time = 2000000")


def test_it_is_said_only_where_it_is_true(system):
    dear = replace(system, cost_model=lambda *_: 5e-3)
    problem = dear.ReducedPopulation(dear.Parameters(D=8, C=2))
    parameters, layout = problem.parameters, SimpleNamespace(size=60)
    large = SimpleNamespace(parameters=parameters, layout=layout, has_jacobian=False)
    descent = {"eta": 0.02, "steps": 100_000}

    def said(settings, problems=((problem, None),), system=dear, **flags):
        request = CommandRequest("run", flags, system)
        return bool(forecast.hint(request, problems, settings, {}))

    assert said(descent)
    assert not said({"time": 2000.0, "rtol": 1e-8})
    assert not said(descent | {"steps": 5000})  # 25 s
    assert not said(descent, system=system)  # cheap gradients
    assert not said(descent, system=replace(dear, cost_model=lambda *_: 5e-2))  # the flow is slow
    assert not said(descent, [(large, "population")])  # it differentiates often
    assert not said(descent, batch=10)
    assert not said(descent, resume=True)
