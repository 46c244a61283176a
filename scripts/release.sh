#!/usr/bin/env bash
# Prepares a release of what is committed: checks version and changelog, makes the source archive with checksums in build/release-VERSION,
# and names the tag to set. Changes nothing outside of build.
#
#   scripts/release.sh [--tag]
#
#   --tag   sets the tag v<version>, too
#
# The version stands in CMakeLists.txt, where the library, the CMake package, pkg-config, the wheel and the site read it; recipes repeat it.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=/dev/null
. scripts/say.sh

tag=false
while [ $# -gt 0 ]; do
    case "$1" in
    --tag) tag=true ;;
    -h | --help)
        sed -n '2,9s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *) fail "unknown option $1 (see --help)" ;;
    esac
    shift
done

version=$(sed -n 's/^  VERSION \([0-9.]*\)$/\1/p' CMakeLists.txt)
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "the version in CMakeLists.txt is '$version', not three numbers"
[ -z "$(git status --porcelain)" ] || fail "there are changes that are not committed"
grep -q "^## $version\( \|$\)" CHANGELOG.md ||
    fail "CHANGELOG.md has no section '## $version': rename 'Unreleased' to it, and begin a new one"
newest=$(sed -n 's/^## \([0-9][0-9.]*\).*/\1/p' CHANGELOG.md | head -1)
[ "$newest" = "$version" ] || fail "the newest section of CHANGELOG.md is $newest, not $version: raise the version in CMakeLists.txt"
for recipe in packaging/conda/meta.yaml packaging/spack/package.py; do
    grep -qF "\"$version\"" "$recipe" || fail "$recipe is not for version $version"
done
grep -q "^version: $version\$" CITATION.cff || fail "CITATION.cff is not for version $version"
! git rev-parse -q --verify "refs/tags/v$version" >/dev/null || fail "there is a tag v$version already: raise the version"

folder=build/release-$version
rm -rf "$folder"
mkdir -p "$folder"
say "archive of $(git rev-parse --short HEAD)"
git archive --format=tar --prefix="dnds-$version/" HEAD | gzip -n9 >"$folder/dnds-$version.tar.gz"
(cd "$folder" && sha256sum "dnds-$version.tar.gz" >SHA256SUMS && cat SHA256SUMS)
sed -n "/^## $version\( \|$\)/,/^## /p" CHANGELOG.md | sed '1d;$d' >"$folder/NOTES.md"

if $tag; then
    git tag -a "v$version" -m "DNDS $version"
    say "tagged v$version: git push origin v$version"
else
    say "to tag: scripts/release.sh --tag"
fi
say "archive, checksums and notes are in $folder"
