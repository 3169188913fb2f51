import { generateKeyPairSync } from 'node:crypto'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startProvider } from '../../sandbox/provider.ts'
import type { Entry } from '../contender.ts'
import { logInMany } from '../login.ts'
import { atEnd, Program, workDir } from '../program.ts'
import { listening, type World } from '../world.ts'

const MODULES = '/usr/lib/apache2/modules'
const CLIENT_ID = 'apache'

/** Debian's Apache with mod_auth_openidc and sessions in Redis. */
export const modAuthOpenidc = (sessions: number): Entry => ({
  name: 'Apache + mod_auth_openidc',
  async start(world, port) {
    if (!existsSync(join(MODULES, 'mod_auth_openidc.so'))) {
      throw new Error('not installed: apt-get install libapache2-mod-auth-openidc')
    }
    const callback = `http://127.0.0.1:${port}/callback`
    const file = join(workDir, 'apache.conf')
    writeFileSync(file, configuration(world, port, await openIdProvider(callback), callback))
    const program = new Program(this.name, 'apache2', ['-DFOREGROUND', '-f', file], { on: 'measured' })
    await listening(program, port)
    return { program, cookies: await logInMany({ url: `http://127.0.0.1:${port}/api/v1/health` }, sessions) }
  },
})

/** Starts the sandbox provider with ID tokens, without which mod_auth_openidc creates no session. @returns its address */
async function openIdProvider(callback: string): Promise<string> {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const signingKey = { ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'ES256', kid: 'bench' }
  const provider = await startProvider({
    clientId: CLIENT_ID,
    redirectUris: [callback],
    library: {
      scopes: ['openid', 'trade', 'account_manage'],
      claims: { openid: ['sub'] },
      jwks: { keys: [signingKey] },
    },
  })
  atEnd(() => provider.close())
  return provider.url
}

function configuration({ upstream, redis }: World, port: number, provider: string, callback: string): string {
  const names = [
    'mpm_event',
    'authn_core',
    'authz_core',
    'authz_user',
    'headers',
    'proxy',
    'proxy_http',
    'auth_openidc',
  ]
  const modules = names.map((name) => `LoadModule ${name}_module ${MODULES}/mod_${name}.so`)
  return `
${modules.join('\n')}
ServerName localhost
ServerRoot ${workDir}
DefaultRuntimeDir ${workDir}
PidFile ${workDir}/apache.pid
Listen 127.0.0.1:${port}
${process.getuid?.() === 0 ? 'User www-data\nGroup www-data' : ''}
ErrorLog ${workDir}/apache.errors
LogLevel error
LogFormat "%h %l %u %t \\"%r\\" %>s %b" common
CustomLog ${workDir}/apache.access common
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 60
# One process, as the measured contender has one processor.
StartServers 1
ServerLimit 1
ThreadsPerChild 128
ThreadLimit 128
MaxRequestWorkers 128

OIDCProviderMetadataURL ${provider}/.well-known/openid-configuration
OIDCProviderTokenEndpointAuth none
OIDCClientID ${CLIENT_ID}
OIDCScope "openid trade account_manage"
OIDCPKCEMethod S256
OIDCRedirectURI ${callback}
OIDCCryptoPassphrase bench-secret-of-thirty-two-bytes-or-more
OIDCCacheType redis
OIDCRedisCacheServer 127.0.0.1:${redis.port}
OIDCSessionInactivityTimeout 1800
OIDCPassClaimsAs environment
OIDCStripCookies mod_auth_openidc_session

<Location />
  AuthType openid-connect
  Require valid-user
</Location>
<Location /api/>
  RequestHeader set Authorization "Bearer %{OIDC_access_token}e"
  RequestHeader unset Cookie
  ProxyPass ${upstream.url}/ keepalive=On
</Location>
`
}
