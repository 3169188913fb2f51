import { test } from 'tap'
import { readSlots } from '../../src/store/links/cluster-slots.ts'
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
