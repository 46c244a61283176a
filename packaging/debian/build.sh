#!/usr/bin/env bash
# Builds the Debian package of what is committed: build/debian/*.deb. Needs dpkg-dev, debhelper, and what debian/control names.
set -euo pipefail
cd "$(dirname "$0")/../.."
version=$(sed -n 's/^  VERSION \([0-9.]*\)$/\1/p' CMakeLists.txt)
folder=build/debian/dnds-$version
rm -rf build/debian
mkdir -p "$folder"
git archive HEAD | tar -x -C "$folder"
tar -C build/debian -czf "build/debian/dnds_$version.orig.tar.gz" "dnds-$version"
cp -r packaging/debian "$folder/debian"
rm "$folder/debian/build.sh"
sed -i "1s/([^)]*)/($version-1)/" "$folder/debian/changelog"
(cd "$folder" && dpkg-buildpackage -us -uc -F)
ls -l build/debian/*.deb build/debian/*.dsc
