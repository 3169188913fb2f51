import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { freePort } from '../../sandbox/listening.ts'
import { publicOrigin, thisServer } from '../contenders.ts'
import { workDir, type Program } from '../program.ts'
import { shown, shownMedian, tableOf, type Report } from '../report.ts'
import { measure, startServers, type RestRound, type Running } from '../rest-load.ts'
import { figuresOf, ratio, rounds } from '../rounds.ts'
import { listening, nginx } from '../world.ts'

const ROUNDS = 3
const SECONDS = 2
const DIRECT = 'this server alone'

type TlsRound = RestRound & { readonly frontMicrosPerRequest: number }

/** Measures the cost of nginx in front of this server, without and with TLS. */
export async function tls(): Promise<Report> {
  const [plainPort, tlsPort] = [await freePort(), await freePort()]
  const { world, contenders: servers } = await startServers([thisServer(DIRECT, { publicPort: tlsPort })])
  const [server] = servers as [Running]
  const { host, pathname } = new URL(server.url)
  const front = await startFront(host, plainPort, tlsPort)
  const contenders = [
    server,
    { ...server, name: 'nginx in front', url: `http://127.0.0.1:${plainPort}${pathname}` },
    { ...server, name: 'nginx with TLS in front', url: publicOrigin(tlsPort) + pathname },
  ]
  const round = async (contender: Running, seconds: number): Promise<TlsRound> => {
    const before = front.cpuMs()
    const result = await measure(world, contender, seconds)
    const frontMicros = (front.cpuMs() - before) * 1000
    return { ...result, frontMicrosPerRequest: frontMicros / (result.requestsPerSecond * seconds) }
  }
  for (const contender of contenders) await round(contender, 1)
  const results = await rounds(contenders, ROUNDS, (contender) => round(contender, SECONDS))
  const of = figuresOf(results)
  const both = (name: string): number[] => {
    const inFront = of(name, 'frontMicrosPerRequest')
    return of(name, 'cpuMicrosPerRequest').map((micros, index) => micros + (inFront[index] ?? 0))
  }
  return {
    name: 'tls',
    title: 'A TLS hop in front',
    tables: [
      tableOf('CPU time per request of nginx and this server, this server alone = 1', [...results.keys()], {
        both: (name) => shown(ratio(both(name), both(DIRECT))),
        'nginx µs': (name) => shownMedian(of(name, 'frontMicrosPerRequest'), 1),
        'this server µs': (name) => shownMedian(of(name, 'cpuMicrosPerRequest'), 1),
        'p50 ms under full load': (name) => shownMedian(of(name, 'p50Ms'), 2),
      }),
    ],
    notes: [
      `${ROUNDS} rounds of ${SECONDS} s. Connections are kept alive on both sides of nginx, so there are hardly any handshakes. P-256 certificate, TLS 1.3.`,
    ],
    raw: results,
  }
}

async function startFront(server: string, plainPort: number, tlsPort: number): Promise<Program> {
  const [key, certificate] = [join(workDir, 'tls.key'), join(workDir, 'tls.crt')]
  const request = 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=localhost'.split(
    ' ',
  )
  execFileSync('openssl', [...request, '-keyout', key, '-out', certificate], { stdio: 'ignore' })
  const front = nginx(
    'front',
    'measured',
    `access_log front.access;
    upstream bff { server ${server}; keepalive 64; keepalive_requests 1000000000; }
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
