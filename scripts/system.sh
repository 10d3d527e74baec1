# What the scripts that prepare a machine share: saying what is done, and installing with apt. Sourced, not run.

say() { printf '==> %s\n' "$*" >&2; }
fail() {
    printf '%s: %s\n' "$(basename "$0" .sh)" "$*" >&2
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
