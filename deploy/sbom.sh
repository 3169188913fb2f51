#!/bin/sh
# Prints the software bill of materials (CycloneDX) of the npm packages that an image really holds, for docs/operating/release.md:
#
#   deploy/sbom.sh IMAGE >sbom.json
set -eu
here=$(mktemp -d)
container=$(docker create "$1")
trap 'docker rm "$container" >/dev/null; rm -rf "$here"' EXIT
docker cp "$container:/app/package.json" "$here/" >&2
docker cp "$container:/app/node_modules" "$here/" >&2
cd "$here"
# npm would report packages that are only for development as missing.
npm pkg delete devDependencies optionalDependencies overrides
npm sbom --sbom-format cyclonedx
