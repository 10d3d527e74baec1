#!/usr/bin/env bash
# Prints the folder with the jars of a Kafka broker; fetches them with Maven, once, into the user's cache.
set -euo pipefail
cd "$(dirname "$0")"

# A folder per content of the file, so that another version is fetched and not mixed in.
version=$(cksum <kafka-pom.xml | cut -d ' ' -f 1)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/penstock/kafka-$version

if [ ! -d "$folder" ]; then
    if ! command -v mvn >/dev/null; then
        printf 'a Kafka broker needs Maven, which fetches it: install the package maven\n' >&2
        exit 1
    fi
    mkdir -p "$(dirname "$folder")"
    half=$(mktemp -d "$folder-XXXXXX")
    trap 'rm -rf "$half"' EXIT
    mvn --quiet --batch-mode --file kafka-pom.xml dependency:copy-dependencies \
        -DincludeScope=runtime -DoutputDirectory="$half" >&2
    # Whole or not at all; whoever was faster has put the same there.
    mv -T "$half" "$folder" 2>/dev/null || [ -d "$folder" ]
fi
printf '%s\n' "$folder"
