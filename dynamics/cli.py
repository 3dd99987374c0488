"""The command line: ``attdyn COMMAND SYSTEM [--name value ...]``, or ``python -m dynamics``.

Results go to stdout, messages to stderr. Exit codes: 0 done, 1 the run failed (what it had is
written), 2 the request is wrong, 130 interrupted with partial results kept. An interrupted run of
gradient descent goes on with ``--resume``.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pydantic

from dynamics import report, request, resume
from dynamics.interruption import termination
from dynamics.outcome import INTERRUPTED
from dynamics.systems import load_system, system_names
from dynamics.validation import InvalidRequest

if TYPE_CHECKING:
    from dynamics.store import Result
    from dynamics.systems import System

COMMANDS = {
    "systems": "list the systems there are",
    "derive": "print what sympy derives: text, LaTeX, or the compiled source",
    "run": "gradient descent on one problem, with its events",
    "compare": "the reduced and the full problem side by side",
}
FORMS = ("text", "latex", "source")
EXPECTATION_SETTINGS = {
    "tolerance": "of the spectral, truncated or auto expectation (default 1e-10)",
    "dropped": "probability that a truncation leaves out for good; else it refines itself",
    "samples": "of the sampled expectation (default 10,000)",
    "seed": "of the sampled expectation (default 0)",
}
USAGE = "attdyn COMMAND [SYSTEM] [--name value ...]"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; every wrong request ends here, as one line and exit code 2.

    Parameters
    ----------
    arguments : sequence of str, optional
        Words after the program's name.

    Returns
    -------
    int
        Exit code.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with termination():
            code = _dispatch(words)
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader has gone (attdyn derive ... | head): the rest goes nowhere, quietly.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except pydantic.ValidationError as error:
        for problem in error.errors():
            print(f"attdyn: {_one_line(problem)}", file=sys.stderr)
            break
        return 2
    except InvalidRequest as error:
        print(f"attdyn: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("attdyn: interrupted", file=sys.stderr)
        return 130


def _one_line(problem: Any) -> str:
    cause = problem.get("ctx", {}).get("error")
    return str(cause or f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}")


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        print(f"usage: {USAGE}\n\n{_program()}\n\ncommands:")
        for name, meaning in COMMANDS.items():
            print(f"  {name:<10}{meaning}")
        print(
            f"\nsystems: {', '.join(system_names())}; attdyn COMMAND SYSTEM --help lists the flags"
        )
        return 0 if words else 2
    command = words.pop(0)
    if command == "--version":
        from importlib import metadata

        print(f"attdyn {metadata.version('attdyn')}")
        return 0
    if command not in COMMANDS:
        request.unknown("command", command, list(COMMANDS))
    if command == "systems":
        return _systems(words)
    if not words or words[0] in ("-h", "--help"):
        print(f"usage: attdyn {command} SYSTEM [--name value ...]\n\n{COMMANDS[command]}")
        print(f"\nsystems: {', '.join(system_names())}")
        return 0 if words else 2
    name = words.pop(0)
    if name not in system_names():
        request.unknown("system", name, system_names())
    system = load_system(name)
    parser = _parser(command, system)
    given, extra = parser.parse_known_args(request.joined(words))
    options = {action.dest for action in parser._actions if action.dest != "help"}
    for word in extra:
        if word.startswith("--"):
            request.unknown("flag", word.split("=")[0], [f"--{o}" for o in sorted(options)])
        raise InvalidRequest(f"word {word!r} is not expected; flags look like --D 16")
    chosen = vars(given)
    if chosen.get("config"):
        written = request.read_toml(chosen["config"], sorted(options - {"config"}))
        for switch in ("json", "prove", "print_config", "resume"):
            if not isinstance(written.get(switch, False), bool):
                raise InvalidRequest(f"{switch} in {chosen['config']} can be true or false")
        chosen = {name: entry for name, entry in written.items() if entry is not False} | chosen
    run = {"derive": _derive, "run": _run, "compare": _compare}[command]
    return run(system, chosen)


def _program() -> str:
    return "Exact, low-dimensional training dynamics of attention models."


def _parser(command: str, system: System) -> request.Parser:
    parser = request.Parser(
        prog=f"attdyn {command} {system.name}",
        description=f"{system.title}: {COMMANDS[command]}.",
        argument_default=request.SUPPRESS,
    )
    law = parser.add_argument_group("parameters")
    for parameter in dataclasses.fields(system.Parameters):
        row = system.notation[parameter.name]
        default = "" if parameter.default is None else f" (default {parameter.default})"
        text = f"{row.meaning}{default}".replace("%", "%%")
        law.add_argument(f"--{parameter.name}", type=request.value, metavar="X", help=text)
    parser.add_argument("--config", metavar="FILE", help="flat TOML file of these names")
    if command == "derive":
        parser.add_argument("--as", metavar="FORM", help=f"{', '.join(FORMS)} (default text)")
        parser.add_argument("--prove", action="store_true", help="check the lemmas by computation")
        return parser
    showcase = system.showcases[command]
    run = parser.add_argument_group("run")
    number: dict[str, Any] = {"type": request.value, "metavar": "X"}
    rates: dict[str, Any] = {"type": request.values, "metavar": "X"}
    run.add_argument(
        "--eta",
        **rates,
        help=f"learning rate, or one for v and one for A as 0.02,0.01 (default {showcase.eta}); "
        "with --time: gradient descent at these is laid over the flow",
    )
    run.add_argument("--steps", **number, help=f"steps (default {showcase.steps})")
    run.add_argument("--record", **number, help="record every so many steps, or 'log' (default)")
    run.add_argument(
        "--expectation",
        metavar="X",
        help="exact, truncated, spectral, sampled or auto (default)",
    )
    for name, meaning in EXPECTATION_SETTINGS.items():
        run.add_argument(f"--{name}", **number, help=meaning)
    run.add_argument("--time", **number, help="gradient flow to this time, instead of steps")
    run.add_argument("--rtol", **number, help="tolerance of the flow (default 1e-8)")
    if command == "run":
        run.add_argument("--full", metavar="X", help="population: run the full problem instead")
    parser.add_argument("--out", metavar="DIR", help=f"result (default results/{command}-SYSTEM)")
    parser.add_argument(
        "--resume", action="store_true", help="go on with an interrupted run of gradient descent"
    )
    parser.add_argument(
        "--checkpoint", metavar="FILE", help="state of the run under way (default beside --out)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    parser.add_argument("--print_config", action="store_true", help="print the TOML and stop")
    return parser


def _systems(words: list[str]) -> int:
    if words in (["-h"], ["--help"]):
        print(f"usage: attdyn systems\n\n{COMMANDS['systems']}")
        return 0
    if words:
        raise InvalidRequest(f"word {words[0]!r} is not expected; attdyn systems takes no words")
    for name in system_names():
        print(f"{name:<24}{load_system(name).title}")
    return 0


def _parameters(system: System, chosen: Mapping[str, Any], default: Mapping[str, Any]) -> Any:
    names = {parameter.name for parameter in dataclasses.fields(system.Parameters)}
    given = {name: entry for name, entry in chosen.items() if name in names}
    return system.Parameters(**(given if given.keys() & default.keys() else dict(default) | given))


def _derive(system: System, chosen: Mapping[str, Any]) -> int:
    form = chosen.get("as", "text")
    if form not in FORMS:
        request.unknown("form", str(form), FORMS)
    symbolic = "p" not in chosen and form != "source"
    parameters = _parameters(system, chosen, {})
    if form == "source":
        print(system.ReducedPopulation(parameters).source)
    else:
        from theory.rendering import as_latex, as_text

        render = as_text if form == "text" else as_latex
        for reduction in system.derivations(None if symbolic else parameters).values():
            print(render(reduction))
    if chosen.get("prove"):
        print(report.proofs(system.claims))
    return 0


def _run_settings(system: System, command: str, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """The request of ``run`` or ``compare``, checked before anything is compiled."""
    from dynamics.descend import check_settings
    from dynamics.store import check_writable

    showcase = system.showcases[command]
    settings = {
        "parameters": _parameters(system, chosen, showcase.parameters),
        "eta": chosen.get("eta", showcase.eta),
        "steps": chosen.get("steps", showcase.steps),
        "record": chosen.get("record", "log"),
        "expectation": chosen.get("expectation", "auto"),
        "out": Path(str(chosen.get("out", f"results/{command}-{system.name}"))),
        "full": chosen.get("full"),
        "how": {name: chosen[name] for name in EXPECTATION_SETTINGS if name in chosen},
    }
    if "time" not in chosen:
        check_settings(settings["eta"], settings["steps"], settings["record"])
    else:
        from dynamics.flow import check_flow

        check_flow(chosen["time"], chosen.get("rtol", 1e-8))
        for name in ("steps", "record"):
            if name in chosen:
                raise InvalidRequest(
                    f"{name} is of gradient descent and time of the flow; give one"
                )
        if "eta" in chosen and command == "compare":
            raise InvalidRequest("eta is of gradient descent and time of the flow; give one")
        if "eta" in chosen:
            from dynamics.overlay import check_rates

            given = settings["eta"]
            settings["eta"] = check_rates(
                given if isinstance(given, list) else [given], chosen["time"]
            )
    if settings["full"] not in (None, "population"):
        request.unknown("full problem", str(settings["full"]), ("population",))
    check_writable(settings["out"])
    settings["checkpoint"] = resume.kept(command, settings["out"], chosen)
    return settings


def _print_config(settings: Mapping[str, Any], chosen: Mapping[str, Any]) -> int:
    """The request as TOML; defaults that follow other parameters are left out to follow them."""
    parameters = settings["parameters"]
    fields = dataclasses.fields(parameters)
    shown = {f.name: getattr(parameters, f.name) for f in fields if f.default is not None}
    shown |= {f.name: chosen[f.name] for f in fields if f.name in chosen}
    named = {name: settings[name] for name in ("expectation", "full") if settings[name]}
    flow = {name: chosen[name] for name in ("time", "rtol", "eta") if name in chosen}
    descent = {name: settings[name] for name in ("eta", "steps", "record")}
    named |= settings["how"]
    print(request.toml_text(shown | named | (flow if "time" in chosen else descent)))
    return 0


def _reduced(system: System, settings: Mapping[str, Any]) -> Any:
    expectation, how = settings["expectation"], settings["how"]
    return system.ReducedPopulation(settings["parameters"], expectation, **how)


def _run(system: System, chosen: Mapping[str, Any]) -> int:
    settings = _run_settings(system, "run", chosen)
    if chosen.get("print_config"):
        return _print_config(settings, chosen)
    from dynamics.descend import descend

    problem = (
        system.FullPopulation(settings["parameters"])
        if settings["full"]
        else _reduced(system, settings)
    )
    run: Result
    if "time" in chosen and "eta" in chosen:
        from dynamics.overlay import overlay

        run = overlay(problem, chosen["time"], settings["eta"], chosen.get("rtol", 1e-8))
    elif "time" in chosen:
        from dynamics.flow import flow

        run = flow(problem, chosen["time"], chosen.get("rtol", 1e-8))
    else:
        kept, made = settings["checkpoint"], {n: settings[n] for n in ("eta", "steps", "record")}
        with kept.in_use(chosen.get("resume", False)):
            run = descend(problem, **made, checkpoint=kept.place)
            return _deliver(system, run, settings, chosen)
    return _deliver(system, run, settings, chosen)


def _compare(system: System, chosen: Mapping[str, Any]) -> int:
    settings = _run_settings(system, "compare", chosen)
    if chosen.get("print_config"):
        return _print_config(settings, chosen)
    from dynamics.compare import compare

    full = system.FullPopulation(settings["parameters"])
    reduced = _reduced(system, settings)
    if "time" in chosen:
        tolerance = chosen.get("rtol", 1e-8)
        result = compare(reduced, full, time=chosen["time"], rtol=tolerance)
    else:
        kept, made = settings["checkpoint"], {n: settings[n] for n in ("eta", "steps", "record")}
        with kept.in_use(chosen.get("resume", False)):
            result = compare(reduced, full, **made, checkpoint=kept.place)
            return _deliver(system, result, settings, chosen)
    return _deliver(system, result, settings, chosen)


def _deliver(
    system: System, result: Result, settings: Mapping[str, Any], chosen: Mapping[str, Any]
) -> int:
    """Write result, pictures and summary, whole or not at all; print; choose the exit code."""
    from dynamics import plotting, store

    out: Path = settings["out"]
    document = report.document(result)
    with store.replacing(out) as folder:
        store.write_groups(result, folder / store.INSIDE)
        pictures = [plotting.write(axes, folder / name) for name, axes in report.pictures(result)]
        document["files"] = [picture.name for picture in pictures]
        summary = json.dumps(document, indent=2, allow_nan=False)
        (folder / "summary.json").write_text(summary + "\n", encoding="utf-8")
    if settings["checkpoint"]:
        settings["checkpoint"].close(result.interrupted)
    if chosen.get("json"):
        print(summary)
    else:
        print(report.table(system, result))
        for picture in pictures:
            print(f"picture  {out / picture.name}")
        print(f"result   {out}")
    end = result.outcome
    if end.failed:
        print(f"attdyn: {end}", file=sys.stderr)
    return 1 if end.failed else 130 if end.kind == INTERRUPTED else 0
