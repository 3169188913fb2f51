import { test } from 'tap'
import { KeptBytes } from '../../src/sockets/feed/kept-bytes.ts'
import { until } from '../support/until.ts'

const MIB = 1_048_576

await test('KeptBytes keeps 16 MiB at most, for as long as it was told', async (t) => {
  const kept = new KeptBytes()
  let over = 0
  const onOver = (): void => void over++
  t.equal(kept.keep(1, 0, onOver), false, 'nothing is kept for no time')
  t.equal(kept.keep(10 * MIB, 20, onOver), true)
  t.equal(kept.keep(6 * MIB, 20, onOver), true)
  t.equal(kept.keep(1, 20, onOver), false, 'there is no room for one byte more')
  await until(() => over === 2)
  t.equal(kept.keep(16 * MIB, 20, onOver), true, 'there is room again')
  t.equal(kept.keep(1, 20, onOver), false)
  await until(() => over === 3)
})
