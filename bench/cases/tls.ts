import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { freePort } from '../../sandbox/listening.ts'
import { logInMany, publicOrigin, settingsOf, startThisServer } from '../contenders.ts'
import { workDir, type Program } from '../program.ts'
import { shown, type Report } from '../report.ts'
import { apiUrl, measure, type RestRound } from '../rest-load.ts'
import { ratio, rounds, spread } from '../rounds.ts'
import { ACCOUNTS_PATH, listening, nginx, startWorld } from '../world.ts'

const ROUNDS = 3
const SECONDS = 2
const DIRECT = 'this server alone'

type TlsRound = RestRound & { readonly frontMicrosPerRequest: number }

/** Measures the cost of nginx in front of this server, without and with TLS. */
export async function tls(): Promise<Report> {
  const [port, plainPort, tlsPort] = [await freePort(), await freePort(), await freePort()]
  const world = await startWorld([`${publicOrigin(tlsPort)}/auth/callback`])
  const settings = { ...settingsOf(world, port), PUBLIC_URL: publicOrigin(tlsPort) }
  const server = await startThisServer(settings)
  const front = await startFront(port, plainPort, tlsPort)
  const cookies = await logInMany(port, 10, tlsPort)
  const base = { program: server, cookies }
  const contenders = [
    { ...base, name: DIRECT, url: apiUrl(port) },
    { ...base, name: 'nginx in front', url: apiUrl(plainPort) },
    { ...base, name: 'nginx with TLS in front', url: `${publicOrigin(tlsPort)}/api${ACCOUNTS_PATH}` },
  ]
  const round = async (contender: (typeof contenders)[number], seconds: number): Promise<TlsRound> => {
    const before = front.cpuMs()
    const result = await measure(world, contender, seconds)
    const frontMicros = (front.cpuMs() - before) * 1000
    return { ...result, frontMicrosPerRequest: frontMicros / (result.requestsPerSecond * seconds) }
  }
  for (const contender of contenders) await round(contender, 1)
  const results = await rounds(contenders, ROUNDS, (contender) => round(contender, SECONDS))
  const of = (name: string, figure: keyof TlsRound): number[] => results.get(name)?.map((each) => each[figure]) ?? []
  const both = (name: string): number[] => {
    const inFront = of(name, 'frontMicrosPerRequest')
    return of(name, 'cpuMicrosPerRequest').map((micros, index) => micros + (inFront[index] ?? 0))
  }
  return {
    name: 'tls',
    title: 'A TLS hop in front',
    tables: [
      {
        title: 'CPU time per request of nginx and this server, this server alone = 1',
        columns: ['', 'both', 'nginx µs', 'this server µs', 'p50 ms under full load'],
        rows: contenders.map(({ name }) => [
          name,
          shown(ratio(both(name), both(DIRECT))),
          spread(of(name, 'frontMicrosPerRequest')).median.toFixed(1),
          spread(of(name, 'cpuMicrosPerRequest')).median.toFixed(1),
          spread(of(name, 'p50Ms')).median.toFixed(2),
        ]),
      },
    ],
    goals: [],
    notes: [
      `${ROUNDS} rounds of ${SECONDS} s. Connections are kept alive on both sides of nginx, so there are hardly any handshakes. P-256 certificate, TLS 1.3.`,
    ],
    raw: Object.fromEntries(results),
  }
}

async function startFront(port: number, plainPort: number, tlsPort: number): Promise<Program> {
  const [key, certificate] = [join(workDir, 'tls.key'), join(workDir, 'tls.crt')]
  const request = 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=localhost'.split(
    ' ',
  )
  execFileSync('openssl', [...request, '-keyout', key, '-out', certificate], { stdio: 'ignore' })
  const front = nginx(
    'front',
    'measured',
    `access_log front.access;
    upstream bff { server 127.0.0.1:${port}; keepalive 64; keepalive_requests 1000000000; }
    server {
      listen 127.0.0.1:${plainPort} backlog=4096;
      listen 127.0.0.1:${tlsPort} ssl backlog=4096;
      ssl_certificate ${certificate};
      ssl_certificate_key ${key};
      location / {
        proxy_pass http://bff;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_set_header Host $http_host;
        proxy_set_header X-Forwarded-For $remote_addr;
        proxy_set_header X-Forwarded-Proto https;
      }
    }`,
  )
  await listening(front, tlsPort)
  return front
}
