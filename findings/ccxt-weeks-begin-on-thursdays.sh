#!/bin/sh
# ccxt 4.5.84: a guess says that buildOHLCVC(), which makes candles of trades, begins the candles of `1w` and `1M` where most exchanges and
# charts do: on a Monday and on the first of a month. Yet it divides the time since 1970 by the length of the timeframe. So weeks begin
# on Thursdays, as 1970 did, and a month is 30 days long and begins anywhere: March 2026 is a part of one candle that begins on 6
# February and of one that begins on 8 March. A chart that adds such candles of its newest trades to those of fetchOHLCV() has bars
# that overlap. Days and shorter timeframes are right.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts ccxt@4.5.84
cat >candles.mjs <<'JS'
import ccxt from 'ccxt'
const exchange = new ccxt.Exchange()
const trades = Array.from({ length: 31 }, (_, day) => ({ timestamp: Date.UTC(2026, 2, 1 + day, 12), price: 1 + day, amount: 1 }))
const format = new Intl.DateTimeFormat('en', { timeZone: 'UTC', weekday: 'short', day: 'numeric', month: 'short' })
for (const timeframe of ['1d', '1w', '1M']) {
  const candles = exchange.buildOHLCVC(trades, timeframe)
  const first = candles.slice(0, 2).map(([time, open]) => `${format.format(time)} opens at ${open}`)
  console.log(`${timeframe}: ${candles.length} candles, ${first.join(', ')}`)
}
JS
seen=$(node candles.mjs)
echo "$seen"
[ "$seen" = '1d: 31 candles, Sun, Mar 1 opens at 1, Mon, Mar 2 opens at 2
1w: 5 candles, Thu, Feb 26 opens at 1, Thu, Mar 5 opens at 5
1M: 2 candles, Fri, Feb 6 opens at 1, Sun, Mar 8 opens at 8' ]
