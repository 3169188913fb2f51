import { generateKeyPairSync, randomUUID, sign, type KeyObject } from 'node:crypto'
import type { Fault } from '../fault.ts'
import { withJson } from '../http.ts'
import type { Touch } from '../history.ts'
import { onLinks } from '../whom.ts'

const NAME = 'rotated-keys'
/** A key that is not known is looked for once a minute. */
const LOOKED_FOR_MS = 65_000

/** The provider signs with a new key. */
export const rotatedKeys: Fault = {
  name: NAME,
  sentence: 'The provider publishes one more key and signs ID tokens with it, and later with the former one again.',
  fits: ({ isOpenId }) => isOpenId === true,
  apply({ instances, observer: { now, history } }) {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const kid = randomUUID()
    const jwk = { ...publicKey.export({ format: 'jwk' }), kid, alg: 'ES256', use: 'sig' }
    const isAgain = history.faults.some(({ name, from }) => name === NAME && from > now() - LOOKED_FOR_MS)
    const touches: Touch[] = isAgain
      ? [{ kinds: ['login', 'signup'], results: ['login_failed'], settleMs: LOOKED_FOR_MS }]
      : []
    // A key stays published after it was used last.
    onLinks(instances, 'provider', {
      of: (opening) => opening.startsWith('GET /jwks'),
      rewrites: (way, bytes) =>
        way === 'reply'
          ? withJson(bytes, ({ keys, ...rest }) => ({ ...rest, keys: [...(keys as object[]), jwk] }))
          : bytes,
    })
    const heal = onLinks(instances, 'provider', {
      of: (opening) => opening.startsWith('POST /oauth2/token '),
      rewrites: (way, bytes) =>
        way === 'reply' ? withJson(bytes, (tokens) => signedAgain(tokens, { kid, privateKey })) : bytes,
    })
    return { note: 'ID tokens are signed with a new key', touches, settleMs: 0, heal }
  },
}

function signedAgain(tokens: Record<string, unknown>, key: { kid: string; privateKey: KeyObject }): object {
  const { id_token: idToken } = tokens
  if (typeof idToken !== 'string') return tokens
  const [, claims = ''] = idToken.split('.')
  const header = Buffer.from(JSON.stringify({ alg: 'ES256', kid: key.kid })).toString('base64url')
  const signed = `${header}.${claims}`
  const signature = sign('sha256', Buffer.from(signed), { key: key.privateKey, dsaEncoding: 'ieee-p1363' })
  return { ...tokens, id_token: `${signed}.${signature.toString('base64url')}` }
}
