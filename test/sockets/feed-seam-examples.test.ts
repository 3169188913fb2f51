import { readFileSync } from 'node:fs'
import { test, type Test } from 'tap'
import { type FeedBrowser, type FeedWorld, feedWorld, type Message, reply } from '../support/feed/world.ts'

const DECISION = new URL('../../docs/decisions/0010-one-upstream-subscription-for-many-browsers.md', import.meta.url)
const EXAMPLES = readFileSync(DECISION, 'utf8')
  .split('\n')
  .filter((line) => /^\| `\d+:\d/.test(line))
  .map(
    (line): Row =>
      line
        .replaceAll('`', '')
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()) as unknown as Row,
  )

/**
 * As in decision 10: what the stream begins with, what it has sent, a history for a later browser, what the stream sends then,
 * and what of all that the later browser gets. A tick is written `second:price`, and a candle `second:close` or, if its high is
 * not 9, `second:close^high`. An empty beginning is an empty history.
 */
type Row = readonly [began: string, sent: string, given: string, follows: string, gets: string]

const times = (count: number, one: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => one(index)).join(' ')
const MANY = times(100, (index) => `100:${index + 1}`)

const TICKS: readonly Row[] = [
  // The history shows several ticks of its last second, and may have begun in the middle of it.
  ['4:9 5:1 5:2', '', '5:1 5:2 5:1 5:2', '5:1 5:2 5:3', '5:3'],
  ['5:1', '5:2 5:1 5:2', '4:9 5:1 5:2', '6:3', '5:1 5:2 6:3'],
  ['5:1', '5:2 5:3', '4:9 5:0 5:1 5:2', '6:1', '5:3 6:1'],
  ['99:0 100:0', MANY, `99:0 100:0 ${MANY}`, '100:200', '100:200'],
  // A history of one tick is continued by its value: of two equal ones, after the later one.
  ['5:1', '5:2 5:3', '5:1', '6:1', '5:2 5:3 6:1'],
  ['5:1', '5:2 5:3', '5:2', '6:1', '5:3 6:1'],
  ['5:1', '5:2 5:3', '5:3', '6:1', '6:1'],
  ['5:1', '5:2 5:3 5:2', '5:2', '6:1', '6:1'],
  ['5:1', '5:2 5:3', '5:4', '5:2 5:4 6:1', '6:1'],
  ['5:1 5:2', '', '5:1', '5:1 6:3', '6:3'],
  ['', '5:1', '5:1', '6:2', '6:2'],
  ['', '5:1 6:2', '5:1', '7:3', '6:2 7:3'],
  // If the stream lacks the beginning of a second that it has passed, all that it has of it may be later.
  ['', '5:2 5:3 6:4', '5:1', '7:5', '5:2 5:3 6:4 7:5'],
  ['4:0 5:1', '5:2 6:4', '4:0 5:1 5:2 5:3', '7:5', '6:4 7:5'],
  ['', '', '99:1 100:2', '100:3 100:4 101:5', '100:3 100:4 101:5'],
  [
    '',
    '',
    '99:1 100:2',
    `${times(200, (index) => `100:${index + 3}`)} 101:5`,
    `${times(200, (index) => `100:${index + 3}`)} 101:5`,
  ],
  // A history that ends before all that the stream has, and an empty one, which is followed by what comes after it.
  ['', '101:3 102:4', '99:1 100:2', '103:5', '101:3 102:4 103:5'],
  ['49:1 50:1', '51:1 52:1', '', '53:1', '53:1'],
]
/** The stream has begun with a history that was asked to end at 50, as that of the later browser was, or only the former. */
const ENDED: readonly Row[] = [['49:1 50:2', '', '99:0 100:1 100:2', '100:3 100:4 101:5', '100:3 100:4 101:5']]
const BOTH_ENDED: readonly Row[] = [['', '101:3 102:4', '49:1 50:2', '103:5', '103:5']]
const CANDLES: readonly Row[] = [
  ['60:1', '60:2 60:3 60:4', '60:1', '120:5', '60:2 60:3 60:4 120:5'],
  ['60:1', '60:2 60:3 60:4', '60:3', '120:5', '60:4 120:5'],
  ['60:1', '60:2 60:3 60:4 60:3', '60:3', '120:5', '120:5'],
  // A history that is ahead of the stream.
  ['60:1', '60:2', '120:5', '120:5 120:6', '120:6'],
  ['60:1', '60:2 60:3 60:4', '60:6', '60:5 60:6 60:7', '60:7'],
  ['', '', '60:5', '60:6 60:7 120:8', '60:7 120:8'],
  ['60:2', '60:3', '60:5', '60:6 120:8', '60:6 120:8'],
  // Nobody can tell which state of a range is later, and no more than 64 of them are held back.
  ['60:1', '', '60:6', times(65, () => '60:5'), '60:5'],
  // Of two states the one with the wider range is the later one.
  ['60:1', '', '60:6^20', `${times(500, () => '60:5^19.99')} 60:5^20.01`, '60:5^20.01'],
  ['60:2', '60:3', '60:5', '60:6 60:7^10', '60:7^10'],
  ['60:1', '60:2^10 60:3^11 60:4^11', '60:7^10', '120:5', '60:3^11 60:4^11 120:5'],
  // A candle that the stream has closed follows as it was closed, whatever the history shows of it.
  ['60:1', '60:2 60:3 120:4', '60:9', '120:5', '60:3 120:4 120:5'],
  ['60:1', '60:2 60:3 120:4', '60:3', '120:5', '120:4 120:5'],
  ['60:1', '60:2 60:3 120:4', '60:3^8', '120:5', '60:2 60:3 120:4 120:5'],
  ['60:1', '60:2 60:3 120:4', '60:3^10', '120:5', '120:4 120:5'],
]
/** What upstream sends before the history of a stream, the history, what follows, and what the first browser gets of that. */
const EARLY: readonly (readonly [early: string, given: string, follows: string, gets: string, end?: number])[] = [
  ['11:1 12:2', '9:1 10:1', '13:3', '11:1 12:2 13:3'],
  ['11:1 12:2', '9:1 10:1 11:1', '13:3', '12:2 13:3'],
  ['11:1', '9:1 10:1 11:1 12:2', '12:2 13:3', '13:3'],
  ['11:1', '4:1 5:1', '12:2', '11:1 12:2', 5],
]

