"""``attdyn run`` and ``attdyn compare``: training, with results and pictures in a folder."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamics.cli import arguments, files, folders, report
from dynamics.cli.arguments import CommandRequest, Parser, flag_text, toml_text, value, values
from dynamics.cli.picture_flags import add_picture_flags, picture_look, picture_name
from dynamics.cli.report import Beside, lay_beside
from dynamics.cli.rules import add_rule_flags, several_rules
from dynamics.results.outcome import TrainingWarning
from dynamics.system import FULL
from dynamics.validation import InvalidRequest, integer, unknown
from theory.update_rules import OPTIONS

if TYPE_CHECKING:
    from dynamics.default_runs import DefaultRun
    from dynamics.results.comparison import Comparison
    from dynamics.results.storage import Result
    from dynamics.system import System
    from dynamics.training.checkpoint import Checkpoint

EXPECTATION = {"tolerance": "accuracy of the spectral or auto expectation (default 1e-10)"}
REDUCED = {
    "coordinates": "those of the reduced problem: classes of equal entries, linear (directions "
    "of the smallest linear space), or auto (default)",
}
SAMPLING_HELP = {"samples": "number N of samples, of {}", "seed": "random seed of {} (default 0)"}


def add_flags(parser: Parser) -> None:
    """Add the flags except the parameters of the system."""
    command, system = parser.command, parser.system
    default_run = system.default_runs[command]
    parser.epilog = arguments.default_text(default_run, system.default_runs["empirical"])
    flow = "; with --time: gradient descent at these is laid over the flow" if system.flows else ""
    rates = "learning rate, or one for each group of parameters, as 0.02,0 "
    default = "population" if command == "compare" else "train the reduced problem"
    views = f"train every entry, on the law of the data or on samples: {' or '.join(FULL)}"
    words = {"full": f"{views} (default: {default})"}
    if system.expectations:
        choices = " or ".join(system.expectations)
        words |= {"expectation": f"how the reduced problem averages over data: {choices} (default)"}
    if system.model is not None:
        words |= REDUCED
    numbers = {
        "steps": f"number of steps of gradient descent (default {default_run.steps})",
        "record": "interval of records in steps, or logarithmic spacing: log (default)",
        "time": "gradient flow to this time (eta * steps), instead of steps"
        if flow
        else "no flow here",
        "rtol": "relative tolerance of the flow (default 1e-8)" if flow else "no flow here",
    }
    numbers |= {
        name: EXPECTATION[name] for name in EXPECTATION if name in system.expectation_options
    }
    numbers |= {
        name: meaning.format(system.sampling_hint) for name, meaning in SAMPLING_HELP.items()
    }
    parser.add_flags({"eta": f"{rates}(default {default_run.eta}){flow}"}, values, group="run")
    add_rule_flags(parser, default_run)
    parser.add_flags(numbers, value, group="run")
    parser.add_flags(words, group="run")
    seeds = {"seeds": f"number of runs: seed, seed + 1, ... (default {_default_seeds(system)})"}
    empirical = (seeds if command == "compare" else {}) | dict(system.empirical_options)
    group = "with --full empirical"
    if system.sampling_options:
        group += f" ({', '.join(system.sampling_options)}: of every problem)"
    parser.add_flags(empirical, value, group=group)
    default = f"results/{command}-{system.name}"
    out = f"folder of the result (default {default}, or {default}-2, ... beside another request's)"
    parser.add_flags({"out": out}, metavar="DIR")
    paths = {
        "checkpoint": "file with the state of a run under way (default beside --out)",
        "csv": "also a table: time (eta * steps), step, scalars, risk, observables of each record",
    }
    parser.add_flags(paths, metavar="FILE")
    add_picture_flags(parser)
    switches = {
        "force": "overwrite the result of another request, and the file of --csv",
        "resume": "go on with an interrupted run of gradient descent",
        "print_config": "print these flags as TOML, for --config, and stop",
    }
    parser.add_switches(switches)


def execute(request: CommandRequest) -> int:
    """Train, write and print the results, and return the exit code."""
    flags, system = request.flags, request.system
    full = flags.get("full", "population" if request.command == "compare" else None)
    if full not in (None, *FULL):
        raise unknown("full problem", str(full), FULL)
    _check_meaning(request, full)
    picture_name(flags, "picture")
    with picture_look(flags):  # checks the width of pictures
        pass
    default = system.default_runs["empirical" if full == "empirical" else request.command]
    parameters = parameters_of(request, default)
    settings = _settings(request, default)
    entries = _entries(request, full, parameters, settings)
    plain = {"command": request.command, "system": system.name, "model": system.digests, **entries}
    plain = json.loads(files.json_text(plain))
    out = folders.result_folder(flags, Path(f"results/{request.command}-{system.name}"), plain)
    if table := files.table_path(flags):
        _outside(table, out, "csv")
    seeds = _seeds(request, full)
    # If the reduced problem has a random start or samples, each seed has its own reduced run.
    reduced_seeds = seeds if "seed" in system.sampling_options else [{}]
    checkpoint = CommandCheckpoint()
    if not isinstance(settings.get("rule"), list):
        checkpoint = command_checkpoint(request, out, len(seeds), len(reduced_seeds))
    if flags.get("print_config"):
        files.print_result({}, {}, toml_text(entries))
        return 0
    options = ({"samples": default.samples} if full == "empirical" else {}) | dict(flags)
    # The problems are constructed first, so that a refused request does not change the checkpoint.
    fulls = [system.problem(parameters, full, options | seed) for seed in seeds]
    alone = request.command == "run"
    reduced = [system.problem(parameters, None, options | s) for s in reduced_seeds if not alone]
    showcase = _showcase_remark(request, default)
    with checkpoint.in_use(flags.get("resume", False)):
        if alone:
            result = _trained(fulls[0], settings, checkpoint.file)
            return _deliver(request, out, plain, result, checkpoint, showcase)
        result, wrong = _compared(reduced, fulls, settings, checkpoint.file)
        beside, usual = None, system.Parameters(**default.parameters)
        if default.contrast and parameters == usual and not result.interrupted:
            train = partial(_trained, settings=settings)
            beside = lay_beside(system, default.contrast, result.reduced, options, train)
        code = _deliver(request, out, plain, result, checkpoint, showcase, beside)
        return code or int(wrong)


def parameters_of(request: CommandRequest, default: DefaultRun) -> Any:
    """Parameters of the system: those of the default run, overridden by the flags.

    Raises InvalidRequest if a flag is invalid or conflicts with a parameter of the default run.
    """
    showcase = default.beside(request.entries)
    try:
        return request.system.Parameters(**showcase, **request.entries)
    except InvalidRequest as error:
        for name, value in request.entries.items():
            if f"{name}={value!r} is not a number" in str(error) and re.search("[,:]", value):
                raise InvalidRequest(f"{name}={value!r} needs attdyn sweep, or one value") from None
        own = {n: v for n, v in showcase.items() if re.search(rf"\b{n}=", str(error))}
        if not own:
            raise
        raise InvalidRequest(f"{error} (the showcase sets {flag_text(own)})") from None


def _showcase_remark(request: CommandRequest, default: DefaultRun) -> str:
    """Sentence on the parameters that the default run sets, or "" if it sets none."""
    showcase = default.beside(request.entries)
    said = [default.remarks[name] for name in showcase if name in default.remarks]
    return "; ".join([f"{flag_text(showcase)}, where no flag is given", *said]) if showcase else ""


def _check_meaning(request: CommandRequest, full: str | None) -> None:
    """Refuse a flag that has no effect in the request."""
    flags, system, empirical = request.flags, request.system, full == "empirical"
    reduced = request.command == "compare" or not full
    sampled = reduced and flags.get("expectation") == "sampled"
    if empirical and sampled and not system.sampling_options:
        raise InvalidRequest(
            "expectation='sampled' and full='empirical' would share samples and seed; "
            "expectation can be exact, spectral or auto"
        )
    wrong: dict[str, str] = {}
    if not empirical:
        others = {"seeds", *system.empirical_options} - {*system.sampling_options}
        wrong |= dict.fromkeys(others, "--full empirical")
    if not empirical and not sampled:
        others = SAMPLING_HELP.keys() - {*system.sampling_options}
        wrong |= dict.fromkeys(others, system.sampling_hint)
    if not reduced:
        text = f"the reduced problem; --full {full} trains the full one"
        wrong |= dict.fromkeys(("expectation", *EXPECTATION), text)
    for name in flags.keys() & wrong.keys():
        raise InvalidRequest(f"{name} needs {wrong[name]}")


def _settings(request: CommandRequest, default: DefaultRun) -> dict[str, Any]:
    """Checked settings of gradient descent (``eta``, ``steps``, ``record``) or of a flow.

    The settings of a flow are ``time`` and ``rtol``; a list ``eta`` requests gradient descent in
    addition, for comparison. With several update rules, ``rule`` and ``eta`` are lists.
    """
    flags = request.flags
    if "time" not in flags:
        from dynamics.training.rules import requested
        from dynamics.training.settings import check_settings

        if "rtol" in flags:
            raise InvalidRequest("rtol needs --time: rtol is the tolerance of a flow")
        settings = {"eta": default.eta, "steps": default.steps, "record": "log"}
        settings |= {name: flags[name] for name in settings if name in flags}
        check_settings(**settings)
        name = flags.get("rule")
        several = request.command == "run" and isinstance(name, str) and re.search("[:,]", name)
        return settings | (several_rules if several else requested)(flags, default)
    from dynamics.analysis.overlay import check_rates
    from dynamics.training.settings import check_flow

    flow = {"time": flags["time"], "rtol": flags.get("rtol", 1e-8)}
    check_flow(**flow, flows=request.system.flows)
    excluded = ["steps", "record", *OPTIONS] + (["eta"] if request.command == "compare" else [])
    for name in [*(["batch"] if flags.get("batch") else []), *excluded]:
        if name in flags:
            raise InvalidRequest(f"give {name} (descent) or time (flow), not both")
    if "eta" not in flags:
        return flow
    etas = flags["eta"] if isinstance(flags["eta"], list) else [flags["eta"]]
    return flow | {"eta": check_rates(etas, flags["time"])}


def _seeds(request: CommandRequest, full: str | None) -> list[dict[str, int]]:
    """Options of each full problem: ``seed`` for the empirical problem, none for other problems."""
    if full != "empirical":
        return [{}]
    default = _default_seeds(request.system) if request.command == "compare" else 1
    count = integer("seeds", request.flags.get("seeds", default), at_least=1, at_most=1000)
    first = integer("seed", request.flags.get("seed", 0), at_least=0)
    return [{"seed": seed} for seed in range(first, first + count)]


def _default_seeds(system: System) -> int:
    """Default number of seeds of a comparison, 1 if each seed has its own reduced run."""
    return 1 if "seed" in system.sampling_options else 3


def _trained(
    problem: Any, settings: Mapping[str, Any], checkpoint: Checkpoint | None = None
) -> Any:
    """Train one problem by gradient descent or the flow, or overlay several runs of it."""
    from dynamics.analysis.overlay import overlay
    from dynamics.training.descent import descend
    from dynamics.training.flow import flow

    if isinstance(settings.get("rule"), list) or {"time", "eta"} <= settings.keys():
        return overlay(problem, **settings)
    if "time" in settings:
        return flow(problem, **settings)
    return descend(problem, **settings, checkpoint=checkpoint)


def _compared(
    reduced: list[Any], fulls: list[Any], settings: Mapping[str, Any], file: Checkpoint | None
) -> tuple[Comparison, bool]:
    """Train and compare the problems; also return whether the reduction is wrong."""
    from dynamics.analysis.comparison import compare

    how = settings if "time" in settings else {**settings, "checkpoint": file}
    with warnings.catch_warnings():
        # The warning of a wrong reduction is dropped, since `explanation` gives its reason below.
        warnings.filterwarnings("ignore", "the reduction does not hold", TrainingWarning)
        result = compare(reduced, fulls, **how)
    if held := result.full.settings.get("held"):
        print(f"attdyn: the full run freezes {held} entries that never move", file=sys.stderr)
    known = fulls[0].view == "full population" and hasattr(reduced[0], "realization")
    if result.interrupted or not known:
        return result, False
    from dynamics.analysis.comparison import WRONG, explanation
    from dynamics.training.rules import rule_of, under

    rule, stages = settings.get("rule", "gd"), settings.get("stages")
    first, full = (under(each, rule_of(each, rule), stages) for each in (reduced[0], fulls[0]))
    remark = explanation(result, first, full)
    if remark:
        print(f"attdyn: {remark}", file=sys.stderr)
    return result, remark.startswith(WRONG)


def _entries(
    request: CommandRequest, full: str | None, parameters: Any, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Name -> value of every setting of a request, except defaults derived from other settings."""
    flags, system = request.flags, request.system
    fields = dataclasses.fields(parameters)
    entries = {f.name: getattr(parameters, f.name) for f in fields if f.default not in (None, ())}
    entries |= request.entries
    if system.expectations and (full is None or request.command == "compare"):
        entries["expectation"] = flags.get("expectation", "auto")
    if full:
        entries["full"] = full
    others = [*EXPECTATION, *SAMPLING_HELP, "seeds", *REDUCED, *system.empirical_options]
    if "time" in settings:
        others += ["time", "rtol", "eta"]
    entries |= {name: flags[name] for name in (*others, *OPTIONS) if name in flags}
    rated = isinstance(settings.get("rule"), list)
    usual = ("steps", "record") if rated else ("eta", "steps", "record")
    return entries if "time" in settings else entries | {n: settings[n] for n in usual}


