import type { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { test, type Test } from 'tap'
import type { WebSocket } from 'ws'
import { BROWSER, CLOSE, UPSTREAM, type Side } from '../../src/sockets/close-codes.ts'
import { SocketEnd } from '../../src/sockets/socket-end.ts'
import { WaitingBytes } from '../../src/sockets/waiting-bytes.ts'
import { asRead, connection } from '../support/sockets/connection.ts'
import { frame } from '../support/sockets/raw-frames.ts'
import { nextEvent, until } from '../support/time/until.ts'

const MIB = 1_048_576
const ignore = (): void => undefined

/** An end on a connection that takes nothing, or everything. @returns whether its bytes have reached this limit */
async function notedEnd(
  t: Test,
  limit: number,
): Promise<{ end: SocketEnd; wire: Socket; isReached: () => Promise<boolean> }> {
  const { socket, wire } = await connection(t)
  let weighed = 0
  const waiting = new WaitingBytes(limit, () => ++weighed)
  const end = new SocketEnd({ socket, wire }, BROWSER, { message: ignore, ended: ignore, waiting })
  t.teardown(() => end.close())
  const isReached = async (): Promise<boolean> => {
    await nextTurn()
    return weighed > 0
  }
  return { end, wire, isReached }
}

const { payload: batched } = asRead(1, 1000)
const alone = Buffer.from(new ArrayBuffer(1000))
const whole = frame({ opcode: 2, payload: alone, masked: false })
for (const [how, bytes, send] of [
  ['a message that came alone', 1000, (end: SocketEnd) => end.send(alone, true, 2000)],
  ['the same, watched', 1000, (end: SocketEnd) => end.send(alone, true, 0)],
  ['a message of a batch', 1000, (end: SocketEnd) => end.send(batched, false, 2000)],
  ['a batch', 3000, (end: SocketEnd) => [batched, batched, batched].map((each) => end.send(each, false, 2000))],
  ['whole frames', 1000, (end: SocketEnd) => end.write(whole, 2000)],
  ['whole frames, watched', 1000, (end: SocketEnd) => end.write(whole, 0)],
  ['a frame in two parts', 1000, (end: SocketEnd) => end.writeParts(whole.subarray(0, 500), whole.subarray(500))],
] as const) {
  await test(`an end notes what its connection does not take at once, and nothing else: ${how}`, async (t) => {
    const reading = await notedEnd(t, 1)
    send(reading.end)
    t.notOk(await reading.isReached(), 'the connection has taken it')
    for (const [limit, isExpected] of [
      [bytes, true],
      // With an overhead for each message, and a header.
      [bytes + 3 * 600, false],
    ] as const) {
      const { end, wire, isReached } = await notedEnd(t, limit)
      // What is corked waits as what the kernel does not take.
      wire.cork()
      send(end)
      t.equal(await isReached(), isExpected, `${limit} bytes`)
    }
  })
}

await test('sockets are weighed when the notes reach the limit, and no sooner again than a step beyond what was found', async (t) => {
  let [held, weighed] = [0, 0]
  const waiting = new WaitingBytes(6400, () => {
    weighed++
    return held
  })
  /** @returns how often they have been weighed by then */
  const add = async (bytes: number): Promise<number> => {
    waiting.add(bytes)
    await nextTurn()
    return weighed
  }
  t.equal(await add(6399), 0)
  t.equal(await add(1), 1)
  t.equal(await add(6399), 1, 'nothing waits, so the notes begin anew')
  held = 7000
  t.equal(await add(1), 2)
  t.equal(await add(99), 2, 'no socket may lose: not for each write')
  t.equal(await add(1), 3)
})

await test('from when the limit is reached until the turn is over, no more than 64 KiB may wait for a peer', async (t) => {
  const waiting = new WaitingBytes(1000, () => 0)
  t.equal(waiting.mostOf(1_000_000), 1_000_000)
  waiting.add(1000)
  t.same(
    [1_000_000, 1024].map((usual) => waiting.mostOf(usual)),
    [65_536, 1024],
  )
  await nextTurn()
  t.equal(waiting.mostOf(1_000_000), 1_000_000)
})

await test('a connection that is closed while bytes wait on it counts until it is gone, and is cut off when too many do', async (t) => {
  const waiting = new WaitingBytes(MIB, () => 0)
  const clients: WebSocket[] = []
  const wires: Socket[] = []
  for (let count = 0; count < 3; count++) {
    const { socket, wire, client } = await connection(t)
    client.pause()
    const end = new SocketEnd({ socket, wire }, BROWSER, { message: ignore, ended: ignore, waiting })
    end.write(frame({ opcode: 2, payload: Buffer.alloc(12 * MIB), masked: false }), 0)
    const { waitingBytes } = end
    t.ok(waitingBytes > 5 * MIB, 'more than the kernel takes')
    end.close({ code: 4408, reason: 'slow_consumer' })
    clients.push(client)
    wires.push(wire)
    t.ok(waiting.closingBytes >= waitingBytes)
  }
  t.ok(waiting.closingBytes <= 16 * MIB, `${waiting.closingBytes} bytes wait`)
  t.equal(wires[0]?.destroyed, true, 'the oldest is cut off')
  t.equal(wires[2]?.destroyed, false)
  const codes = clients.map(async (client) => {
    const closed = nextEvent(client, 'close')
    client.resume()
    return ((await closed) as [number])[0]
  })
  t.equal((await Promise.all(codes)).at(-1), 4408, 'the newest reads all, and why it ends')
  await until(() => waiting.closingBytes === 0, 'nothing waits any more')
})

await test('what the kernel holds for an upstream does not leave once that is cut off because too much waits', async (t) => {
  const waiting = new WaitingBytes(1, () => 0)
  const close = async (side: Side, bytes: number): Promise<Awaited<ReturnType<typeof connection>>> => {
    const opened = await connection(t)
    opened.client.pause()
    const end = new SocketEnd(opened, side, { message: ignore, ended: ignore, waiting })
    end.write(frame({ opcode: 2, payload: Buffer.alloc(bytes), masked: false }), 0)
    end.close(CLOSE.restarting)
    return opened
  }
  const { wire, client } = await close(UPSTREAM, 10 * MIB)
  await close(BROWSER, 20 * MIB)
  t.equal(wire.destroyed, true)
  const { _socket: clientWire } = client as WebSocket & { readonly _socket: Socket }
  clientWire.on('error', ignore)
  client.resume()
  await until(() => clientWire.destroyed, 'upstream reads until its connection is closed')
  // The kernel on this side takes more.
  t.ok(clientWire.bytesRead < MIB, `${clientWire.bytesRead} bytes have arrived`)
})

await test('an unfinished message of more than 64 KiB is noted, and not read on once its sender has lost', async (t) => {
  const { socket, wire, client } = await connection(t)
  let weighed = 0
  const waiting = new WaitingBytes(1_048_576, () => ++weighed)
  const end = new SocketEnd({ socket, wire }, BROWSER, { message: ignore, ended: ignore, waiting })
  client.send(Buffer.alloc(1_000_000), { fin: false })
  await until(() => end.heldBytes >= 1_000_000)
  t.equal(weighed, 0)
  client.send(Buffer.alloc(100_000), { fin: false })
  await until(() => weighed > 0)
  end.close({ code: 1012, reason: 'restarting' })
  t.notOk(wire.writableEnded, 'whoever is closed for another reason may answer')
  const closed = nextEvent(client, 'close')
  const other = await connection(t)
  const loser = new SocketEnd(other, BROWSER, { message: ignore, ended: ignore, waiting })
  other.client.send(Buffer.alloc(100_000), { fin: false })
  await until(() => loser.heldBytes >= 100_000)
  const lost = nextEvent(other.client, 'close')
  loser.close(CLOSE.slowConsumer)
  t.ok(other.wire.writableEnded)
  t.equal(((await lost) as [number])[0], 4408)
  await closed
})
