#!/bin/sh
# candlestick-convert 7.0.0 (batchTicksToCandle): a guess says that a candle which is made of trades opens at the price of its first
# trade, as those of ccxt and of exchanges do, so that its open lies between its low and its high. Yet every candle but the first opens
# at the close of the one before, also after a gap, while its low and its high are those of its own trades: when a market opens 10 %
# higher than it has closed, the candle opens below its own low. A chart draws a body beyond the wick, the gap is gone from the chart,
# and whatever compares open with close or with low, as the patterns of candles do, finds a rise that nobody has traded. In a market
# without gaps it is a tick or so, which no test of a sum or of a maximum sees.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts candlestick-convert@7.0.0 ccxt@4.5.84
cat >candles.mjs <<'JS'
import convert from 'candlestick-convert'
import ccxt from 'ccxt'
const minute = 60_000
const night = 600 * minute
const trades = [
  [0, 100],
  [10_000, 102],
  [50_000, 101],
  [night, 111],
  [night + 10_000, 110],
  [night + 50_000, 110.5],
]
const candles = {
  'candlestick-convert': convert
    .batchTicksToCandle(trades.map(([time, price]) => ({ time, price, quantity: 1 })), 60, true)
    .map(({ time, open, high, low, close }) => [time, open, high, low, close]),
  ccxt: new ccxt.Exchange().buildOHLCVC(trades.map(([timestamp, price]) => ({ timestamp, price, amount: 1 })), '1m'),
}
for (const [name, made] of Object.entries(candles))
  console.log(`${name}: ${made.map(([time, open, high, low, close]) => `minute ${time / minute}: ${open}, ${low} to ${high}, ${close}`).join('; ')}`)
JS
seen=$(node candles.mjs)
echo "$seen"
[ "$seen" = 'candlestick-convert: minute 0: 100, 100 to 102, 101; minute 600: 101, 110 to 111, 110.5
ccxt: minute 0: 100, 100 to 102, 101; minute 600: 111, 110 to 111, 110.5' ]
