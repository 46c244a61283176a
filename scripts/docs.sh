#!/usr/bin/env bash
# Builds the documentation site, guide and reference in one: build/site/html/index.html.
#
#   scripts/docs.sh [--versions] [--no-install]
#
#   --versions    every tag v*, too, each in a folder of its own (build/site/html/<version>), with links between them
#   --no-install  install nothing: doxygen is there, and Sphinx in build/docs-venv
#
# Warnings and dead links are errors. The Python reference has the compiled module's names where a build of the package is found
# (build/*/python/dnds/_core.pyi).
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=/dev/null
. scripts/say.sh

install=true
versions=false
while [ $# -gt 0 ]; do
    case "$1" in
    --versions) versions=true ;;
    --no-install) install=false ;;
    -h | --help)
        sed -n '2,10s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *) fail "unknown option $1 (see --help)" ;;
    esac
    shift
done

venv=$PWD/build/docs-venv
if $install; then
    say "checking packages"
    scripts/install-deps.sh --docs
    if [ ! -x "$venv/bin/sphinx-build" ]; then
        python3 -m venv "$venv"
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r docs/site/requirements.txt
    fi
fi
command -v doxygen >/dev/null || fail "there is no doxygen (scripts/install-deps.sh --docs)"
[ -x "$venv/bin/sphinx-build" ] || fail "there is no $venv: run it without --no-install"

# site_of SOURCE NAME FOLDER: the site of one tree of sources.
site_of() {
    local source=$1 name=$2 folder=$3 stub
    local parts=$PWD/build/site/parts/$name
    rm -rf "$parts" "$folder"
    mkdir -p "$parts"
    (cd "$source" && { cat docs/Doxyfile && echo "OUTPUT_DIRECTORY = $parts"; } | doxygen - >/dev/null)
    stub=$(find "$source"/build -maxdepth 4 -path '*/dnds/_core.pyi' -print -quit 2>/dev/null || true)
    "$venv/bin/python" docs/site/assemble.py "$source" "$parts/xml" "$parts/source" ${stub:+"$stub"}
    DNDS_SITE_VERSION=$name DNDS_SITE_VERSIONS=${names[*]} "$venv/bin/sphinx-build" --quiet --fail-on-warning --keep-going \
        --jobs auto -c docs/site -d "$parts/doctrees" "$parts/source" "$folder"
}

html=$PWD/build/site/html
version=$(sed -n 's/^  VERSION \([0-9.]*\)$/\1/p' CMakeLists.txt)
names=()
if ! $versions; then
    say "building the site of $version"
    site_of "$PWD" "$version" "$html"
else
    mapfile -t tags < <(git tag --list 'v*' --sort=-version:refname)
    names=(latest "${tags[@]}")
    rm -rf "$html"
    for name in "${names[@]}"; do
        say "building the site of $name"
        source=$PWD
        if [ "$name" != latest ]; then
            source=$PWD/build/site/tags/$name
            rm -rf "$source" && mkdir -p "$source"
            git archive "$name" | tar -x -C "$source"
        fi
        site_of "$source" "$name" "$html/$name"
    done
    printf '<meta http-equiv="refresh" content="0; url=latest/index.html">\n' >"$html/index.html"
fi
"$venv/bin/python" docs/site/check_html.py "$html" # links between versions, too
say "the site is $html/index.html"
