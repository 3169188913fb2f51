#!/bin/sh
# fast-technical-indicators 1.1.4, by its README fully compatible with technicalindicators 3.1.0 and to be dropped in for it: a guess says
# that Keltner Channels, by whose bands orders and stops are set, are the same with both, as RSI, MACD, ADX and EMA are. Yet they differ
# twice, and nothing is said of either. The mean in the middle is that of the candle before, beside the range of the newest one, so that
# the channel is not around the library's own EMA, and in a trend it hangs behind. And the parameters of technicalindicators (maPeriod,
# atrPeriod, useSMA) are not read: channels of 10, of 20 and of 50 candles are one and the same. Lines that are a candle late look right
# in any chart, and in a market without a trend the difference is small. TypeScript finds the parameters that are not known, and no
# compiler the rest.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts fast-technical-indicators@1.1.4 technicalindicators@3.1.0
cat >channels.cjs <<'JS'
const close = Array.from({ length: 80 }, (_, index) => (1000 + 2 * index + Math.round(30 * Math.sin(index / 3))) / 10)
const prices = { close, high: close.map((price) => price + 1), low: close.map((price) => price - 1) }
for (const name of ['technicalindicators', 'fast-technical-indicators']) {
  const { EMA, KeltnerChannels, RSI } = require(name)
  const channel = (candles) => {
    const parameters = { maPeriod: candles, atrPeriod: candles, period: candles, multiplier: 2, useSMA: false }
    return KeltnerChannels.calculate({ ...prices, ...parameters }).at(-1)
  }
  const lower = (maPeriod) => {
    const parameters = { maPeriod, atrPeriod: 10, multiplier: 2, useSMA: false }
    return KeltnerChannels.calculate({ ...prices, ...parameters }).at(-1).lower.toFixed(2)
  }
  const means = EMA.calculate({ period: 20, values: close }).slice(-2)
  console.log(
    `${name}: RSI ${RSI.calculate({ values: close, period: 14 }).at(-1)}, EMA ${means[1].toFixed(2)}, a candle before ` +
      `${means[0].toFixed(2)}, middle ${channel(20).middle.toFixed(2)}; lower band of 10 ${lower(10)}, of 20 ${lower(20)}, of 50 ${lower(50)}`,
  )
}
JS
seen=$(node channels.cjs)
echo "$seen"
[ "$seen" = 'technicalindicators: RSI 78.3, EMA 113.98, a candle before 113.49, middle 113.98; lower band of 10 111.33, of 20 109.89, of 50 106.81
fast-technical-indicators: RSI 78.3, EMA 113.98, a candle before 113.49, middle 113.49; lower band of 10 109.42, of 20 109.42, of 50 109.42' ]
