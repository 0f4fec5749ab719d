#!/bin/sh
# The browser tests drive the Chromium of the operating system; where there is none and we may, install it.
set -eu
for name in chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null; then exit 0; fi
done
if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null
else
    echo "No Chromium found: the browser tests will be skipped. Install one to run them." >&2
fi
