import type { Test } from 'tap'
import { SocketError, type PublicSocket, type TradingSocket } from '../../client/dist/client.js'
import { KINDS, type DrivenClient, type DrivenServer } from '../support/client/driven-client.ts'
import { failure, reaches } from '../support/client/page-client.ts'
import { sideBySide } from '../support/time/side-by-side.ts'
import { until } from '../support/time/until.ts'
import { exactly } from '../support/exactly.ts'

const BUY = { buy: 'a-proposal', price: 10 } as const
const isOpen = (socket: PublicSocket): Promise<void> => until(() => socket.status().state === 'open', 'open')
const count = ({ messages }: DrivenServer, operation: string): number =>
  messages.filter(({ message }) => operation in message).length

const tests: Record<string, (t: Test) => Promise<void>> = {}

for (const [kind, start] of KINDS) {
  const trading = async (t: Test): Promise<DrivenClient & { socket: TradingSocket }> => {
    const world = await start(t)
    await world.server.logIn()
    const socket = world.client.tradingSocket('VRTC100')
    await isOpen(socket)
    return { ...world, socket }
  }

  tests[`${kind}: a request waits for the connection and gets its reply, which listen() sees too`] = async (t) => {
    const { client, server } = await start(t)
    server.reply('time', { time: 1_700_000_000 })
    server.reply('statement', { error: { code: 'RateLimit', message: 'slowly' } })
    const socket = client.publicSocket()
    const heard: unknown[] = []
    socket.listen((message) => heard.push(message['time']))
    t.equal(socket.status().state, 'waiting')
    const answer = await socket.request({ time: 1 })
    t.match(answer, { time: 1_700_000_000, req_id: Number })
    t.same(heard.filter(Boolean), [1_700_000_000])
    const refused = { name: 'SocketError', code: 'RateLimit', message: 'slowly', outcome: undefined }
    t.match(await failure(socket.request({ statement: 1 })), refused)
    socket.close()
    t.match(await failure(socket.request({ time: 1 })), { code: 'closed' })
  }

  tests[`${kind}: equal streams share a subscription, which is made again after a lost connection and then forgotten`] =
    async (t) => {
      const { client, server } = await start(t)
      server.reply('ticks', { tick: { epoch: 1, quote: 1 } })
      const socket = client.publicSocket()
      const quotes: number[] = []
      const stops = [1, 2].map(() => socket.subscribe({ ticks: 'R_100' }, ({ tick }) => quotes.push(tick.quote)))
      const other = socket.subscribe({ ticks: 'R_50' }, ({ tick }) => tick.quote !== 1 && t.fail('not its own'))
      await until(() => quotes.length === 2)
      server.push({ ticks: 'R_100' }, { tick: { epoch: 2, quote: 2 } })
      await until(() => quotes.length === 4)
      const waits = reaches(socket, 'waiting')
      server.disconnect()
      await waits
      await until(() => quotes.length === 6)
      server.push({ ticks: 'R_100' }, { tick: { epoch: 3, quote: 3 } })
      await until(() => quotes.length === 8)
      t.same(quotes, [1, 1, 2, 2, 1, 1, 3, 3])
      t.equal(count(server, 'ticks'), 4)
      for (const stop of [...stops, other]) stop()
      await until(() => count(server, 'forget') === 2)
      server.push({ ticks: 'R_100' }, { tick: { epoch: 4, quote: 4 } })
      await socket.request({ time: 1 }).catch(() => undefined)
      t.equal(quotes.length, 8)
    }

  tests[`${kind}: a refused stream reports the error of the trading service`] = async (t) => {
    const { client, server } = await start(t)
    server.reply('ticks', { error: { code: 'InvalidSymbol', message: 'unknown' } })
    const errors: SocketError[] = []
    client.publicSocket().subscribe(
      { ticks: 'NONE' },
      () => t.fail('it was refused'),
      (error) => errors.push(error),
    )
    await until(() => errors.length === 1)
    t.match(errors, exactly({ code: 'InvalidSymbol', message: 'unknown' }))
  }

  tests[`${kind}: a command is sent once; without a connection it is not_sent`] = async (t) => {
    const { client, server } = await start(t)
    await server.logIn()
    server.reply('buy', { buy: { contract_id: 7 } })
    const socket = client.tradingSocket('VRTC100')
    t.match(await failure(socket.command(BUY)), { code: 'not_sent', outcome: undefined })
    await isOpen(socket)
    t.match(await socket.command(BUY), { buy: { contract_id: 7 } })
    server.reply('buy', { error: { code: 'InvalidPrice', message: 'too low' } })
    t.match(await failure(socket.command(BUY)), { code: 'InvalidPrice', outcome: undefined })
    t.equal(count(server, 'buy'), 2)
  }

  tests[
    `${kind}: a command whose connection is lost, or that gets no reply, has an unknown outcome and is not repeated`
  ] = async (t) => {
    const { server, socket } = await trading(t)
    server.reply('buy', () => undefined)
    t.match(await failure(socket.command(BUY, { timeoutMs: 50 })), { code: 'timeout', outcome: 'unknown' })
    server.reply('buy', () => void server.disconnect())
    const error = await failure(socket.command(BUY))
    t.ok(error instanceof SocketError)
    t.match(error, { code: 'connection_lost', closeCode: 1006, outcome: 'unknown' })
    await isOpen(socket)
    t.equal(count(server, 'buy'), 2)
  }

  tests[`${kind}: a trading socket ends with the session, and needs one`] = async (t) => {
    const { client, server, socket } = await trading(t)
    const errors: SocketError[] = []
    socket.subscribe(
      { balance: 1 },
      () => undefined,
      (error) => errors.push(error),
    )
    await server.endSession()
    await until(() => socket.status().state === 'ended')
    t.match(socket.status(), { code: 4401, reason: 'session_expired' })
    t.match(errors, exactly({ code: 'ended', closeCode: 4401 }))
    const other = client.tradingSocket('VRTC200')
    await until(() => other.status().state === 'ended')
    t.match(other.status(), { code: 4401, reason: 'login_required' })
    t.throws(() => client.tradingSocket('no account'), TypeError)
  }

  tests[`${kind}: while the network is down a socket waits, and requests are answered when it is up again`] = async (
    t,
  ) => {
    const { client, server } = await start(t)
    server.reply('time', { time: 1 })
    const socket = client.publicSocket()
    await isOpen(socket)
    const waits = reaches(socket, 'waiting')
    server.setNetwork('down')
    await waits
    t.match(socket.status(), { code: 1006 })
    const answer = socket.request({ time: 1 })
    server.setNetwork('up')
    t.match(await answer, { time: 1 })
  }

  tests[`${kind}: a chart has the history and then every price`] = async (t) => {
    const { client, server } = await start(t)
    server.reply('ticks', { tick: { epoch: 3, quote: 30 } })
    server.reply('ticks_history', { history: { times: [1, 2, 3], prices: [10, 20, 30] } })
    const chart = client.publicSocket().series({ symbol: 'R_100', style: 'ticks', count: 3 })
    await until(() => chart.get().points.length === 3)
    server.push({ ticks: 'R_100' }, { tick: { epoch: 4, quote: 40 } })
    await until(() => chart.get().points.at(-1)?.epoch === 4)
    t.same(
      chart.get().points.map(({ quote }) => quote),
      [20, 30, 40],
    )
    chart.stop()
  }

  tests[`${kind}: a price an hour ahead is left out once the client knows the time`] = async (t) => {
    const { client, server } = await start(t)
    const now = Math.floor(Date.now() / 1000)
    server.reply('time', { time: now })
    server.reply('ticks', { tick: { epoch: now, quote: 1 } })
    server.reply('ticks_history', { history: { times: [now], prices: [1] } })
    const chart = client.publicSocket().series({ symbol: 'R_100', style: 'ticks', count: 9 })
    await until(() => chart.get().points.length === 1 && client.serverNow() !== undefined)
    for (const epoch of [now + 3600, now + 2, now + 1]) server.push({ ticks: 'R_100' }, { tick: { epoch, quote: 2 } })
    await until(() => chart.get().points.length === 3)
    t.same(
      chart.get().points.map(({ epoch }) => epoch - now),
      [0, 1, 2],
    )
    chart.stop()
  }

  tests[`${kind}: an id beyond 2^53 is sent as its digits, and comes back as a text of them`] = async (t) => {
    const { server, socket } = await trading(t)
    const contract_id = '9007199254740993'
    server.reply('sell', ({ sell }) => ({ sell: { contract_id: sell } }))
    t.match(await socket.command({ sell: contract_id, price: 0 }), { sell: { contract_id } })
    t.match(server.messages.findLast(({ message }) => 'sell' in message)?.message, { sell: contract_id })
  }

  tests[`${kind}: close() rejects what is open and closes the connection after the last socket`] = async (t) => {
    const { client, server } = await start(t)
    server.reply('time', () => undefined)
    const [first, second] = [client.publicSocket(), client.publicSocket()]
    await isOpen(first)
    const open = failure(first.request({ time: 1 }))
    first.close()
    t.match(await open, { code: 'closed' })
    t.equal(second.status().state, 'open')
    client.close()
    t.match(second.status(), { state: 'ended', code: 1000 })
  }
}

await sideBySide(tests)
