import type { Config } from './config.ts'
import { DISCOVERED } from './oidc.ts'
import { DISCOVERED_ENDPOINTS } from './provider.ts'
import { secretTexts, type SecretTexts } from './secrets.ts'
import { THREADS_OF_WORKERS } from './thread-pool.ts'
import { FILED, SECRET_SETTINGS, SUPERVISED } from './settings.ts'

/**
 * Returns what must override this process's environment so that a worker has the same configuration: the secrets as
 * this process read them, since their files may have changed, the random secret of development, and the endpoints of the
 * provider that this process has discovered. A worker gets no OPS_TOKEN, because only this process has the ops listener,
 * but is told that there is one.
 * An empty value counts as unset.
 */
export function workerEnvironment(config: Config): Record<string, string> {
  const { oauth, ops } = config
  return {
    UV_THREADPOOL_SIZE: THREADS_OF_WORKERS,
    ...workerSecrets(config),
    ...Object.fromEntries(SECRET_SETTINGS.map((name) => [`${name}_FILE`, ''])),
    [SUPERVISED]: ops.token === undefined ? '' : 'true',
    [FILED]: config.hasSecretFiles ? 'true' : '',
    DISCOVERY: '',
    [DISCOVERED_ENDPOINTS]: oauth.discovered.join(','),
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

/** The secrets of a worker. */
export function workerSecrets(config: Config): SecretTexts {
  return { ...secretTexts(config), OPS_TOKEN: '' }
}
