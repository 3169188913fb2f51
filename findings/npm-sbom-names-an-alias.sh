#!/bin/sh
# npm 11.19.1: a guess says that both formats of `npm sbom` name a package that is installed under an alias (npm:ws@8.23.0) by its own
# name, since the alias exists in one project alone. SPDX does. Yet CycloneDX has the alias as the name of the component, beside
# a purl and a reference with the real name: whoever looks for "ws" by name, in a list of licences or of known faults, does not find it.
# @cyclonedx/cyclonedx-npm 6.0.1 has the real name.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir tools
npm install --silent --no-audit --no-fund --ignore-scripts --omit=optional --prefix tools npm@11.19.1 @cyclonedx/cyclonedx-npm@6.0.1
npm=tools/node_modules/npm/bin/npm-cli.js
echo '{"name":"a","version":"1.0.0","license":"MIT","dependencies":{"socket-of-tests":"npm:ws@8.23.0"}}' >package.json
node "$npm" install --silent --no-audit --no-fund --ignore-scripts --omit=optional
for format in cyclonedx spdx; do node "$npm" sbom --sbom-format "$format" >"$format.json"; done
node tools/node_modules/@cyclonedx/cyclonedx-npm/bin/cyclonedx-npm-cli.js --ignore-npm-errors --output-format JSON >other.json 2>errors ||
  { cat errors; exit 1; }
cat >names.cjs <<'JS'
const [cyclonedx, spdx, other] = ['cyclonedx', 'spdx', 'other'].map((name) => require(`./${name}.json`))
const [component] = cyclonedx.components
console.log(`CycloneDX: ${component.name}, ${component.purl}`)
console.log(`SPDX: ${spdx.packages.at(-1).name}, ${spdx.packages.at(-1).externalRefs[0].referenceLocator}`)
console.log(`cyclonedx-npm: ${other.components[0].name}, ${other.components[0].purl}`)
JS
seen=$(node names.cjs)
echo "$seen"
[ "$(echo "$seen" | cut -d '?' -f 1)" = 'CycloneDX: socket-of-tests, pkg:npm/ws@8.23.0
SPDX: ws, pkg:npm/ws@8.23.0
cyclonedx-npm: ws, pkg:npm/ws@8.23.0' ]
