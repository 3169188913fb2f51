#!/bin/sh
# technicalindicators 3.1.0: a guess says that a Stochastic, which tells where a price stands between the lowest and the highest of a
# period, is the same for prices that all lie 100 lower, also below zero, where spreads, power and futures do trade. Yet the highest of
# negative numbers is 0, while the lowest is right, so that the scale reaches up to 0: the price that closes near the top of its period
# with 96 has 69. Williams %R has the same fault; RSI is the same for both, and so is the Stochastic of trading-signals 8.3.0.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts technicalindicators@3.1.0 trading-signals@8.3.0
cat >shift.mjs <<'JS'
import indicators from 'technicalindicators'
import { StochasticOscillator } from 'trading-signals'
const closes = [62.4, 70, 88, 80, 85, 89]
for (const [name, prices] of [
  ['above zero', closes],
  ['100 lower', closes.map((price) => price - 100)],
]) {
  const candles = prices.map((close) => ({ high: close + 1, low: close - 1, close }))
  const columns = Object.fromEntries(['high', 'low', 'close'].map((key) => [key, candles.map((candle) => candle[key])]))
  const peer = new StochasticOscillator({ kPeriod: 3, kSlowingPeriod: 1, dPeriod: 1 })
  const peers = candles.map((candle) => peer.update(candle, false)?.stochK).filter((value) => value !== undefined)
  const whole = (values) => values.map((value) => Math.round(value)).join(' ')
  console.log(
    `${name}: highest ${whole(indicators.Highest.calculate({ period: 3, values: prices }))},`,
    `lowest ${whole(indicators.Lowest.calculate({ period: 3, values: prices }))},`,
    `stochastic ${whole(indicators.Stochastic.calculate({ period: 3, signalPeriod: 1, ...columns }).map(({ k }) => k))},`,
    `of trading-signals ${whole(peers)},`,
    `RSI ${whole(indicators.RSI.calculate({ period: 3, values: prices }))},`,
    `%R ${whole(indicators.WilliamsR.calculate({ period: 3, ...columns }))}`,
  )
}
JS
seen=$(node shift.mjs)
echo "$seen"
[ "$seen" = 'above zero: highest 88 88 88 89, lowest 62 70 80 80, stochastic 96 55 60 91, of trading-signals 96 55 60 91, RSI 76 81 84, %R -4 -45 -40 -9
100 lower: highest 0 0 0 0, lowest -38 -30 -20 -20, stochastic 69 35 29 48, of trading-signals 96 55 60 91, RSI 76 81 84, %R -31 -65 -71 -52' ]
