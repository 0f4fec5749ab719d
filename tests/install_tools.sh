#!/bin/sh
# The browser tests drive the Chromium of the operating system, and one test compiles LaTeX; what is missing is installed
# where we may.
set -eu
export DEBIAN_FRONTEND=noninteractive
has_shell() { command -v chromium-headless-shell; }
has_browser() { has_shell || command -v chromium || command -v chromium-browser || command -v google-chrome; }
has_latex() { command -v pdflatex; }
if has_shell >/dev/null && has_latex >/dev/null; then exit 0; fi
if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
    if has_browser >/dev/null && has_latex >/dev/null; then exit 0; fi
    echo "No Chromium or no pdflatex found: the tests that need them will be skipped. Install both to run them." >&2
    exit 0
fi
apt-get update -qq
# Debian packs Chromium without its windows, which takes half the CPU; where nobody does, the whole one serves.
has_shell >/dev/null || apt-get install -y -qq chromium-headless-shell >/dev/null 2>&1 || has_browser >/dev/null ||
    apt-get install -y -qq chromium >/dev/null
has_latex >/dev/null || apt-get install -y -qq --no-install-recommends texlive-latex-recommended >/dev/null ||
    echo "pdflatex cannot be installed: the test that compiles LaTeX will be skipped." >&2
