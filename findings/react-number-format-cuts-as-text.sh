#!/bin/sh
# react-number-format 5.4.5: a guess says that numericFormatter(), the package's formatter for texts outside React, writes a number as
# <NumericFormat> shows it with the same properties. Yet with `decimalScale` the component rounds the value it is given, and the
# formatter cuts it, as the component does with what a user types: a price of 1.239 is 1.24 in the ticket and 1.23 in a text that is made
# of the same value, such as a confirmation or a row of a CSV. Where both have to agree, the value has to be rounded before.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts react-number-format@5.4.5 react@19.2.0 react-dom@19.2.0
cat >show.mjs <<'JS'
import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { NumericFormat, numericFormatter } from 'react-number-format'
const options = { decimalScale: 2, fixedDecimalScale: true, thousandSeparator: true }
for (const value of ['1234.5', '1.234', '1.239', '0.999']) {
  const shown = renderToStaticMarkup(createElement(NumericFormat, { ...options, value, displayType: 'text' }))
  console.log(`${value}: component ${shown.replace(/<[^>]*>/g, '')}, formatter ${numericFormatter(value, options)}`)
}
JS
seen=$(node show.mjs)
echo "$seen"
[ "$seen" = '1234.5: component 1,234.50, formatter 1,234.50
1.234: component 1.23, formatter 1.23
1.239: component 1.24, formatter 1.23
0.999: component 1.00, formatter 0.99' ]
