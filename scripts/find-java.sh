#!/usr/bin/env bash
# Prints the home of a Java 17 or newer, which Spark needs; prints nothing and fails when there is none.
set -u

fits() { # home
    local first major
    [ -x "$1/bin/java" ] || return 1
    first=$("$1/bin/java" -version 2>&1 | grep -m 1 ' version "') || return 1
    major=${first#*\"}
    major=${major%%[!0-9]*} # "17.0.15" gives 17; the old "1.8.0" gives 1
    [ "${major:-0}" -ge 17 ]
}

offer() { # home
    if fits "$1"; then
        printf '%s\n' "$1"
        exit 0
    fi
}

# What the user chose comes first.
[ -n "${JAVA_HOME:-}" ] && offer "$JAVA_HOME"

# The java on the path is mostly a chain of links; its home is two levels above the real file.
if on_path=$(command -v java); then
    real=$(readlink -f "$on_path")
    offer "${real%/bin/java}"
    # A version manager puts a script there instead; then Java itself knows its home.
    offer "$("$on_path" -XshowSettings:properties -version 2>&1 | sed -n 's/^ *java\.home = //p')"
fi

# Oldest first: Spark is tested on the long-term releases, not on the newest one.
for home in $(printf '%s\n' /usr/lib/jvm/* | sort -t - -k 2 -V); do
    offer "$home"
done

exit 1