def _deliver(
    request: CommandRequest,
    out: Path,
    plain: dict[str, Any],
    result: Result,
    checkpoint: CommandCheckpoint,
    showcase: str,
    beside: Beside | None = None,
) -> int:
    """Write and print a result, with its summary and pictures, and return the exit code."""
    document, lines = report.document(result), [report.table(request.system, result)]
    # An interrupted run draws no pictures; the resumed run draws them.
    pictures = iter(()) if result.interrupted else report.pictures(result)
    if showcase:
        document |= {"showcase": showcase}
        lines.append(f"{'showcase':<20}{showcase}")
    if beside is not None:
        document |= {"beside": beside.document()}
        lines += beside.lines()
        pictures = chain(pictures, beside.pictures())
    document |= {"request": plain}
    folder: Path | None
    failed, over = result.outcome.failed, request.flags.get("force")
    named = ((picture_name(request.flags, name), draw) for name, draw in pictures)
    try:
        with picture_look(request.flags):
            folder, document = folders.write_folder(
                out, document, named, result, request=None if over else plain
            )
    except OSError as error:
        folder, failed = folders.rescue(out, document, result), True
        where = "printed" if folder is None else f"in {str(folder)!r}"
        files.complain(out, error, f"; the numbers are {where}")
    checkpoint.close(interrupted=result.interrupted or folder is None)
    if folder is not None:
        lines += [files.picture_line(folder / name) for name in document.get("files", ())]
        lines += [f"result   {folder}"]
    document |= {"folder": folder and str(folder)}
    if "csv" in request.flags:
        path = Path(str(request.flags["csv"]))
        write = partial(result.to_dataframe().to_csv, index=False)
        if files.attempt(path, write):
            document |= {"csv": str(path)}
            lines.append(f"table    {path}")
        else:
            failed = True
    files.print_result(request.flags, document, "\n".join(lines))
    if result.outcome.failed:
        print(f"attdyn: {result.outcome}", file=sys.stderr)
    return 1 if failed else 130 if result.interrupted else 0


