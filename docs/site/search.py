"""What the search page ranks with: for words of the guide, the pages that are about them."""

import json
import math
import pathlib
import re
from collections import Counter

# Where a page lies says how likely it is meant; pages that are named nowhere here get 0.
FOLDERS = {"docs/guides": 4, "docs/start": 4, "docs/reference": 3, "README": 2, "docs/README": -2, "bench": -3,
           "CHANGELOG": -6}
BEST = 20  # what the best page for a word gets: more than a word in any title
PAGES = 8  # for each word

# Sphinx calls score() for each result; the numbers besides are its own.
SCRIPT = """var Scorer = {
  objNameMatch: 11, objPartialMatch: 6, objPrio: {0: 15, 1: 5, 2: -5}, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
  pages: %s,
  words: %s,
  folders: %s,
  wordsOf: query => (query.toLowerCase().match(/[a-z][a-z0-9_]+/g) || []).map(word => word.replace(/([^s])s$/, "$1")),
  score: result => {
    const query = (new URLSearchParams(window.location.search).get("q") || "").trim();
    let score = Math.min(result[4], 25);
    if (result[6] === "index") {
      // A member of a class: first where the query is spelt like one, else after the pages about the word.
      const own = result[1] === query + ".hpp" ? 5 : 0;
      result[1] = `${query}: ${result[1]}`;
      score = /[a-z][A-Z]|_|::|^[A-Z]/.test(query) ? score + 25 + own : 12;
    }
    const page = Scorer.pages.indexOf(result[0]);
    for (const word of Scorer.wordsOf(query)) score += (Scorer.words[word] || {})[page] || 0;
    for (const [folder, more] of Object.entries(Scorer.folders)) if (result[0].startsWith(folder)) score += more;
    return score;
  },
};
"""


def stem(word):
    return re.sub(r"([^s])s$", r"\1", word.lower())


def words(text):
    """Words with their weights: names as they are, and a little for the parts of names."""
    for token in re.findall(r"[A-Za-z][A-Za-z0-9_]+", text):
        yield stem(token), 1.0
        parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", token)
        if len(parts) > 1:
            yield from ((stem(part), 0.3) for part in parts if len(part) > 2)


def counts(text):
    """How much a page says of each word; headings and terms that begin a paragraph count more, code in marks twice."""
    found = Counter()
    for number, line in enumerate(text.splitlines()):
        line = re.sub(r"\]\([^)]*\)", "]", line)
        more = 10 if number == 0 else 4 if line.startswith("#") else 1
        for word, weight in words(line):
            found[word] += more * weight
        for term in re.findall(r"^(?:- )?\*\*(.+?)\*\*", line):
            for word, weight in words(term):
                found[word] += 6 * weight
        for code in re.findall(r"`([^`]+)`", line):
            for word, weight in words(code):
                found[word] += weight
    return found


def ranks(texts):
    """{word: {page: 1 to BEST}} of the pages {name: text}, by BM25 (Robertson and Zaragoza 2009)."""
    pages = {name: counts(text) for name, text in texts.items()}
    lengths = {name: math.sqrt(sum(found.values())) for name, found in pages.items()}
    mean = sum(lengths.values()) / max(1, len(lengths))
    having = {}
    for name, found in pages.items():
        for word, count in found.items():
            having.setdefault(word, {})[name] = count / (count + 4 * (0.25 + 0.75 * lengths[name] / mean))
    result = {}
    for word, scores in having.items():
        if 1 < len(scores) and len(word) > 2:
            best = sorted(scores.items(), key=lambda one: -one[1])[:PAGES]
            result[word] = {name: round(BEST * (score / best[0][1]) ** 2) for name, score in best}
    return result


def write(source, pages, target):
    """Writes the script that conf.py names, for the guide's `pages` (names of files below `source`)."""
    texts = {page.removesuffix(".md"): (source / page).read_text() for page in pages if page != "CHANGELOG.md"}
    names = list(texts)
    of_words = {word: {names.index(name): score for name, score in best.items()}
                for word, best in sorted(ranks(texts).items())}
    small = {"separators": (",", ":")}
    pathlib.Path(target).write_text(SCRIPT % (json.dumps(names), json.dumps(of_words, **small), json.dumps(FOLDERS)))
