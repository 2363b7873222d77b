"""The claim about the documents: the site builds without a warning, its links exist, its English is
plain, and its search answers the questions of a new user. A target of `tests.proofs`."""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from scripts.reference_pages import metrics, undocumented_names
from tests.models.prose import (
    found_fragments,
    found_phrases,
    guide_pages,
    mean_words_max,
    pages,
    read,
)
from tests.models.public_names import public_names
from tests.models.repository import ROOT
from tests.models.site_links import broken_links, loaded_elsewhere, pages_of
from tests.proofs.shortfall import Figures, ShortfallError
from tests.scenarios.built_site import build_site
from tests.scenarios.site_pictures import FOLDER, take
from tests.scenarios.site_questions import ask_all
from tests.servers.browser import WatchedPage, chromium, found_chromium
from tests.servers.static_site import served

BEFORE = {"phrases_in_pages": 165, "phrases_in_modules": 502}
"""Counted at commit 3524e6b by the same functions, before the phrases were replaced."""
QUESTIONS_BEFORE = 7
"""Of the twenty questions, answered by the first three results at commit 867f414."""
FRAGMENTS_BEFORE = 1108
"""Docstrings that began in the middle of a thought at commit 867f414, by the same function."""
BLOCKS = "tests/integration/test_guides.py"


def prove_docs(short: bool) -> Figures:
    """The site, its links and references; the length of sentences and listed phrases; twenty
    questions, and pictures of the main pages. At full size, code blocks of guides run, too."""
    with tempfile.TemporaryDirectory(prefix="bucketlog-site-") as name:
        folder = Path(name)
        built = build_site(folder)
        faults = [*broken_links(folder), *loaded_elsewhere(folder)]
        site_pages = len(pages_of(folder))
        with served(folder) as address, chromium(found_chromium()) as browser:
            pictures = take(browser, address, FOLDER)
            answered = list(ask_all(WatchedPage(browser.new_context(), address)))
    means = {path: read((ROOT / path).read_text()).mean_words for path in pages()}
    long = {path: round(mean, 1) for path, mean in means.items() if mean > mean_words_max(path)}
    phrases = found_phrases()
    names = list(public_names())
    figures: Figures = {
        "site_pages": site_pages,
        "warnings": built.stderr.splitlines(),
        "broken_links": len(faults),
        "undocumented_names": sorted(undocumented_names()),
        "public_names": len(names),
        "fragments_before": FRAGMENTS_BEFORE,
        "fragments": sum(map(len, found_fragments().values())),
        "metrics": len(list(metrics())),
        "pages": len(means),
        "guides": len(guide_pages()),
        "mean_words": round(sum(means.values()) / len(means), 1),
        "largest_mean_words": round(max(means.values()), 1),
        "too_long": long,
        "phrases_before": BEFORE,
        "phrases": sum(map(len, phrases.values())),
        "pictures": len(pictures),
        "questions_answered_before": QUESTIONS_BEFORE,
        "questions": [each._replace(seconds=round(each.seconds, 1)) for each in answered],
        "slowest_answer_s": round(max(each.seconds for each in answered), 1),
    }
    if built.returncode or faults or long or phrases or figures["undocumented_names"]:
        raise ShortfallError("; ".join([*faults[:5], *long, *list(phrases)[:5]]), figures)
    if not short:
        command = [sys.executable, "-m", "pytest", "-q", BLOCKS]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        figures["blocks"] = done.stdout.strip().splitlines()[-1]
        if done.returncode:
            raise ShortfallError("a code block of a guide does not run", figures)
    return figures


DOCS_TARGETS: dict[str, Callable[[bool], Figures]] = {"docs": prove_docs}
