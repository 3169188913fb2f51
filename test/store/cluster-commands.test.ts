import { syncBuiltinESMExports } from 'node:module'
import promises, { setImmediate as turn } from 'node:timers/promises'
import { ErrorReply } from '@redis/client'
import { test } from 'tap'
import { ClusterCommands } from '../../src/store/links/cluster-commands.ts'
import type { ClusterNodes } from '../../src/store/links/cluster-nodes.ts'
import { slotOf } from '../../src/store/links/cluster-slots.ts'
import { replace } from '../support/time/replace.ts'

const KEY = 'bff:1:one'
const refusal = (text: string): Error => new ErrorReply(text)

/** Commands of a Cluster whose nodes, named by their ports, answer in turn what a test says. */
function commandsOf(replies: Readonly<Record<number, unknown[]>>) {
  const log: unknown[] = []
  const world = {
    owner: 7000,
    isOpen: true,
    asking: async (): Promise<unknown> => 'OK',
    reread: async (): Promise<unknown> => true,
  }
  const nodeAt = (port: number) => ({
    host: 'asked',
    port,
    connection: {
      opened: async () => {
        if (!world.isOpen) throw new Error('closed')
        return {
          sendCommand: (words: string[]) => (log.push([port, ...words]), world.asking()),
          send: async (...args: unknown[]) => {
            log.push([port, ...args])
            const [reply = 'OK'] = replies[port]?.splice(0, 1) ?? []
            if (reply instanceof Error) throw reply
            return reply
          },
        }
      },
    },
  })
  const nodes = new Map([7000, 7001].map((port) => [port, nodeAt(port)]))
  const all = {
    ownerOf: (key: string) => (log.push(['owner of', key]), nodes.get(world.owner)),
    at: ({ host, port }: { host: string; port: number }) => (log.push(['at', host, port]), nodes.get(port)),
    noteMoved: (slot: number, { host, port }: { host: string; port: number }) => (
      log.push(['moved', slot, host, port]),
      nodes.get(port)
    ),
    reread: (except: { port: number }) => (log.push(['reread', except.port]), world.reread()),
  } as unknown as ClusterNodes
  return { commands: new ClusterCommands(all), world, logged: () => log.splice(0) }
}

const SENT = [7000, KEY, ['GET', KEY], false]

await test('a command goes to the owner of its key, and says whether its reply is wanted as bytes', async (t) => {
  const { commands, logged } = commandsOf({ 7000: ['one', 'two', 'three', null] })
  t.equal(await commands.send(KEY, ['GET', KEY]), 'one')
  t.equal(await commands.send(KEY, ['GET', KEY], true), 'two')
  t.same(logged(), [['owner of', KEY], SENT, ['owner of', KEY], [7000, KEY, ['GET', KEY], true]])
  t.same(await commands.readMany([KEY, 'other']), ['three', null])
  t.same(logged(), [['owner of', KEY], ['owner of', 'other'], SENT, [7000, 'other', ['GET', 'other'], false]])
})

await test('a command for which there is no connection was not sent', async (t) => {
  const { commands, world, logged } = commandsOf({})
  world.isOpen = false
  await t.rejects(commands.send(KEY, ['GET', KEY]), { name: 'Unsent', cause: { message: 'closed' } })
  t.same(logged(), [['owner of', KEY]])
})

await test('a slot that has moved is noted with its new owner, and the slots are read from another node', async (t) => {
  const { commands, logged } = commandsOf({ 7000: [refusal('MOVED 1 :7001')] })
  t.equal(await commands.send(KEY, ['GET', KEY]), 'OK')
  t.same(logged(), [
    ['owner of', KEY],
    SENT,
    ['moved', slotOf(KEY), 'asked', 7001],
    ['reread', 7000],
    [7001, KEY, ['GET', KEY], false],
  ])
})

await test('a slot that is being moved is asked for where it goes, whatever the node says to ASKING', async (t) => {
  const { commands, world, logged } = commandsOf({ 7000: [refusal('ASK 1 :7001')] })
  world.asking = () => Promise.reject(new Error('lost'))
  t.equal(await commands.send(KEY, ['GET', KEY]), 'OK')
  t.same(logged(), [['owner of', KEY], SENT, ['at', 'asked', 7001], [7001, 'ASKING'], [7001, KEY, ['GET', KEY], false]])
})

await test('where the Cluster is down a command goes to another owner if there is one by then', async (t) => {
  const down = refusal('CLUSTERDOWN Hash slot not served')
  const { commands, world, logged } = commandsOf({ 7000: [down, down] })
  await t.rejects(commands.send(KEY, ['GET', KEY]), down)
  t.same(logged(), [['owner of', KEY], SENT, ['reread', 7000], ['owner of', KEY]])
  world.reread = async () => {
    await turn()
    world.owner = 7001
  }
  t.equal(await commands.send(KEY, ['GET', KEY]), 'OK')
})

await test('a command only some of whose keys have moved waits for a moment before it is sent again', async (t) => {
  const pauses: unknown[] = []
  const pause = Promise.withResolvers<undefined>()
  // Those who have imported it get the new one.
  t.teardown(syncBuiltinESMExports)
  replace(t, promises, 'setTimeout', (ms: number) => (pauses.push(ms), pause.promise))
  syncBuiltinESMExports()
  const { commands, logged } = commandsOf({ 7000: [refusal('TRYAGAIN Multiple keys request during rehashing')] })
  const sending = commands.send(KEY, ['GET', KEY])
  await turn()
  t.same([pauses, logged()], [[50], [['owner of', KEY], SENT]])
  pause.resolve(undefined)
  t.equal(await sending, 'OK')
  t.same(logged(), [SENT])
})

await test('any other failure is one of the command, which may have been carried out', async (t) => {
  for (const error of [refusal('OOM full'), new Error('MOVED 1 :7001')]) {
    const { commands, logged } = commandsOf({ 7000: [error] })
    await t.rejects(commands.send(KEY, ['GET', KEY]), error)
    t.same(logged(), [['owner of', KEY], SENT])
  }
})

await test('a command is sent on five times at most', async (t) => {
  const { commands, logged } = commandsOf({
    7000: Array.from({ length: 4 }, () => refusal('MOVED 1 :7001')),
    7001: Array.from({ length: 3 }, () => refusal('MOVED 1 :7000')),
  })
  await t.rejects(commands.send(KEY, ['GET', KEY]), { message: 'MOVED 1 :7000' })
  t.equal(logged().filter((entry) => Array.isArray(entry) && typeof entry[0] === 'number').length, 6)
})
