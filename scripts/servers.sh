#!/usr/bin/env bash
# Installs the real servers that the tests start: MQTT, PostgreSQL and, by Maven, Kafka and an object store.
# Nothing of it is needed to use Penstock. Does nothing twice.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/system.sh

# Packages put brokers where daemons live.
if ! PATH="$PATH:/usr/sbin" command -v mosquitto >/dev/null; then
    apt_install mosquitto || fail "the tests need an MQTT broker: install e.g. the package mosquitto."
fi
if ! ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 && ! command -v postgres >/dev/null; then
    apt_install postgresql || fail "the tests need a PostgreSQL server: install e.g. the package postgresql."
fi
command -v mvn >/dev/null || apt_install maven || true
for jars in scripts/jars/*.xml; do
    name=$(basename "$jars" .xml)
    folder=$(scripts/install-jars.sh "$name") ||
        fail "the tests need $name, which Maven fetches: install e.g. the package maven."
    say "$name: $folder"
done
