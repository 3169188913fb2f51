import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { freePort } from '../../../sandbox/listening.ts'
import { proxyProcess } from './process.ts'

/** A configuration of an operator's proxy. */
export interface ProxySetup {
  readonly program: 'nginx' | 'haproxy'
  /** It passes as much as it can and streams bodies, unlike its default configuration. */
  readonly lenient: boolean
  /** A path that it forbids. */
  readonly forbidden: string
}

/** One request as the proxy understood it. */
interface ProxiedRequest {
  /** Whether it chose our server for the request. */
  readonly wasForwarded: boolean
  /** The status of the response, which is ours if the request was forwarded. */
  readonly status: string
  readonly line: string
}

/** A reverse proxy that runs until the test ends. */
export interface Proxy {
  readonly port: number
  /** Lets it finish. @returns every request that it has seen */
  readonly stop: () => Promise<ProxiedRequest[]>
}

/** Idle connections end soon, so that a test need not wait. A request may take longer on a busy machine. */
const IDLE_MS = 100
const REQUEST_MS = 3000

/** Starts Debian's nginx or haproxy in front of a port of this machine. @throws Error when it is not installed */
export async function startProxy(t: Test, setup: ProxySetup, serverPort: number): Promise<Proxy> {
  const dir = await mkdtemp(join(tmpdir(), 'bff-proxy-'))
  const port = await freePort()
  const { program } = setup
  const config = join(dir, 'config')
  const log = join(dir, 'log')
  const text = program === 'nginx' ? nginxConfig(setup, port, serverPort, dir) : haproxyConfig(setup, port, serverPort)
  await writeFile(config, text)
  t.teardown(() => rm(dir, { recursive: true, force: true }))
  const options = program === 'nginx' ? ['-p', dir, '-c', config, '-e', join(dir, 'errors')] : ['-db', '-f', config]
  const proxy = await proxyProcess(t, program, options, { port, log })
  return {
    port,
    stop: async () => readLog(await proxy.stop(program === 'nginx' ? 'SIGQUIT' : 'SIGUSR1')),
  }
}

function nginxConfig({ lenient, forbidden }: ProxySetup, port: number, serverPort: number, dir: string): string {
  const leniency =
    'ignore_invalid_headers off; underscores_in_headers on; merge_slashes off; proxy_request_buffering off;'
  return `
user root; daemon off; master_process off; worker_processes 1; pid ${dir}/pid;
events { worker_connections 256; }
http {
  log_format seen escape=none 'seen $upstream_addr $upstream_status $request';
  access_log ${dir}/log seen;
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((each) => `${each}_temp_path ${dir}/${each};`).join('\n  ')}
  client_header_timeout ${REQUEST_MS}ms; client_body_timeout ${REQUEST_MS}ms; keepalive_timeout ${IDLE_MS}ms;
  lingering_close off;
  ${lenient ? leniency : ''}
  upstream server { server 127.0.0.1:${serverPort}; keepalive 4; }
  server {
    listen 127.0.0.1:${port};
    location ${forbidden} { return 403; }
    location / {
      proxy_pass http://server;
      proxy_http_version 1.1;
      proxy_next_upstream off;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
    }
  }
}
`
}

function haproxyConfig({ lenient, forbidden }: ProxySetup, port: number, serverPort: number): string {
  return `
global
  log stdout format raw local0
  stats timeout 1s
defaults
  mode http
  log global
  log-format "seen %s %ST %{+Q}r"
  retries 0
  timeout connect 1s
  timeout server 5s
  timeout client ${REQUEST_MS}ms
  timeout http-request ${REQUEST_MS}ms
  timeout http-keep-alive ${IDLE_MS}ms
  http-reuse always
frontend front
  bind 127.0.0.1:${port}
  ${lenient ? 'option accept-invalid-http-request' : 'option http-buffer-request'}
  http-request deny if { path_beg ${forbidden} }
  default_backend back
backend back
  server server 127.0.0.1:${serverPort}
`
}

/** Lines of `seen <server> <status> <request line>`, the log format of both proxies. */
function readLog(log: string): ProxiedRequest[] {
  return [...log.matchAll(/^seen (\S+) (\S+) (.*)$/gm)].map(([, server = '', status = '', line = '']) => ({
    wasForwarded: server !== '-' && server !== '<NOSRV>',
    status,
    line,
  }))
}