@dataclass(frozen=True)
class CommandCheckpoint:
    """Checkpoint ``.NAME.checkpoint`` of a command with ``--out NAME``; a flow has none.

    The checkpoint is removed when the result is written, and kept for ``--resume`` after an
    interruption or kill.
    """

    file: Checkpoint | None = None
    """Checkpoint passed to `dynamics.descend` or `dynamics.compare`; None for a flow."""
    parts: tuple[Checkpoint, ...] = ()
    """Checkpoints of single runs; a comparison has one for each of its runs."""

    def exists(self) -> bool:
        """Whether a file to resume from exists."""
        return any(part.exists() for part in self.parts)

    @contextmanager
    def in_use(self, resumed: bool) -> Iterator[None]:
        """Context for a run and the writing of its result; drops old files unless `resumed`."""
        if self.exists() and not resumed:
            remark = "checkpoint of an earlier run is dropped: without --resume a run starts anew"
            print(f"attdyn: the {remark}", file=sys.stderr)
            self.close(interrupted=False)
        try:
            yield
        except KeyboardInterrupt:
            self.close(interrupted=True)
            raise

    def close(self, interrupted: bool) -> None:
        """Remove the checkpoint's files, or print how to resume an interrupted run."""
        if not interrupted:
            for part in self.parts:
                part.discard()
        elif self.file is not None and self.exists():
            remark = "the same command with --resume goes on from there"
            print(f"attdyn: {remark} (checkpoint {self.file.path})", file=sys.stderr)


