import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { workDir } from './program.ts'

/** What upstream responds to. Every route but `/requests` responds 401 to a request without a bearer token. */

/** The endpoint of the REST load, which responds with 1.1 KB of JSON. */
export const ACCOUNTS_PATH = '/trading/v1/options/accounts'
/** A GET of it responds with {@link AGENTS}. */
export const AGENTS_PATH = '/payment-agents/v1/agents'
/** A POST to it responds with {@link receipt} when its whole body has arrived. */
export const TRANSFER_PATH = '/payment-agents/v1/transfer'

/** A list of payment agents, 100 KB of JSON. */
export const AGENTS = `{"data":"${'x'.repeat(102_389)}"}`

/** The response to a transfer whose body has so many bytes. */
export const receipt = (bytes: number): string => `{"received":${bytes}}`

/**
 * Lines for the `http` block of nginx.
 * @param port where it listens
 * @param wholePort where nginx itself asks when a transfer has arrived, since it responds to others before their body
 * @param wsUrl where one-time URLs lead
 */
export function routes(port: number, wholePort: number, wsUrl: string): string {
  const agents = join(workDir, 'agents.json')
  writeFileSync(agents, AGENTS)
  const bearer = 'if ($http_authorization !~ "^Bearer .") { return 401; }'
  return `access_log off;
    default_type application/json;
    upstream whole { server 127.0.0.1:${wholePort}; keepalive 64; keepalive_requests 1000000000; }
    server {
      listen 127.0.0.1:${wholePort} backlog=4096;
      location / { return 200 '${receipt(0).replace('0', '$http_content_length')}'; }
    }
    server {
      listen 127.0.0.1:${port} backlog=4096;
      location = ${ACCOUNTS_PATH} { ${bearer} return 200 '${accounts()}'; }
      location = ${AGENTS_PATH} { ${bearer} alias ${agents}; }
      location = ${TRANSFER_PATH} {
        ${bearer}
        client_body_buffer_size 256k;
        proxy_pass http://whole;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
      }
      location ~ ^${ACCOUNTS_PATH}/\\w+/otp$ { ${bearer} return 200 '{"data":{"url":"${wsUrl}/?otp=$request_id"}}'; }
      location = /requests { stub_status; }
    }`
}

/** A list of five accounts, 1.1 KB of JSON. */
function accounts(): string {
  const data = Array.from({ length: 5 }, (_, index) => ({
    account_id: `CR900${index}`,
    account_type: index === 0 ? 'demo' : 'real',
    balance: 10_000.25 + index,
    currency: 'USD',
    group: 'row',
    status: 'active',
    created_at: '2025-01-01T00:00:00Z',
    email: 'demo@example.test',
    last_access: '2026-01-01T00:00:00Z',
  }))
  return JSON.stringify({ data, meta: { count: data.length } })
}
