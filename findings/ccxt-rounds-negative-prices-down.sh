#!/bin/sh
# ccxt 4.5.84: a guess says that priceToPrecision(), which rounds a price to the nearest tick of its market, does so below zero as well, where
# spreads, power and futures do trade: -1.01 with ticks of 0.25 is -1, as 1.01 is 1. Yet with ticks a price below zero goes to the next
# tick below, however near the one above it is: -1.01 is -1.25, and -0.01 is -0.25. An order to sell asks for less than it was told.
# Where a market counts decimals instead of ticks, -1.01 is -1 with none of them.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts ccxt@4.5.84
cat >round.mjs <<'JS'
import ccxt from 'ccxt'
const prices = ['1.01', '-1.01', '1.24', '-1.24', '2.3', '-2.3']
for (const [name, precisionMode, price] of [['ticks of 0.25', ccxt.TICK_SIZE, 0.25], ['no decimals', ccxt.DECIMAL_PLACES, 0]]) {
  const exchange = new ccxt.Exchange({ precisionMode })
  exchange.setMarkets([{ id: 'spread', symbol: 'SPREAD', precision: { price } }])
  console.log(`${name}: ${prices.map((each) => `${each} is ${exchange.priceToPrecision('SPREAD', each)}`).join(', ')}`)
}
JS
seen=$(node round.mjs)
echo "$seen"
[ "$seen" = 'ticks of 0.25: 1.01 is 1, -1.01 is -1.25, 1.24 is 1.25, -1.24 is -1.25, 2.3 is 2.25, -2.3 is -2.5
no decimals: 1.01 is 1, -1.01 is -1, 1.24 is 1, -1.24 is -1, 2.3 is 2, -2.3 is -2' ]