def _outside(path: Path, out: Path, flag: str) -> None:
    """Refuse a file inside the folder of the result, because the whole folder is replaced."""
    if path.resolve().is_relative_to(out.resolve()):
        raise InvalidRequest(
            f"{flag}={str(path)!r} is inside the result's folder; {flag} can be a file elsewhere"
        )


def command_checkpoint(
    request: CommandRequest, out: Path, fulls: int = 1, reduced: int = 1
) -> CommandCheckpoint:
    """Checkpoint for a result in the folder `out`, checked before anything is compiled.

    The counts `fulls` and `reduced` are the numbers of full and reduced runs of a comparison.
    Raises InvalidRequest if there is nothing to resume, or the checkpoint file cannot be used.
    """
    from dynamics.analysis.comparison import parts
    from dynamics.training.checkpoint import Checkpoint

    flags = request.flags
    if "time" in flags:
        for name in ("resume", "checkpoint"):
            if name in flags:
                raise InvalidRequest(f"{name} needs gradient descent, but --time requests a flow")
        return CommandCheckpoint()
    path = Path(str(flags.get("checkpoint", out.with_name(f".{out.name}.checkpoint"))))
    _outside(path, out, "checkpoint")
    file = Checkpoint(path, keep=True)
    files = tuple(parts(file, fulls, reduced)) if request.command == "compare" else (file,)
    checkpoint = CommandCheckpoint(file, files)
    for part in files:
        part.check()
    if flags.get("resume") and not checkpoint.exists():
        raise InvalidRequest(
            f"there is nothing to resume: no checkpoint {str(path)!r}; run without --resume"
        )
    return checkpoint
