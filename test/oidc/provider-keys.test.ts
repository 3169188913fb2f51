import { exportJWK, SignJWT } from 'jose'
import { generateKeyPairSync } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'tap'
import { ProviderKeys } from '../../src/oauth/provider-keys.ts'

/** A key of a provider that does not name its keys. */
async function namelessKey() {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const jwk = await exportJWK(publicKey)
  return { jwk, sign: () => new SignJWT({}).setProtectedHeader({ alg: 'ES256' }).sign(privateKey) }
}

await test('A provider that does not name its keys may change them: a signature that does not fit causes one request for them', async (t) => {
  const [first, second, foreign] = [await namelessKey(), await namelessKey(), await namelessKey()]
  let published = first.jwk
  let requests = 0
  const keys = new ProviderKeys(async () => {
    requests++
    return { keys: [published] }
  })
  t.match(await keys.check(await first.sign(), 'logout'), { is: 'valid' })
  published = second.jwk
  t.match(await keys.check(await second.sign(), 'logout'), { is: 'valid' })
  t.equal(requests, 2)
  t.match(await keys.check(await foreign.sign(), 'logout'), { is: 'away' }, 'the request of this minute is spent')
  t.match(await keys.check(await foreign.sign(), 'login'), { is: 'invalid' }, 'a login has one of its own')
  t.equal(requests, 3)
})

await test('A key that is not among those that were fetched for this very token is looked for no further', async (t) => {
  const [first, foreign] = [await namelessKey(), await namelessKey()]
  let requests = 0
  const keys = new ProviderKeys(async () => {
    requests++
    return { keys: [first.jwk] }
  })
  t.match(await keys.check(await foreign.sign(), 'logout'), { is: 'invalid' })
  t.equal(requests, 1)
  t.match(await keys.check(await foreign.sign(), 'logout'), { is: 'away' }, 'the request of this minute is spent')
  t.equal(requests, 1)
})

await test('A token that joins a request for the keys causes one of its own, since the keys may have changed meanwhile', async (t) => {
  const [first, second] = [await namelessKey(), await namelessKey()]
  let requests = 0
  const keys = new ProviderKeys(async () => ({ keys: [++requests === 1 ? first.jwk : second.jwk] }))
  const tokens = [await first.sign(), await second.sign()]
  const checks = tokens.map((token) => keys.check(token, 'login'))
  t.match(await Promise.all(checks), [{ is: 'valid' }, { is: 'valid' }])
  t.equal(requests, 2)
})

await test('A login that joins the request of another token, and does not find its key, may try again', async (t) => {
  const [first, second, foreign] = [await namelessKey(), await namelessKey(), await namelessKey()]
  let published = first.jwk
  const keys = new ProviderKeys(async () => {
    const response = { keys: [published] }
    await delay(50)
    return response
  })
  t.match(await keys.check(await first.sign(), 'login'), { is: 'valid' })
  const [logout, login] = [await foreign.sign(), await second.sign()]
  const checks = [keys.check(logout, 'logout'), keys.check(login, 'login')]
  t.match(await Promise.all(checks), [{ is: 'invalid' }, { is: 'away' }])
  published = second.jwk
  t.match(await keys.check(await second.sign(), 'login'), { is: 'valid' })
})

await test('A login with a new key waits for the keys while the provider cannot be reached, and does not fail for good', async (t) => {
  const [first, second] = [await namelessKey(), await namelessKey()]
  let isUp = true
  const keys = new ProviderKeys(async () => {
    if (!isUp) throw new Error('not reachable')
    return { keys: [first.jwk] }
  })
  t.match(await keys.check(await first.sign(), 'login'), { is: 'valid' })
  isUp = false
  for (let login = 0; login < 3; login++) {
    t.match(await keys.check(await second.sign(), 'login'), { is: 'away' }, 'provider_unavailable')
  }
  t.match(await keys.check(await first.sign(), 'login'), { is: 'valid' })
})
