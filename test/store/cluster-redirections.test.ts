import { ErrorReply } from '@redis/client'
import { test } from 'tap'
import { ClusterCommands } from '../../src/store/links/cluster-commands.ts'
import type { ClusterNodes } from '../../src/store/links/cluster-nodes.ts'

const KEY = 'bff:1:one'

/** Two nodes by their ports: each replies in turn what a test says, and notes what it was sent. */
function twoNodes(replies: Readonly<Record<number, (string | Error)[]>>) {
  const sent: string[] = []
  const nodes = [7000, 7001].map((port) => ({
    host: '127.0.0.1',
    port,
    connection: {
      opened: async () => ({
        sendCommand: async (words: string[]) => void sent.push(`${port} ${words.join(' ')}`),
        send: async (_key: string, words: string[]) => {
          sent.push(`${port} ${words.join(' ')}`)
          const reply = replies[port]?.shift() ?? 'OK'
          if (reply instanceof Error) throw reply
          return reply
        },
      }),
    },
  }))
  const [owner, other] = nodes
  let rereads = 0
  const all = {
    ownerOf: () => owner,
    at: ({ port }: { port: number }) => nodes.find((node) => node.port === port),
    noteMoved: () => other,
    reread: async () => void rereads++,
  } as unknown as ClusterNodes
  return { commands: new ClusterCommands(all), sent, rereads: () => rereads }
}

const refusal = (text: string): Error => new ErrorReply(text)

await test('a key whose slot is being moved is asked for at the node to which it moves, with ASKING, and only this time', async (t) => {
  const { commands, sent, rereads } = twoNodes({ 7000: [refusal('ASK 1 127.0.0.1:7001')] })
  t.equal(await commands.send(KEY, ['GET', KEY]), 'OK')
  t.equal(await commands.send(KEY, ['DEL', KEY]), 'OK')
  t.same(sent, [`7000 GET ${KEY}`, '7001 ASKING', `7001 GET ${KEY}`, `7000 DEL ${KEY}`])
  t.equal(rereads(), 0)
})

await test('a key that has moved is sent on without ASKING, and the slots are read anew', async (t) => {
  const { commands, sent, rereads } = twoNodes({ 7000: [refusal('MOVED 1 127.0.0.1:7001')] })
  t.equal(await commands.send(KEY, ['GET', KEY]), 'OK')
  t.same(sent, [`7000 GET ${KEY}`, `7001 GET ${KEY}`])
  t.equal(rereads(), 1)
})

await test('a command whose keys move one after the other is tried again at the same node, as it was sent there', async (t) => {
  // The pause keeps no process alive.
  const alive = setInterval(() => undefined, 1000)
  t.teardown(() => clearInterval(alive))
  const tryAgain = refusal('TRYAGAIN Multiple keys request during rehashing of slot')
  const { commands, sent } = twoNodes({ 7000: [refusal('ASK 1 127.0.0.1:7001')], 7001: [tryAgain] })
  t.equal(await commands.send(KEY, ['EVAL']), 'OK')
  t.same(sent, ['7000 EVAL', '7001 ASKING', '7001 EVAL', '7001 ASKING', '7001 EVAL'])
})

await test('nodes that send a command to each other are given up after five redirections', async (t) => {
  const [there, back] = ['ASK 1 127.0.0.1:7001', 'ASK 1 127.0.0.1:7000'].map(refusal) as [Error, Error]
  const { commands, sent } = twoNodes({ 7000: [there, there, there], 7001: [back, back, back] })
  await t.rejects(commands.send(KEY, ['GET', KEY]), { message: back.message })
  t.equal(sent.filter((each) => !each.endsWith('ASKING')).length, 6)
})
