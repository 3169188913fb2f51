import { generateKeyPairSync } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { parseClientKeys, publicJwk } from '../src/config/client-key.ts'

// `npm run client-key -- FILE`: writes a new private key for CLIENT_KEY_FILE to FILE, unless the file exists, and prints
// the public JWK Set of the keys in it, which is what the provider registers.

/** EX_USAGE and EX_DATAERR of sysexits.h. */
const EXIT = { usage: 64, data: 65 }

const [file, ...rest] = process.argv.slice(2)
if (file === undefined || rest.length > 0 || file.startsWith('-')) {
  fail(
    'Usage: npm run client-key -- FILE\n  FILE gets a new private key, unless it exists; its public key is printed',
    EXIT.usage,
  )
}
if (existsSync(file)) process.stderr.write(`${file} exists: it is not changed\n`)
else write(file)
const keys = parseClientKeys(readFileSync(file, 'utf8').trim())
if (keys === undefined) fail(`${file} does not hold one or two private keys that can sign`, EXIT.data)
process.stdout.write(`${JSON.stringify({ keys: keys.map(publicJwk) }, undefined, 2)}\n`)

function write(path: string): void {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' })
  // Fails if the file exists, and no other user may ever read it.
  writeFileSync(path, pem, { mode: 0o600, flag: 'wx' })
}

function fail(message: string, code: number): never {
  process.stderr.write(`${message}\n`)
  process.exit(code)
}
