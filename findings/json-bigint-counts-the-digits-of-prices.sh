#!/bin/sh
# json-bigint 1.0.0: a guess says that only integers beyond 2^53 are read in another way, and that a price with decimals stays a
# number. Yet what decides is how many characters a number is written with: from 16 on a price is a text with `storeAsString`, a
# BigNumber without options, and with `useNativeBigInt` the whole document is refused, since no BigInt has decimals. So the type of
# a price changes with its digits, and a page breaks at the first sum that a service divides: 0.1 + 0.2 has 19 characters.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts json-bigint@1.0.0
cat >read.mjs <<'JS'
import read from 'json-bigint'
const type = (options, price) => {
  try {
    return typeof read(options).parse(`{"price":${price}}`).price
  } catch (error) {
    return error.name
  }
}
for (const options of [{}, { storeAsString: true }, { useNativeBigInt: true }]) {
  console.log(`${JSON.stringify(options)}: ${[0.3, 0.1 + 0.2].map((price) => `${price} is ${type(options, price)}`).join(', ')}`)
}
JS
seen=$(node read.mjs)
echo "$seen"
[ "$seen" = '{}: 0.3 is number, 0.30000000000000004 is object
{"storeAsString":true}: 0.3 is number, 0.30000000000000004 is string
{"useNativeBigInt":true}: 0.3 is number, 0.30000000000000004 is SyntaxError' ]
