import { execFileSync, spawnSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { parseClientKeys, publicJwk, serializeClientKeys } from '../../src/config/client-key.ts'
import { newClientKey } from '../support/login/client-keys.ts'

const idsOf = (text: string): string[] | undefined => parseClientKeys(text)?.map(({ id }) => id)

await test('parseClientKeys reads every kind of key as PEM and as JWK, with the same id and algorithm', (t) => {
  for (const [kind, algorithm] of [
    ['P-256', 'ES256'],
    ['P-384', 'ES384'],
    ['P-521', 'ES512'],
    ['Ed25519', 'Ed25519'],
    [2048, 'RS256'],
  ] as const) {
    const { pem, privateJwk } = newClientKey(kind)
    const [fromPem] = parseClientKeys(pem) ?? []
    const [fromJwk] = parseClientKeys(JSON.stringify(privateJwk)) ?? []
    t.equal(fromPem?.algorithm, algorithm)
    t.equal(fromJwk?.algorithm, algorithm)
    t.match(fromPem?.id, /^[\w-]{43}$/)
    t.equal(fromJwk?.id, fromPem?.id)
  }
  t.end()
})

await test('parseClientKeys computes the thumbprint of RFC 7638 §3.1', (t) => {
  // The example is a public key, so the private half is of another one and only the id is of interest.
  const { privateJwk } = newClientKey('Ed25519')
  const rfc8037 = {
    kty: 'OKP',
    crv: 'Ed25519',
    d: 'nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A',
    x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
  }
  t.same(idsOf(JSON.stringify(rfc8037)), ['kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k'], 'RFC 8037 A.3')
  t.notSame(idsOf(JSON.stringify(privateJwk)), idsOf(JSON.stringify(rfc8037)))
  t.end()
})

await test('parseClientKeys reads two keys in their order, in every notation, and keeps the id and algorithm of a JWK', (t) => {
  const [first, second] = [newClientKey('P-256'), newClientKey(2048)]
  const ids = [first, second].map(({ publicJwk }) => publicJwk['kid'])
  const jwks = [first.privateJwk, second.privateJwk]
  for (const text of [
    first.pem + second.pem,
    (first.pem + second.pem).replaceAll('\n', '\\n'),
    JSON.stringify(jwks),
    JSON.stringify({ keys: jwks }),
  ]) {
    t.same(idsOf(text), ids)
  }
  const own = [{ ...second.privateJwk, kid: 'my key', alg: 'PS384' }]
  t.match(parseClientKeys(JSON.stringify(own)), [{ id: 'my key', algorithm: 'PS384' }])
  const ed25519 = { ...newClientKey('Ed25519').privateJwk, alg: 'EdDSA' }
  t.match(parseClientKeys(JSON.stringify(ed25519)), [{ algorithm: 'EdDSA' }])
  const again = parseClientKeys(serializeClientKeys(parseClientKeys(JSON.stringify(own)) ?? []))
  t.match(again, [{ id: 'my key', algorithm: 'PS384' }], 'what workers get')
  t.end()
})

await test('parseClientKeys refuses whatever cannot sign', (t) => {
  const { pem, privateJwk, publicJwk } = newClientKey('P-256')
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const encrypted = privateKey.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' })
  const weak = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey.export({ type: 'pkcs8', format: 'pem' })
  const koblitz = generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).privateKey.export({ format: 'jwk' })
  const agreement = generateKeyPairSync('x25519').privateKey.export({ type: 'pkcs8', format: 'pem' })
  for (const [what, text] of Object.entries({
    nothing: '',
    'a text': 'secret',
    'no keys': '[]',
    'a public JWK': JSON.stringify(publicJwk),
    'an encrypted key': encrypted.toString(),
    'a short RSA key': weak.toString(),
    'another curve': JSON.stringify(koblitz),
    'a key of another purpose': agreement.toString(),
    'half a PEM': pem.slice(0, -40),
    'text between': `${pem} and ${pem}`,
    'three keys': pem + newClientKey('P-256').pem + newClientKey('P-256').pem,
    'the same key twice': pem.repeat(2),
    'another algorithm': JSON.stringify({ ...privateJwk, alg: 'RS256' }),
    'no algorithm': JSON.stringify({ ...privateJwk, alg: 'none' }),
    'a symmetric key': JSON.stringify({ kty: 'oct', k: 'c2VjcmV0' }),
    null: 'null',
  })) {
    t.equal(parseClientKeys(text), undefined, what)
  }
  t.end()
})

await test('A client key shows nothing of itself when it is printed or serialized by accident', (t) => {
  const { pem, privateJwk } = newClientKey('P-256')
  const keys = parseClientKeys(pem) ?? []
  const [key] = keys
  if (key === undefined) throw new Error('no key')
  t.notOk(JSON.stringify(keys).includes(String(privateJwk['d'])))
  t.same(Object.keys(publicJwk(key)).toSorted(), ['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y'])
  t.end()
})

await test('npm run client-key makes a key that only its owner can read, prints its public half, and keeps it', (t) => {
  const script = fileURLToPath(new URL('../../deploy/client-key.ts', import.meta.url))
  const file = join(t.testdir({}), 'client-key')
  const printed = execFileSync(process.execPath, [script, file], { encoding: 'utf8' })
  t.equal(statSync(file).mode & 0o777, 0o600)
  const keys = parseClientKeys(readFileSync(file, 'utf8')) ?? []
  t.same(JSON.parse(printed), { keys: keys.map(publicJwk) })
  t.equal(keys[0]?.algorithm, 'ES256')

  const again = spawnSync(process.execPath, [script, file], { encoding: 'utf8' })
  t.equal(again.stdout, printed, 'the same key')
  t.match(again.stderr, /exists: it is not changed/)
  writeFileSync(file, 'something else')
  const wrong = spawnSync(process.execPath, [script, file], { encoding: 'utf8' })
  t.equal(wrong.status, 65)
  t.equal(readFileSync(file, 'utf8'), 'something else')
  t.equal(spawnSync(process.execPath, [script], { encoding: 'utf8' }).status, 64)
  t.end()
})
