import { test } from 'tap'
import { SecretVolume } from '../support/config/secret-volume.ts'
import { testServer } from '../support/server/test-server.ts'
import { until } from '../support/time/until.ts'
import { startWorld } from '../support/world.ts'
import { scripted } from '../support/login/token-endpoint.ts'
import { exactly } from '../support/exactly.ts'

const [OLD, NEW] = ['the-old-token-of-operators-of-32-characters', 'the-new-token-of-operators-of-32-characters']

await test('GET /controls takes a new OPS_TOKEN once its file has it, and the old one no more; /readyz warns of a wrong file', async (t) => {
  const { settings } = await startWorld(t, { provider: scripted })
  const volume = new SecretVolume(t.testdir({}), { OPS_TOKEN: OLD })
  const { opsUrl } = await testServer(t, { ...settings, ...volume.settings })
  const operate = async (token: string): Promise<number> =>
    (await fetch(`${opsUrl}/controls`, { headers: { authorization: `Bearer ${token}` } })).status
  const warnings = async (): Promise<unknown> =>
    ((await (await fetch(`${opsUrl}/readyz`)).json()) as { warnings: unknown }).warnings
  t.equal(await operate(OLD), 200)
  t.equal(await operate(NEW), 401)
  volume.change({ OPS_TOKEN: 'short' })
  await until(async () => JSON.stringify(await warnings()).includes('OPS_TOKEN'), 'a warning')
  t.match(await warnings(), exactly(/^OPS_TOKEN has not changed with its file: it must be 32 to 1024 printable/))
  t.equal(await operate(OLD), 200)
  volume.change({ OPS_TOKEN: NEW })
  await until(async () => (await operate(NEW)) === 200, 'the new token')
  t.equal(await operate(OLD), 401)
  t.same(await warnings(), [])
})
