#!/bin/sh
# currency.js 2.0.4: a guess says that a text with an exponent, as services on the JVM and in Python write small and large decimals
# (`1E-7`, `2.5E+4`), becomes that number, or is refused with `errorOnInvalid`. Yet the letter is dropped and the digits are joined:
# "1E+3" is 13 and "2.5E+4" is 2.54, with `errorOnInvalid` too. With a negative exponent it is NaN, and nothing is thrown either.
# A page has to write such a text out before it hands it over.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts currency.js@2.0.4
cat >read.mjs <<'JS'
import currency from 'currency.js'
const read = (text) => currency(text, { precision: 8, errorOnInvalid: true }).value
console.log(['1000', '1E+3', '2.5E+4', '1E-7'].map((text) => `${text} is ${read(text)}`).join(', '))
JS
seen=$(node read.mjs)
echo "$seen"
[ "$seen" = '1000 is 1000, 1E+3 is 13, 2.5E+4 is 2.54, 1E-7 is NaN' ]
