"""``attdyn run`` and ``attdyn compare``: training, written with its pictures, whole or not."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamics.cli import arguments, command_checkpoint, report
from dynamics.registry import FULL
from dynamics.results.outcome import INTERRUPTED
from dynamics.validation import InvalidRequest, integer

if TYPE_CHECKING:
    from dynamics.cli.command_request import Asked
    from dynamics.registry import DefaultRun, System
    from dynamics.results.comparison import Comparison
    from dynamics.results.storage import Result
    from dynamics.results.trajectory import Trajectory

EXPECTATION = {
    "tolerance": "of the spectral, truncated or auto expectation (default 1e-10)",
    "dropped": "probability that a truncation leaves out (default: by the tolerance, at the start)",
}
COORDINATES = (
    "of the reduced problem: classes of equal entries, linear (directions of the smallest linear "
    "space), or auto (default)"
)
BACKEND = "of the reduced problem: arrays (JAX), numba, or auto (default: numba from 2.5e6 steps)"
SAMPLING_HELP = {"samples": "N of {}", "seed": "of {} (default 0)"}


def flags(parser: arguments.Parser, command: str, system: System) -> None:
    """Flags beside the parameters."""
    default_run = system.default_runs[command]
    run = parser.add_argument_group("run")
    number: dict[str, Any] = {"type": arguments.value, "metavar": "X"}
    rates: dict[str, Any] = {"type": arguments.values, "metavar": "X"}
    run.add_argument(
        "--eta",
        **rates,
        help="learning rate, or where there are groups of parameters one for each, as 0.02,0.01 "
        f"(default {default_run.eta})"
        + (
            "; with --time: gradient descent at these is laid over the flow" if system.flows else ""
        ),
    )
    run.add_argument("--steps", **number, help=f"steps (default {default_run.steps})")
    run.add_argument("--record", **number, help="record every so many steps, or 'log' (default)")
    flow = "gradient flow to this time, instead of steps" if system.flows else "no flow here"
    run.add_argument("--time", **number, help=flow)
    run.add_argument("--rtol", **number, help="tolerance of the flow (default 1e-8)")
    if system.expectations:
        run.add_argument(
            "--expectation",
            metavar="X",
            help=f"of the reduced problem: {' or '.join(system.expectations)} (default)",
        )
    if "coordinates" in system.reduced_options:
        run.add_argument("--coordinates", metavar="X", help=COORDINATES)
        run.add_argument("--backend", metavar="X", help=BACKEND)
    usual = "population" if command == "compare" else "run the reduced one"
    run.add_argument("--full", metavar="X", help=f"{' or '.join(FULL)} (default: {usual})")
    options = {
        name: meaning for name, meaning in EXPECTATION.items() if name in system.expectation_options
    }
    drawn = {name: meaning.format(system.sampling_hint) for name, meaning in SAMPLING_HELP.items()}
    for name, meaning in (options | drawn).items():
        run.add_argument(f"--{name}", **number, help=meaning)
    everywhere = (
        f" ({', '.join(system.sampling_options)}: of every problem)"
        if system.sampling_options
        else ""
    )
    real = parser.add_argument_group(f"with --full empirical{everywhere}")
    if command == "compare":
        real.add_argument(
            "--seeds", **number, help=f"runs: seed, seed + 1, ... (default {_usual(system)})"
        )
    for name, meaning in system.empirical_options.items():
        real.add_argument(f"--{name}", **number, help=meaning)
    parser.add_argument("--out", metavar="DIR", help=f"result (default results/{command}-SYSTEM)")
    parser.add_argument(
        "--resume", action="store_true", help="go on with an interrupted run of gradient descent"
    )
    parser.add_argument(
        "--checkpoint", metavar="FILE", help="state of the run under way (default beside --out)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    parser.add_argument("--print_config", action="store_true", help="print the TOML and stop")


@dataclass(frozen=True)
class Settings:
    """A request of ``run`` or ``compare``, checked before anything is compiled.

    Attributes
    ----------
    asked : Asked
    full : str or None
        Which full problem.
    parameters : Parameters
    how : mapping
        ``eta``, ``steps``, ``record``.
    out : Path
    kept : Kept or None
        The checkpoint; None for a flow.
    """

    asked: Asked
    full: str | None
    parameters: Any
    how: Mapping[str, Any]
    out: Path
    kept: command_checkpoint.Kept | None

    @property
    def default_run(self) -> DefaultRun:
        """What is run by default."""
        return default_run(self.asked, self.full)

    @property
    def options(self) -> dict[str, Any]:
        """Options of problems: what was given, with the run along which a closure is looked at."""
        given = dict(self.asked.flags)
        if "time" in given:
            given.pop("eta", None)
            return given
        return given | {name: self.how[name] for name in ("eta", "steps")}

    def reduced(self) -> Any:
        """The reduced problem; on as many samples as the empirical one where they share seeds."""
        system, given = self.asked.system, self.options
        if self.full == "empirical" and "samples" in system.sampling_options:
            given.setdefault("samples", self.default_run.samples)
        return system.problem(self.parameters, None, given)

    def partners(self) -> list[Any]:
        """The reduced problems beside the full ones: one, or one for each seed it draws from."""
        if not _own_seeds(self.asked.system, self.full):
            return [self.reduced()]
        system, given = self.asked.system, {"samples": self.default_run.samples}
        given |= self.options
        return [system.problem(self.parameters, None, given | {"seed": s}) for s in self._seeds()]

    def _seeds(self) -> range:
        first = integer("seed", self.asked.flags.get("seed", 0), at_least=0)
        return range(first, first + seeds(self.asked))

    def fulls(self) -> list[Any]:
        """The full problems: one, or one for each seed."""
        system, given = self.asked.system, self.options
        if self.full != "empirical":
            return [system.problem(self.parameters, self.full, given)]
        options = {"samples": self.default_run.samples} | dict(given)
        return [
            system.problem(self.parameters, self.full, options | {"seed": seed})
            for seed in self._seeds()
        ]


def default_run(asked: Asked, full: str | None) -> DefaultRun:
    """What a command does when nothing else is asked for."""
    return asked.system.default_runs["empirical" if full == "empirical" else asked.command]


def seeds(asked: Asked) -> int:
    """Runs of the empirical problem."""
    usual = _usual(asked.system) if asked.command == "compare" else 1
    return integer("seeds", asked.flags.get("seeds", usual), at_least=1, at_most=1000)


def _own_seeds(system: System, full: str | None) -> bool:
    """Whether each seed of the full problem has a reduced run of its own."""
    return full == "empirical" and "seed" in system.sampling_options


def _usual(system: System) -> int:
    """Seeds of a comparison: one, where the reduced run is of that seed and no other."""
    return 1 if _own_seeds(system, "empirical") else 3


def settings(asked: Asked) -> Settings:
    """Check a request.

    Raises
    ------
    InvalidRequest
        In one line.
    """
    from dynamics.results.storage import check_writable

    given = asked.flags
    full = given.get("full", "population" if asked.command == "compare" else None)
    if full not in (None, *FULL):
        arguments.unknown("full problem", str(full), FULL)
    _check_meaning(asked, full)
    usual = default_run(asked, full)
    parameters = asked.parameters(usual.parameters)
    how = {
        "eta": given.get("eta", usual.eta),
        "steps": given.get("steps", usual.steps),
        "record": given.get("record", "log"),
    }
    _check_time(asked, how)
    out = Path(str(given.get("out", f"results/{asked.command}-{asked.system.name}")))
    check_writable(out)
    many = seeds(asked) if full == "empirical" else 1
    alone = many if _own_seeds(asked.system, full) else 1
    kept = command_checkpoint.kept(asked.command, out, given, many, alone)
    return Settings(asked, full, parameters, how, out, kept)


def _check_meaning(asked: Asked, full: str | None) -> None:
    """Refuse a flag that would change nothing."""
    given, realistic, drawn = asked.flags, full == "empirical", asked.system.sampling_options
    sampled = given.get("expectation") == "sampled" and (asked.command == "compare" or not full)
    if realistic and sampled and not drawn:
        raise InvalidRequest(
            "expectation='sampled' and full='empirical' would share samples and seed; "
            "expectation can be exact, truncated, spectral or auto"
        )
    for name in given.keys() & SAMPLING_HELP.keys() - {*drawn}:
        if not realistic and not sampled:
            raise InvalidRequest(f"{name} is of {asked.system.sampling_hint}")
    for name in given.keys() & {"seeds", *asked.system.empirical_options} - {*drawn}:
        if not realistic:
            raise InvalidRequest(f"{name} is of --full empirical")
    for name in given.keys() & {"expectation", *EXPECTATION}:
        if full and asked.command == "run":
            raise InvalidRequest(f"{name} is of the reduced problem, and --full {full} has none")


def _check_time(asked: Asked, how: dict[str, Any]) -> None:
    """Check steps and rates, or the time of a flow, which excludes them."""
    given = asked.flags
    if "time" not in given:
        from dynamics.training.settings import check_settings

        if "rtol" in given:
            raise InvalidRequest("rtol is of the flow, and there is no --time")
        check_settings(**how)
        return
    from dynamics.training.settings import check_flow

    check_flow(given["time"], given.get("rtol", 1e-8), asked.system.flows)
    if given.get("batch"):
        raise InvalidRequest("batch is of gradient descent and time of the flow; give one")
    for name in ("steps", "record"):
        if name in given:
            raise InvalidRequest(f"{name} is of gradient descent and time of the flow; give one")
    if "eta" in given and asked.command == "compare":
        raise InvalidRequest("eta is of gradient descent and time of the flow; give one")
    if "eta" in given:
        from dynamics.analysis.step_size_convergence import check_rates

        rates = how["eta"]
        how["eta"] = check_rates(rates if isinstance(rates, list) else [rates], given["time"])


def execute(asked: Asked) -> int:
    """Run, write, print; returns the exit code."""
    made = settings(asked)
    if asked.flags.get("print_config"):
        return _print_config(made)
    if made.kept is None:
        return _deliver(made, _flow(made))
    with made.kept.in_use(asked.flags.get("resume", False)):
        return _deliver(made, _descent(made))


def _flow(made: Settings) -> Result:
    time, rtol = made.asked.flags["time"], made.asked.flags.get("rtol", 1e-8)
    if made.asked.command == "compare":
        return _compared(made, time=time, rtol=rtol)
    problem = made.fulls()[0] if made.full else made.reduced()
    if "eta" in made.asked.flags:
        from dynamics.analysis.step_size_convergence import overlay

        return overlay(problem, time, made.how["eta"], rtol)
    from dynamics.training.flow import flow

    return _looked_at(problem, flow(problem, time, rtol))


def _looked_at(problem: Any, run: Trajectory) -> Trajectory:
    """Say on stderr where a reduced run leaves what it was reduced to; returns the run."""
    leaving = getattr(problem, "leaving", None)
    told = leaving(run) if leaving is not None else ""
    if told:
        print(f"attdyn: {told}", file=sys.stderr)
    return run


def _compared(made: Settings, **how: Any) -> Comparison:
    """Both problems run; a deviation beyond rounding is explained on stderr where that can be."""
    from dynamics.analysis.comparison import compare

    partners, fulls = made.partners(), made.fulls()
    result = compare(partners, fulls, **how)
    if made.full == "population" and hasattr(fulls[0], "hessian_product"):
        from dynamics.analysis.transverse_growth import explanation

        told = explanation(result, partners[0], fulls[0])
        if told:
            print(f"attdyn: {told}", file=sys.stderr)
    return result


def _descent(made: Settings) -> Result:
    assert made.kept is not None
    if made.asked.command == "compare":
        return _compared(made, **made.how, checkpoint=made.kept.place)
    from dynamics.training.gradient_descent import descend

    problem = made.fulls()[0] if made.full else made.reduced()
    return _looked_at(problem, descend(problem, **made.how, checkpoint=made.kept.place))


def _print_config(made: Settings) -> int:
    """The request as TOML; defaults that follow other parameters are left out to follow them."""
    given, fields = made.asked.flags, dataclasses.fields(made.parameters)
    system = made.asked.system
    names = [f.name for f in fields if f.default not in (None, ())]
    shown = {name: getattr(made.parameters, name) for name in names}
    shown |= {f.name: given[f.name] for f in fields if f.name in given}
    if system.expectations and (made.full is None or made.asked.command == "compare"):
        shown["expectation"] = given.get("expectation", "auto")
    if made.full:
        shown["full"] = made.full
    others = [
        *EXPECTATION,
        *SAMPLING_HELP,
        "seeds",
        "coordinates",
        "backend",
        *system.empirical_options,
    ]
    shown |= {name: given[name] for name in others if name in given}
    flow = {name: given[name] for name in ("time", "rtol", "eta") if name in given}
    print(arguments.toml_text(shown | (flow if "time" in given else dict(made.how))))
    return 0


def _deliver(made: Settings, result: Result) -> int:
    """Write result, pictures and summary, whole or not at all; print; choose the exit code."""
    from dynamics import plotting
    from dynamics.results import storage

    document = report.document(result)
    with storage.replacing(made.out) as folder:
        storage.write_groups(result, folder / storage.INSIDE)
        pictures = [plotting.write(axes, folder / name) for name, axes in report.pictures(result)]
        document["files"] = [picture.name for picture in pictures]
        summary = json.dumps(document, indent=2, allow_nan=False)
        (folder / "summary.json").write_text(summary + "\n", encoding="utf-8")
    if made.kept is not None:
        made.kept.close(result.interrupted)
    if made.asked.flags.get("json"):
        print(summary)
    else:
        print(report.table(made.asked.system, result))
        for picture in pictures:
            print(f"picture  {made.out / picture.name}")
        print(f"result   {made.out}")
    end = result.outcome
    if end.failed:
        print(f"attdyn: {end}", file=sys.stderr)
    return 1 if end.failed else 130 if end.kind == INTERRUPTED else 0
