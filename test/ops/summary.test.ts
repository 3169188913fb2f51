import { test } from 'tap'
import { readConfig } from '../../src/config/config.ts'
import { summary } from '../../src/ops/summary.ts'
import { newClientKey } from '../support/login/client-keys.ts'
import { ALONE } from '../support/server/settings.ts'

await test('The first log line has neither the token of the operators nor the secret of the client', async (t) => {
  const secrets = { OPS_TOKEN: 'a-token-of-operators-that-is-not-to-print', CLIENT_SECRET: 'a-secret-not-to-print' }
  const identity = { IDENTITY_PATH: '/me', IDENTITY_POINTER: '/id' }
  const line = JSON.stringify(summary(readConfig({ ...ALONE, ...identity, ...secrets })))
  for (const secret of Object.values(secrets)) t.notOk(line.includes(secret))
})

await test('The first log line names the ids of the client keys, and nothing else of them', async (t) => {
  const keys = [newClientKey('P-256'), newClientKey(2048)]
  const config = readConfig({
    ...ALONE,
    CLIENT_AUTH: 'private_key_jwt',
    CLIENT_KEY: keys.map(({ pem }) => pem).join(''),
    ISSUER: 'https://login.example/',
    DISCOVERY: 'true',
  })
  const line = summary(config)
  t.match(line, {
    client: {
      issuer: 'https://login.example/',
      auth: 'private_key_jwt',
      keys: keys.map(({ publicJwk }) => publicJwk['kid']),
      pushes: false,
      discovers: true,
    },
  })
  for (const printed of [JSON.stringify(line), JSON.stringify(config)]) {
    for (const { privateJwk } of keys) {
      for (const member of ['d', 'p', 'q'] as const) {
        const secret = privateJwk[member]
        if (typeof secret === 'string') t.notOk(printed.includes(secret), member)
      }
    }
  }
})
