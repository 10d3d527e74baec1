#!/usr/bin/env bash
# install-jars.sh NAME: prints the folder with the jars that jars/NAME.xml asks for.
# Maven fetches them, once, into the user's cache.
set -euo pipefail
cd "$(dirname "$0")/jars"
name=$1

# A folder per content of the file, so that another version is fetched and not mixed in.
version=$(cksum <"$name.xml" | cut -d ' ' -f 1)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/penstock/$name-$version

if [ ! -d "$folder" ]; then
    if ! command -v mvn >/dev/null; then
        printf '%s needs Maven, which fetches it: install the package maven\n' "$name" >&2
        exit 1
    fi
    mkdir -p "$(dirname "$folder")"
    half=$(mktemp -d "$folder-XXXXXX")
    trap 'rm -rf "$half"' EXIT
    mvn --quiet --batch-mode --file "$name.xml" dependency:copy-dependencies \
        -DincludeScope=runtime -DoutputDirectory="$half" >&2
    # Whole or not at all; whoever was faster has put the same there.
    mv -T "$half" "$folder" 2>/dev/null || [ -d "$folder" ]
fi
printf '%s\n' "$folder"
