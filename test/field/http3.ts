import type { Kind, Row } from './row.ts'

const journey = (HTTP3: string): Pick<Row, 'product' | 'suites' | 'environment'> => ({
  product: HTTP3,
  suites: { Journey: ['test/proxies/http3.test.ts'] },
  environment: { HTTP3 },
})
const NOTE =
  '`$http_host` is empty over HTTP/3: the line with `Host` needs `$host`, and the port of `PUBLIC_URL` if it has one.'

export const HTTP3: Kind = {
  title: 'HTTP/3',
  text: `Balancers may speak it to browsers; of the files of [deploy](../deploy), that of Caddy does. *Journey:* Chromium, which uses nothing
else but for sockets, for which it has only TCP: a login, a price, calls, a logout of which another tab learns.`,
  columns: ['Journey'],
  rows: [
    { id: 'http3-haproxy-3.2', ...journey('haproxy'), from: of('forky', 'haproxy', '/usr/sbin/haproxy') },
    { id: 'http3-nginx-1.26', ...journey('nginx'), from: of('trixie', 'nginx', '/usr/sbin/nginx'), note: NOTE },
    { id: 'http3-nginx-1.30', ...journey('nginx'), from: of('forky', 'nginx', '/usr/sbin/nginx'), note: NOTE },
    { id: 'http3-caddy-2.6', ...journey('Caddy'), from: { installed: 'caddy' } },
    { id: 'http3-caddy-2.11', ...journey('Caddy'), from: of('forky', 'caddy', '/usr/bin/caddy') },
  ],
}

function of(debian: 'trixie' | 'forky', name: string, path: string): Row['from'] {
  return { debian, packages: [name], programs: { [name]: path } }
}
