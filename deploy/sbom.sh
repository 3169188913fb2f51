#!/bin/sh
# Prints the software bill of materials (CycloneDX) of the npm packages that an image really holds or, without an image, of those
# that package-lock.json gives it, for docs/operating/release.md:
#
#   deploy/sbom.sh IMAGE >sbom.json
set -eu
cd "$(dirname "$0")/.."
here=$(mktemp -d)
trap 'rm -rf "$here"; docker rm "${container-}" >/dev/null 2>&1 || :' EXIT
if [ $# = 0 ]; then
  cp package.json package-lock.json "$here/"
else
  container=$(docker create "$1")
  docker cp "$container:/app/package.json" "$here/" >&2
  docker cp "$container:/app/node_modules" "$here/" >&2
fi
cd "$here"
# npm would report packages that are only for development as missing. Its --omit=dev leaves out those that both need, too.
npm pkg delete devDependencies optionalDependencies overrides
if [ $# = 0 ]; then
  npm prune --package-lock-only --offline --ignore-scripts --no-audit --no-fund >&2
  npm sbom --package-lock-only --sbom-format cyclonedx
else
  npm sbom --sbom-format cyclonedx
fi
