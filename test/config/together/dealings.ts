import { randomUUID } from 'node:crypto'
import { until } from '../../support/time/until.ts'
import { PUBLIC, TRADING } from '../../support/user.ts'
import { told, type Part } from './part.ts'

/** A user orders, with keys and without. */
export const orders: Part = async (world, expect) => {
  const { settings, servers, executed } = world
  const person = world.ann
  const [one, other = one] = servers
  const count = (key: string): number => executed.filter((each) => each === key).length
  const open = await person.order()
  const before = count('none')
  if (settings['REQUIRE_IDEMPOTENCY_KEY']) {
    expect(open.status === 400 && before === 0, `an order without a key: ${told(open)}`)
  } else expect(open.status === 200 && before === 1, `an order without a key: ${told(open)}`)
  const key = randomUUID()
  const order = () => person.order({ key, at: one })
  const made = await order()
  if (settings['IDEMPOTENCY_MAX_BODY_BYTES'] === '0') {
    expect(made.status === 413 && count(key) === 0, `a body that is too large: ${told(made)}`)
  } else {
    expect(made.status === 200 && count(key) === 1, `an order: ${told(made)}`)
    const again = await person.order({ key, at: other })
    const isKept = settings['IDEMPOTENCY_MAX_ANSWER_BYTES'] !== '0' && settings['IDEMPOTENCY_MAX_KEPT_BYTES'] !== '0'
    const right = isKept
      ? again.status === 200 && again.headers['idempotency-replayed'] === 'true' && again.text === made.text
      : again.status === 409 && again.json['code'] === 'answer_not_kept'
    expect(right, `its repetition: ${told(again)}`)
    const reused = await person.order({ key, at: other, body: '{"amount":2}' })
    expect(reused.status === 422, `its key again: ${told(reused)}`)
    expect(count(key) === 1, `it was executed ${count(key)} times`)
    if (settings['IDEMPOTENCY_MAX_RECORDS'] === '1') {
      const second = await person.order({ key: randomUUID(), at: other })
      const third = await person.order({ key: randomUUID(), at: one })
      expect(second.status === 200 && third.status === 429, `further keys: ${told(second)}, ${told(third)}`)
    }
  }
  const large = await person.order({
    body: 'x'.repeat(100),
    ...(settings['REQUIRE_IDEMPOTENCY_KEY'] && { key: 'big' }),
  })
  const tooLarge =
    settings['MAX_BODY_BYTES'] === '64' ||
    (settings['REQUIRE_IDEMPOTENCY_KEY'] && settings['IDEMPOTENCY_MAX_BODY_BYTES'] === '0')
  const tooMany = settings['REQUIRE_IDEMPOTENCY_KEY'] && settings['IDEMPOTENCY_MAX_RECORDS'] === '1'
  expect(large.status === (tooLarge ? 413 : tooMany ? 429 : 200), `an order of 100 bytes: ${told(large)}`)
}

/** A user trades over sockets. */
export const trading: Part = async (world, expect) => {
  const { settings, servers } = world
  const [one, other = one] = servers
  const person = world.ann
  const socket = await person.socket(TRADING, { at: one }).opened()
  socket.socket.send('hello')
  socket.socket.send(Buffer.from([1, 2, 3]))
  const [text, binary] = await socket.count(2)
  expect(text?.data.toString() === 'hello' && !text.isBinary, `a text comes back as ${text?.data.toString()}`)
  expect(binary?.data.equals(Buffer.from([1, 2, 3])) === true && binary.isBinary, 'binary data do not come back')
  const second = person.socket(TRADING, { at: other })
  second.socket.once('open', () => second.socket.send('again'))
  await second.count(1)
  const isOne = settings['MAX_RELAYS_PER_SESSION'] === '1'
  if (isOne) expect((await second.closed).code === 4429, `a second trading socket: ${(await second.closed).code}`)
  else expect(second.texts[0] === 'again', 'a second trading socket does not work')
  const session = await person.socket('/ws/session', { at: one }).opened()
  await session.count(1)
  const [state] = session.texts
  expect(state?.includes('"authenticated":true') === true, `a session socket says ${state}`)
  const more = person.socket('/ws/session', { at: one })
  await more.count(1)
  if (settings['MAX_SESSION_SOCKETS'] === '1')
    expect((await more.closed).code === 4429, 'a second session socket opens')
  else expect(more.texts.length > 0, 'a second session socket does not open')
  if (settings['MAX_MESSAGE_BYTES']) {
    second.socket.terminate()
    socket.socket.send('x'.repeat(513))
    expect((await socket.closed).code === 1009, `a message that is too large: ${(await socket.closed).code}`)
  }
  for (const each of [socket, second, session, more]) each.socket.close()
  await until(() => world.upstream.open === 0, 'upstream has no socket')
}

type Message = Record<string, unknown>

const code = ({ error }: Message): unknown => (error as Message | undefined)?.['code']

/** Two visitors watch the market. */
export const market: Part = async (world, expect) => {
  const { settings, servers } = world
  const [one] = servers
  const person = world.person('visitor')
  const [a, b] = [await person.socket(PUBLIC, { at: one }).opened(), await person.socket(PUBLIC, { at: one }).opened()]
  const ask = async (socket: typeof a, message: Message): Promise<Message> => {
    const from = socket.received.length
    socket.socket.send(JSON.stringify(message))
    await socket.count(from + 1)
    return JSON.parse(socket.texts[from] ?? '{}') as Message
  }
  for (const [at, socket] of [a, b].entries()) {
    const tick = await ask(socket, { ticks: 'R_100', subscribe: 1, req_id: 7 + at })
    expect(tick['req_id'] === 7 + at && tick['tick'] !== undefined, `a subscription gets ${JSON.stringify(tick)}`)
    const symbols = await ask(socket, { active_symbols: 'brief', req_id: 20 })
    expect(symbols['answered'] === true && symbols['req_id'] === 20, `symbols: ${JSON.stringify(symbols)}`)
  }
  const next = await ask(a, { ticks: 'R_50', subscribe: 1, req_id: 30 })
  const isFull = settings['FEED_SUBSCRIPTIONS'] === '1'
  expect(isFull ? code(next) === 'RateLimit' : next['tick'] !== undefined, `another stream: ${JSON.stringify(next)}`)
  const proposal = await ask(a, { proposal: 1, amount: 10, req_id: 40 })
  const isRefused = settings['PUBLIC_FEED'] === 'shared' && settings['FEED_MAX_OWN_SOCKETS'] === '0'
  expect(
    isRefused ? code(proposal) === 'RateLimit' : proposal['answered'] === true,
    `a proposal: ${JSON.stringify(proposal)}`,
  )
  if (settings['MAX_PUBLIC_RELAYS_PER_IP'] === '2') {
    const third = person.socket(PUBLIC, { at: one })
    expect((await third.closed).code === 4429, `a third public socket: ${(await third.closed).code}`)
  }
  const expected = settings['PUBLIC_FEED'] === 'shared' ? 3 : 2
  expect(world.upstream.open <= expected, `${world.upstream.open} upstream sockets for two browsers`)
  for (const each of [a, b]) each.socket.close()
}
