#!/usr/bin/env bash
# Prepares a clone for work: Java for Spark, the virtual environment, the locked packages, penstock itself.
# Does nothing twice, so it is safe to run again after an interruption.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '==> %s\n' "$*" >&2; }
fail() {
    printf 'setup: %s\n' "$*" >&2
    exit 1
}

# Installs the first of the given packages that apt has. Fails when we may not install, or none is there.
apt_install() {
    local as_root=() package
    command -v apt-get >/dev/null || return 1
    if [ "$(id -u)" -ne 0 ]; then
        # -n: never ask for a password, a build must not wait for one
        sudo -n true 2>/dev/null || return 1
        as_root=(sudo -n)
    fi
    # A fresh container has no package lists yet.
    "${as_root[@]}" apt-get update -qq >&2 || true
    for package in "$@"; do
        say "installing $package with apt"
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -qq --no-install-recommends "$package" >&2 && return 0
    done
    return 1
}

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

# A broker for the tests of MQTT, which are skipped without one. Packages put it where daemons live.
if ! PATH="$PATH:/usr/sbin" command -v mosquitto >/dev/null; then
    apt_install mosquitto || say "no mosquitto: the tests that need an MQTT broker will be skipped"
fi

# What the tests of Kafka and PostgreSQL start. Maven fetches the broker into the user's cache.
command -v mvn >/dev/null || apt_install maven || true
scripts/install-kafka.sh >/dev/null ||
    fail "the tests need a Kafka broker, which Maven fetches: install e.g. the package maven."
if ! ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 && ! command -v postgres >/dev/null; then
    apt_install postgresql ||
        fail "the tests need a PostgreSQL server: install e.g. the package postgresql."
fi

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
say "ready"
