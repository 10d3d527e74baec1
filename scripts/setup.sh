#!/usr/bin/env bash
# Prepares a clone for work: Java for Spark, the virtual environment, the locked packages, penstock itself.
# Does nothing twice, so it is safe to run again after an interruption.
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/system.sh

# The command is tried, not only looked up: version managers leave commands behind that only print an error.
find_python() {
    local candidate
    for candidate in ${PYTHON:-python3.11 python3.12 python3.13 python3}; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
            printf '%s\n' "$candidate"
            return 0
        fi
    done
    return 1
}

# Java first: when it is missing, the user should hear so before the long download.
if ! java_home=$(scripts/find-java.sh); then
    apt_install openjdk-17-jre-headless openjdk-21-jre-headless || true
    java_home=$(scripts/find-java.sh) ||
        fail "Spark needs Java 17 or newer: install e.g. the package openjdk-17-jre-headless, or set JAVA_HOME."
fi
say "Java: $java_home"

# pip is asked for, not only the interpreter: an interrupted creation leaves an environment without it.
if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    python=$(find_python) ||
        fail "Penstock needs Python 3.11 or newer: install e.g. the package python3.11, or run make PYTHON=<command>."
    if ! "$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then
        # Debian and Ubuntu ship Python without the part that makes virtual environments.
        version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        apt_install "python$version-venv" python3-venv || true
        "$python" -c 'import ensurepip, venv' >/dev/null 2>&1 ||
            fail "$python cannot create virtual environments: install the package python$version-venv."
    fi
    say "creating .venv with $("$python" --version)"
    "$python" -m venv .venv
fi

say "installing the packages of requirements.lock (some minutes the first time)"
.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
# The lock file holds the build backend too, so nothing unpinned is fetched here.
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .

# So that a first run compiles neither Python nor what every app needs.
say "compiling what every app needs"
.venv/bin/python -m compileall -q penstock lab
.venv/bin/python -m penstock.cli warm
say "ready"