/** The ticks or candles of a cell. */
const pointsOf = (cell: string): string[] => cell.split(' ').filter((point) => point !== '')

/** A message of the stream with one point. */
function sent(point: string, isCandle: boolean): Message {
  const [, second, value, high = 9] = /^(\d+):([\d.]+)(?:\^([\d.]+))?$/.exec(point) ?? []
  const subscription = { id: 'h' }
  if (!isCandle) return { msg_type: 'tick', tick: { epoch: Number(second), quote: Number(value), point }, subscription }
  const ohlc = { open_time: Number(second), open: '1', high: String(high), low: '1', close: value, point }
  return { msg_type: 'ohlc', ohlc, subscription }
}

function history(cell: string, isCandles: boolean): Message {
  const points = pointsOf(cell).map((point) => /^(\d+):([\d.]+)(?:\^([\d.]+))?$/.exec(point)?.map(Number) ?? [])
  const [times, prices] = [points.map(([, second]) => second), points.map(([, , value]) => value)]
  if (!isCandles) return { msg_type: 'history', history: { times, prices } }
  const candles = points.map(([, epoch, close, high = NaN]) => ({
    epoch,
    open: 1,
    high: Number.isNaN(high) ? 9 : high,
    low: 1,
    close,
  }))
  return { msg_type: 'candles', candles }
}

/** The points that a browser has got and not read yet. */
async function gotBy(browser: FeedBrowser): Promise<string> {
  const points = (await browser.rest()).map(({ tick, ohlc }) => ((tick ?? ohlc) as Message)['point'])
  return points.join(' ')
}

/** Plays a row. @returns what the later browser gets */
async function play(
  t: Test,
  { market, join }: FeedWorld,
  {
    row: [began, before, given, follows],
    symbol,
    ...asked
  }: { row: Row; symbol: string; first: Message; later: Message },
): Promise<string> {
  const isCandles = asked.later['style'] === 'candles'
  const [one, two] = [await join(), await join()]
  const stream = await market.askedBy(one, { ticks_history: symbol, subscribe: 1, ...asked.first })
  reply(stream, { ...history(began, isCandles), subscription: { id: 'h' } })
  for (const point of pointsOf(before)) reply(stream, sent(point, isCandles))
  for (let count = 0; count <= pointsOf(before).length; count++) await one.next()
  two.send({ ticks_history: symbol, subscribe: 1, count: 7, ...asked.later })
  reply(await market.next('ticks_history', symbol), history(given, isCandles))
  t.match(await two.next(), history(given, isCandles))
  for (const point of pointsOf(follows)) reply(stream, sent(point, isCandles))
  await Promise.all(pointsOf(follows).map(() => one.next()))
  return gotBy(two)
}

const LATEST = { end: 'latest' }
const STYLE = { end: 'latest', style: 'candles' }
for (const [what, rows, first, later] of [
  ['the examples of decision 10 are what browsers get', EXAMPLES, LATEST, LATEST],
  ['a history is followed by all later ticks, and by none that it contains', TICKS, LATEST, LATEST],
  ['a stream that began with a history of long ago says nothing of the present', ENDED, { end: 50 }, LATEST],
  [
    'a history that was asked to end before all that is followed by what comes since then',
    BOTH_ENDED,
    { end: 50 },
    { end: 50 },
  ],
  [
    'a history of candles is followed by all later states of them, and by none that may be older',
    CANDLES,
    STYLE,
    STYLE,
  ],
] as const) {
  await test(what, async (t) => {
    t.ok(rows.length > 0)
    const world = await feedWorld(t, { FEED_CACHE_SECONDS: '0' })
    for (const [index, row] of rows.entries()) {
      t.equal(
        await play(t, world, { row, symbol: `R_${index}`, first, later }),
        row[4],
        row.slice(0, 4).join(' | ').slice(0, 200),
      )
    }
  })
}

await test('prices that upstream sends before the history of their stream follow it, unless it contains them', async (t) => {
  const { market, join } = await feedWorld(t, { FEED_CACHE_SECONDS: '0' })
  for (const [index, [early, given, follows, gets, end = 'latest']] of EARLY.entries()) {
    const browser = await join()
    browser.send({ ticks_history: `R_${index}`, subscribe: 1, end })
    const asked = await market.next('ticks_history', `R_${index}`)
    for (const point of pointsOf(early)) reply(asked, sent(point, false))
    reply(asked, { ...history(given, false), subscription: { id: 'h' } })
    for (const point of pointsOf(follows)) reply(asked, sent(point, false))
    t.match(await browser.next(), history(given, false))
    t.equal(await gotBy(browser), gets, `${early} | ${given}`)
  }
})
