import { Type } from 'typebox'
import { candles, type Candle, candleAt } from '../candles.ts'
import type { Connection, Message } from '../connection.ts'
import type { Instrument, Tick } from '../market.ts'
import { operation, type Operation, subscribe } from '../operation.ts'
import { instrumentOf } from '../terms.ts'

const MAX_COUNT = 5000
const GRANULARITIES = [60, 120, 180, 300, 600, 900, 1800, 3600, 7200, 14_400, 28_800, 86_400]

/** Current and historical prices. */
export const tickOperations: readonly Operation[] = [
  operation({
    name: 'ticks',
    responseType: 'tick',
    properties: { ticks: Type.Union([Type.String(), Type.Array(Type.String(), { minItems: 1 })]), subscribe },
    run(request, connection) {
      const codes = new Set([request.ticks].flat())
      const instruments = [...codes].map((code) => instrumentOf(code, connection.world.market))
      if (request.subscribe !== 1)
        return instruments.forEach(({ info, latest }) =>
          connection.respond(request, 'tick', { tick: tickView(info, latest) }),
        )
      // Either all requested streams start or none.
      for (const { info } of instruments) connection.subscriptions.refuseRunning('ticks', info.code)
      connection.subscriptions.refuseTooMany(instruments.length)
      for (const instrument of instruments) streamTicks(request, connection, instrument, true)
    },
  }),
  operation({
    name: 'ticks_history',
    responseType: 'history',
    properties: {
      ticks_history: Type.String(),
      adjust_start_time: Type.Optional(Type.Literal(1)),
      count: Type.Optional(Type.Integer({ minimum: 1 })),
      end: Type.Optional(Type.Union([Type.Literal('latest'), Type.Integer()])),
      start: Type.Optional(Type.Integer()),
      style: Type.Optional(Type.Enum(['ticks', 'candles'])),
      granularity: Type.Optional(Type.Enum(GRANULARITIES)),
      subscribe,
    },
    run(request, connection) {
      const instrument = instrumentOf(request.ticks_history, connection.world.market)
      const { start = 0, end = 'latest', granularity = 60 } = request
      const count = Math.min(request.count ?? MAX_COUNT, MAX_COUNT)
      const last = end === 'latest' ? Number.POSITIVE_INFINITY : end
      const ticks = instrument.history.filter(({ epoch }) => epoch >= start && epoch <= last)
      const wantsStream = request.subscribe === 1
      const pip = { pip_size: instrument.info.pipSize }
      if (request.style === 'candles') {
        if (wantsStream) connection.subscriptions.refuseRunning('candles', subjectOf(instrument, granularity))
        const shown = candles(ticks, granularity).slice(-count)
        const stream = wantsStream ? streamCandles(request, connection, instrument, granularity) : undefined
        connection.respond(request, 'candles', { candles: shown, ...pip }, stream)
      } else {
        const shown = ticks.slice(-count)
        const history = { prices: shown.map(({ quote }) => quote), times: shown.map(({ epoch }) => epoch) }
        const stream = wantsStream ? streamTicks(request, connection, instrument, false) : undefined
        connection.respond(request, 'history', { history, ...pip }, stream)
      }
    },
  }),
]

/** Starts a stream of ticks, optionally with the latest one first. @returns its id */
function streamTicks(request: Message, connection: Connection, instrument: Instrument, withLatest: boolean): string {
  const subscription = connection.subscriptions.open('ticks', instrument.info.code)
  const send = (tick: Tick): void => {
    const view = { ...tickView(instrument.info, tick), id: subscription.id }
    connection.respond(request, 'tick', { tick: view }, subscription.id)
  }
  if (withLatest) send(instrument.latest)
  subscription.onEnd(instrument.ticks.add(send))
  return subscription.id
}

/** Starts a stream of the current candle. @returns its id */
function streamCandles(request: Message, connection: Connection, instrument: Instrument, granularity: number): string {
  const { code, pipSize } = instrument.info
  const subscription = connection.subscriptions.open('candles', subjectOf(instrument, granularity))
  let candle: Candle | undefined = candles(instrument.history, granularity).at(-1)
  const send = (tick: Tick): void => {
    candle = candleAt(tick, granularity, candle)
    const price = (value: number): string => value.toFixed(pipSize)
    const ohlc = {
      id: subscription.id,
      symbol: code,
      epoch: tick.epoch,
      open_time: candle.epoch,
      granularity,
      open: price(candle.open),
      high: price(candle.high),
      low: price(candle.low),
      close: price(candle.close),
      pip_size: pipSize,
    }
    connection.respond(request, 'ohlc', { ohlc }, subscription.id)
  }
  subscription.onEnd(instrument.ticks.add(send))
  return subscription.id
}

function subjectOf({ info }: Instrument, granularity: number): string {
  return `${info.code} (${granularity} s candles)`
}

function tickView({ code, pipSize }: Instrument['info'], { epoch, quote }: Tick): Message {
  const spread = 1.1 * 10 ** (1 - pipSize)
  return {
    ask: Number((quote + spread).toFixed(pipSize)),
    bid: Number((quote - spread).toFixed(pipSize)),
    epoch,
    pip_size: pipSize,
    quote,
    symbol: code,
  }
}
