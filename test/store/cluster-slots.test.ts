import { test } from 'tap'
import { clusterSize, MEMBER_ADVICE, readSlots, slotOf, targetOf } from '../../src/store/links/cluster-slots.ts'
import type { Connection } from '../../src/store/links/connection.ts'

await test('a master that owns several ranges of slots is one and the same in each', async (t) => {
  const ranges = [
    [0, 99, ['one', 1], ['replica', 3]],
    [100, 199, ['other', 2]],
    [200, 299, ['one', 1]],
  ]
  const connection = { sendCommand: async () => ranges } as unknown as Pick<Connection, 'sendCommand'>
  const { masters, replicas, owners } = await readSlots(connection, { host: 'asked', port: 0 })
  t.match([masters, replicas], [[{ host: 'one' }, { host: 'other' }], [{ host: 'replica' }]])
  const [one, other] = masters
  t.ok([0, 99, 200, 299].every((slot) => owners[slot] === one))
  t.equal(owners[100], other)
  t.equal(owners[300], undefined)
})

await test('A node that names no host is reached at the host of the node that was asked, each at its own port', async (t) => {
  // Redis writes "?" for a node whose host name it does not know, and leaves out a host that it is told to keep to itself.
  for (const unknown of ['?', '', null]) {
    const ranges = [[0, 99, [unknown, 1], [unknown, 2]]]
    const connection = { sendCommand: async () => ranges } as unknown as Pick<Connection, 'sendCommand'>
    const { masters, replicas } = await readSlots(connection, { host: 'asked', port: 6379 })
    const named = `named ${JSON.stringify(unknown)}`
    t.same([masters, replicas], [[{ host: 'asked', port: 1 }], [{ host: 'asked', port: 2 }]], named)
  }
})

await test('A redirection is followed to the host that it names, or else to the port alone that it names', async (t) => {
  const asked = { host: 'asked', port: 6379 }
  for (const [redirection, host] of [
    ['MOVED 3999 10.0.0.1:7001', '10.0.0.1'],
    ['ASK 3999 2001:db8::1:7001', '2001:db8::1'],
    ['MOVED 3999 :7001', 'asked'],
    ['ASK 3999 ?:7001', 'asked'],
  ] as const) {
    t.same(targetOf(redirection, asked), { host, port: 7001 }, redirection)
  }
})

await test('The slot of a key is that of the whole key, or of what is in its first braces', async (t) => {
  // The example of the specification of Redis Cluster.
  t.equal(slotOf('123456789'), 0x31c3)
  t.equal(slotOf('{123456789}:{other}'), 0x31c3)
  t.equal(slotOf('bff:1:{123456789}'), 0x31c3)
  t.not(slotOf('{}one'), slotOf('{}other'), 'empty braces have no special meaning')
  t.not(slotOf('{}{123456789}'), 0x31c3, 'nor do those that follow them')
})

await test('A range of slots without a master is no answer', async (t) => {
  const connection = { sendCommand: async () => [[0, 99]] } as unknown as Pick<Connection, 'sendCommand'>
  await t.rejects(readSlots(connection, { host: 'asked', port: 0 }), { message: 'a range of slots has no master' })
})

await test('A server tells how many masters its Cluster has, and is one where it is a node of none', async (t) => {
  const asked: unknown[] = []
  const sizeOf = (isNode: string | undefined) =>
    clusterSize({
      info: async (section: string) => (asked.push(section), { ...(isNode && { cluster_enabled: isNode }) }),
      sendCommand: async (words: unknown) => (
        asked.push(words),
        [
          [0, 99, ['one', 1]],
          [100, 199, ['other', 2]],
        ]
      ),
    } as unknown as Pick<Connection, 'info' | 'sendCommand'>)
  t.same([await sizeOf('0'), await sizeOf(undefined)], [1, 1])
  t.same(asked.splice(0), ['cluster', 'cluster'])
  t.equal(await sizeOf('1'), 2)
  t.same(asked, ['cluster', ['CLUSTER', 'SLOTS']])
  t.match(MEMBER_ADVICE, /redis\+cluster:\/\//, 'an operator is told how to name all of them')
})
