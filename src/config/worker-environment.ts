import { serializeClientKeys } from './client-key.ts'
import type { Config } from './config.ts'
import { DISCOVERED } from './oidc.ts'
import { SECRET_SETTINGS, SUPERVISED } from './settings.ts'

/**
 * Returns what must override this process's environment so that a worker has the same configuration: the secrets as
 * this process read them, since their files may have changed, the random secret of development, and the endpoints of the
 * provider that this process has discovered. A worker gets no OPS_TOKEN, because only this process has the ops listener,
 * but is told that there is one.
 * An empty value counts as unset.
 */
export function workerEnvironment({ oauth, ops, secrets, redisUrl }: Config): Record<string, string> {
  const read: Record<(typeof SECRET_SETTINGS)[number], string> = {
    SESSION_SECRETS: secrets.join(','),
    CLIENT_SECRET: oauth.clientSecret ?? '',
    CLIENT_KEY: oauth.clientKeys.length === 0 ? '' : serializeClientKeys(oauth.clientKeys),
    REDIS_URL: redisUrl ?? '',
    OPS_TOKEN: '',
  }
  return {
    ...read,
    ...Object.fromEntries(SECRET_SETTINGS.map((name) => [`${name}_FILE`, ''])),
    [SUPERVISED]: ops.token === undefined ? '' : 'true',
    DISCOVERY: '',
    [DISCOVERED]: 'true',
    JWKS_URL: oauth.oidc?.jwksUrl ?? '',
    END_SESSION_URL: oauth.oidc?.endSessionUrl ?? '',
    AUTHORIZATION_URL: oauth.authorizationUrl,
    TOKEN_URL: oauth.tokenUrl,
    PAR_URL: oauth.parUrl ?? '',
    REVOCATION_URL: oauth.revocationUrl ?? '',
    ISSUER: oauth.isIssuerNamed ? oauth.issuer : '',
    ISSUER_REQUIRED: String(oauth.issuerRequired),
  }
}
