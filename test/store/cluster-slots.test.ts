import { test } from 'tap'
import { readSlots, slotOf, targetOf } from '../../src/store/links/cluster-slots.ts'
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
