import type { Config } from './config.ts'
import { secretTexts, type SecretTexts } from './secrets.ts'
import { THREADS_OF_WORKERS } from './thread-pool.ts'
import { FROM_SUPERVISOR, SECRET_SETTINGS } from './settings.ts'

/**
 * Returns what must override this process's environment so that a worker has the same configuration: the secrets as this process
 * read them (their files may have changed), the random secret of development, and the endpoints that this process has discovered.
 * A worker gets no OPS_TOKEN, because only this process has the ops listener, but is told that there is one. An empty value
 * counts as unset.
 */
export function workerEnvironment(config: Config): Record<string, string> {
  const { oauth, ops } = config
  return {
    UV_THREADPOOL_SIZE: THREADS_OF_WORKERS,
    ...workerSecrets(config),
    ...Object.fromEntries(SECRET_SETTINGS.map((name) => [`${name}_FILE`, ''])),
    [FROM_SUPERVISOR.hasOperators]: ops.token === undefined ? '' : 'true',
    [FROM_SUPERVISOR.hasSecretFiles]: config.hasSecretFiles ? 'true' : '',
    DISCOVERY: '',
    [FROM_SUPERVISOR.discovered]: oauth.discovered.join(','),
    [FROM_SUPERVISOR.hasDiscovered]: 'true',
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
