"""Every test run compiles into a folder of its own, kept for the whole run."""

import gc
import getpass
import itertools
import os
import signal
import sys
import tempfile
from collections import Counter

import pytest
import threadpoolctl

# Processes of the suite share the cores: threads of matrix products would only get in their way.
# A plugin may have loaded numpy by now, which read the setting then.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
threadpoolctl.threadpool_limits(int(os.environ["OPENBLAS_NUM_THREADS"]), "blas")
if "ATTDYN_CACHE_DIR" not in os.environ:
    os.environ["ATTDYN_CACHE_DIR"] = os.path.join(
        tempfile.gettempdir(), f"attdyn-tests-{getpass.getuser()}"
    )


# Compilers and tracers make millions of objects that last; the search for others takes long.
gc.set_threshold(100_000, 20, 50)

LONG = (
    "test_notebooks", "test_page_models", "test_interruption", "test_resume", "test_compiled",
    "test_real_images", "test_textured_images", "test_phases", "test_empirical",
)  # fmt: skip
"""Files of few long tests: at the end of a run one process would wait for the other."""


def pytest_configure(config):
    """Let processes take files in the order below, not by their numbers of tests."""
    config.option.loadscopereorder = False


def pytest_collection_modifyitems(items):
    """Long files first; files of one folder far apart: they seldom compile the same at once."""
    turns, seen = {}, Counter()
    for path in dict.fromkeys(item.path for item in items):
        turns[path] = path.stem not in LONG, seen[path.parent]
        seen[path.parent] += 1
    items.sort(key=lambda item: turns[item.path])


def forget():
    """Forget the runs that claims share."""
    for name in [name for name in sys.modules if name.startswith("dynamics.verdicts")]:
        for value in vars(sys.modules[name]).values():
            getattr(value, "cache_clear", int)()


@pytest.fixture(autouse=True)
def forgetful(request):
    """A test that patches constants takes no run from other tests, and leaves none."""
    ends = forget if "monkeypatch" in request.fixturenames else int
    ends()
    yield
    ends()


@pytest.fixture
def interrupted(monkeypatch):
    """The next command is interrupted after some chunks."""
    from dynamics.training import descent

    advance, count = descent.Run.advance, itertools.count()

    def counted(self):
        if next(count) == 25:
            os.kill(os.getpid(), signal.SIGTERM)
        return advance(self)

    monkeypatch.setattr(descent, "LARGEST_CHUNK", 256)
    monkeypatch.setattr(descent.Run, "advance", counted)


@pytest.fixture
def system(request):
    """The paper of the test's folder, or else positional attention."""
    import dynamics

    name = request.path.parent.name
    of_folder = name in ("masked_image_modeling", "shallow_vit")
    return dynamics.load_system(name if of_folder else "positional_attention")
