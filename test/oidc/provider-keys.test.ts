import { exportJWK, SignJWT, type JWK } from 'jose'
import { generateKeyPairSync } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'tap'
import { ProviderKeys } from '../../src/oauth/provider-keys.ts'
import { stoppedClocks } from '../support/time/stopped-clocks.ts'
import { until } from '../support/time/until.ts'

/** Not `invalid`, which a text would match. */
const VALID = { is: /^valid$/ }

/** A key of a provider that does not name its keys. */
async function namelessKey() {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const jwk = await exportJWK(publicKey)
  return {
    jwk,
    sign: (header: object = {}) => new SignJWT({}).setProtectedHeader({ alg: 'ES256', ...header }).sign(privateKey),
  }
}

await test('A provider that does not name its keys may change them: a signature that does not fit causes one request for them', async (t) => {
  const [first, second, foreign] = [await namelessKey(), await namelessKey(), await namelessKey()]
  let published = first.jwk
  let requests = 0
  const keys = new ProviderKeys(async () => {
    requests++
    return { keys: [published] }
  })
  t.match(await keys.check(await first.sign(), 'logout'), VALID)
  published = second.jwk
  t.match(await keys.check(await second.sign(), 'logout'), VALID)
  t.equal(requests, 2)
  t.match(await keys.check(await foreign.sign(), 'logout'), { is: 'away' }, 'the request of this minute is spent')
  t.match(await keys.check(await foreign.sign(), 'login'), { is: 'invalid' }, 'a login has one of its own')
  t.equal(requests, 3)
})

await test('Logouts that wait for each other do not all wait for keys that hang: for a second after one request has failed none asks again', async (t) => {
  const pass = stoppedClocks(t)
  const key = await namelessKey()
  let requests = 0
  const keys = new ProviderKeys(async () => {
    requests++
    pass(3000)
    throw new Error('no response in time')
  })
  const token = await key.sign()
  for (let logout = 0; logout < 3; logout++) t.match(await keys.check(token, 'logout'), { is: 'away' })
  t.equal(requests, 1)
  pass(999)
  t.match(await keys.check(token, 'logout'), { is: 'away' })
  t.equal(requests, 1)
  t.match(await keys.check(token, 'login'), { is: 'away' })
  t.equal(requests, 2, 'a login always asks')
  pass(1000)
  t.match(await keys.check(token, 'logout'), { is: 'away' })
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
  t.match(await Promise.all(checks), [VALID, VALID])
  t.equal(requests, 2)
})

await test('A login that joins the request of another token, and does not find its key, may try again', async (t) => {
  const [first, second, foreign] = [await namelessKey(), await namelessKey(), await namelessKey()]
  let published = first.jwk
  let requests = 0
  const keys = new ProviderKeys(async () => {
    const response = { keys: [published] }
    requests++
    await delay(300)
    return response
  })
  t.match(await keys.check(await first.sign(), 'login'), VALID)
  const [logout, login] = [await foreign.sign(), await second.sign()]
  const checks = [keys.check(logout, 'logout')]
  await until(() => requests === 2)
  checks.push(keys.check(login, 'login'))
  t.match(await Promise.all(checks), [{ is: 'invalid' }, { is: 'away' }])
  published = second.jwk
  t.match(await keys.check(await second.sign(), 'login'), VALID)
})

await test('A login with a new key waits for the keys while the provider cannot be reached, and does not fail for good', async (t) => {
  const [first, second] = [await namelessKey(), await namelessKey()]
  let isUp = true
  const keys = new ProviderKeys(async () => {
    if (!isUp) throw new Error('not reachable')
    return { keys: [first.jwk] }
  })
  t.match(await keys.check(await first.sign(), 'login'), VALID)
  isUp = false
  for (let login = 0; login < 3; login++) {
    t.match(await keys.check(await second.sign(), 'login'), { is: 'away' }, 'provider_unavailable')
  }
  t.match(await keys.check(await first.sign(), 'login'), VALID)
})

await test('In a set of several keys, one may lack a name: a token that names no key, or a key under a new name, is signed with it', async (t) => {
  const [named, other, nameless] = [await namelessKey(), await namelessKey(), await namelessKey()]
  const keys = () =>
    new ProviderKeys(async () => ({ keys: [{ ...named.jwk, kid: 'a' }, { ...other.jwk, kid: 'b' }, nameless.jwk] }))
  t.match(await keys().check(await nameless.sign(), 'login'), VALID, 'a token without a name')
  t.match(await keys().check(await nameless.sign({ kid: 'c' }), 'login'), VALID, 'a name that no key has')
  t.match(await keys().check(await other.sign({ kid: 'b' }), 'login'), VALID)
  for (const kid of [null, '']) {
    const unnamed = { ...nameless.jwk, kid } as unknown as JWK
    const set = new ProviderKeys(async () => ({ keys: [{ ...named.jwk, kid: 'a' }, unnamed] }))
    t.match(
      await set.check(await nameless.sign({ kid: 'c' }), 'login'),
      VALID,
      `the name of a key is ${JSON.stringify(kid)}`,
    )
  }
  t.match(await keys().check(await nameless.sign({ kid: 'b' }), 'login'), { is: 'invalid' }, 'the name of another key')
  let requests = 0
  const asked = new ProviderKeys(async () => {
    requests++
    return { keys: [{ ...named.jwk, kid: 'a' }, nameless.jwk] }
  })
  t.match(await asked.check(await named.sign({ kid: 'a' }), 'login'), VALID)
  const foreign = await namelessKey()
  t.match(await asked.check(await foreign.sign({ kid: 'a' }), 'logout'), { is: 'invalid' }, 'not that of a new key')
  t.equal(requests, 1, 'and no reason to ask for the keys')
  t.match(await asked.check(await foreign.sign({ kid: 'c' }), 'logout'), { is: 'invalid' })
  t.equal(requests, 2, 'a new name is')
})

await test('EdDSA and Ed25519 name one algorithm, in a token as in a key', async (t) => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const jwk = await exportJWK(publicKey)
  for (const published of ['EdDSA', 'Ed25519', undefined]) {
    for (const alg of ['EdDSA', 'Ed25519']) {
      const keys = new ProviderKeys(async () => ({
        keys: [{ ...jwk, kid: 'a', ...(published && { alg: published }) }],
      }))
      const token = await new SignJWT({}).setProtectedHeader({ alg, kid: 'a' }).sign(privateKey)
      t.match(await keys.check(token, 'login'), VALID, `${alg} with a key of ${published}`)
    }
  }
  const elliptic = await namelessKey()
  const keys = new ProviderKeys(async () => ({ keys: [{ ...elliptic.jwk, alg: 'EdDSA' }] }))
  t.match(await keys.check(await elliptic.sign(), 'login'), { is: 'invalid' }, 'a key for another algorithm')
})
