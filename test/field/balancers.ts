import type { Kind, Row } from './row.ts'

/** The test files that run with a balancer. */
const suites = (product: string, files: Record<'requirements' | 'roll', string>): Row['suites'] => ({
  Requirements: [files.requirements],
  'After a roll': [files.roll],
  ...(/haproxy|nginx/.test(product) ? { 'Same requests': ['test/http/behind-proxies.test.ts'] } : {}),
})
const ROLL = 'test/deployments/split-after-roll.test.ts'
const HAPROXY = suites('haproxy', { requirements: 'test/proxies/haproxy.test.ts', roll: ROLL })
const NGINX = suites('nginx', { requirements: 'test/deployments/other-balancers.test.ts', roll: ROLL })
const CADDY = suites('Caddy', { requirements: 'test/proxies/caddy.test.ts', roll: 'test/proxies/caddy-split.test.ts' })
const APACHE = suites('Apache', {
  requirements: 'test/proxies/apache.test.ts',
  roll: 'test/proxies/apache-split.test.ts',
})
const VARNISH = suites('Varnish', {
  requirements: 'test/proxies/varnish.test.ts',
  roll: 'test/proxies/varnish-split.test.ts',
})
const LIGHTTPD = suites('lighttpd', {
  requirements: 'test/proxies/lighttpd.test.ts',
  roll: 'test/proxies/lighttpd-split.test.ts',
})
const LIGHTTPD_OF_DEBIAN = {
  packages: ['lighttpd', 'lighttpd-mod-openssl', 'base-files'],
  programs: { lighttpd: '/usr/sbin/lighttpd' },
} as const
const LIGHTTPD_NOTE = 'HTTP/2 is off, since every close of a socket over it becomes 1006. A reload'
const HAPROXY_PROGRAMS = { haproxy: '/usr/sbin/haproxy' }
const NGINX_PROGRAMS = { nginx: '/usr/sbin/nginx' }

export const BALANCERS: Kind = {
  title: 'Balancers',
  text: `Each runs with its file of [deploy](../deploy). *Requirements:* [those of a balancer](operating/balancers.md), over HTTP/1.1
and HTTP/2. *After a roll:* requests and new sockets are divided among the instances again. *Same requests:* the
server sees those requests that the balancer saw, whatever bytes a client sends. \`npm run test:proxies\` repeats the first two
with the programs of a machine.`,
  columns: ['Requirements', 'After a roll', 'Same requests'],
  rows: [
    { id: 'haproxy-2.6', product: 'haproxy', from: { installed: 'haproxy' }, suites: HAPROXY, only: /haproxy/ },
    {
      id: 'haproxy-3.0',
      product: 'haproxy',
      from: { debian: 'trixie', packages: ['haproxy'], programs: HAPROXY_PROGRAMS },
      suites: HAPROXY,
      only: /haproxy/,
    },
    {
      id: 'haproxy-3.2',
      product: 'haproxy',
      from: { debian: 'forky', packages: ['haproxy'], programs: HAPROXY_PROGRAMS },
      suites: HAPROXY,
      only: /haproxy/,
    },
    { id: 'nginx-1.22', product: 'nginx', from: { installed: 'nginx' }, suites: NGINX, only: /nginx/ },
    {
      id: 'nginx-1.26',
      product: 'nginx',
      from: { debian: 'trixie', packages: ['nginx'], programs: NGINX_PROGRAMS },
      suites: NGINX,
      only: /nginx/,
    },
    {
      id: 'nginx-1.30',
      product: 'nginx',
      from: { debian: 'forky', packages: ['nginx'], programs: NGINX_PROGRAMS },
      suites: NGINX,
      only: /nginx/,
    },
    { id: 'apache-2.4', product: 'Apache', from: { installed: 'apache2' }, suites: APACHE },
    {
      id: 'caddy-2.6',
      product: 'Caddy',
      from: { installed: 'caddy' },
      suites: CADDY,
      note: 'A reload closes all sockets: pages get 1001. The close frame for this server has no mask, which it takes for a protocol error.',
    },
    {
      id: 'caddy-2.11',
      product: 'Caddy',
      from: { debian: 'forky', packages: ['caddy'], programs: { caddy: '/usr/bin/caddy' } },
      suites: CADDY,
      note: 'A reload closes all sockets with 1001, unless `stream_close_delay` is set.',
    },
    { id: 'varnish-7.1', product: 'Varnish, with Hitch', from: { installed: 'varnish' }, suites: VARNISH },
    {
      id: 'varnish-7.7',
      product: 'Varnish, with Hitch',
      from: {
        debian: 'trixie',
        packages: ['varnish', 'hitch', 'coreutils', 'dash'],
        programs: { varnishd: '/usr/sbin/varnishd', varnishncsa: '/usr/bin/varnishncsa', hitch: '/usr/sbin/hitch' },
      },
      suites: VARNISH,
    },
    {
      id: 'lighttpd-1.4.69',
      product: 'lighttpd',
      from: { installed: 'lighttpd' },
      suites: LIGHTTPD,
      note: `${LIGHTTPD_NOTE} would stop requests for as long as sockets are open without the two settings \`server.graceful-…\`.`,
    },
    {
      id: 'lighttpd-1.4.79',
      product: 'lighttpd',
      from: { debian: 'trixie', ...LIGHTTPD_OF_DEBIAN },
      suites: LIGHTTPD,
      note: `${LIGHTTPD_NOTE} closes all sockets: pages get 1006.`,
    },
    {
      id: 'lighttpd-1.4.85',
      product: 'lighttpd',
      from: { debian: 'forky', ...LIGHTTPD_OF_DEBIAN },
      suites: LIGHTTPD,
      note: `${LIGHTTPD_NOTE} closes all sockets: pages get 1006.`,
    },
    {
      id: 'traefik',
      product: 'Traefik',
      from: { debian: 'sid', packages: ['traefik'], programs: { traefik: '/usr/bin/traefik' } },
      suites: {},
    },
    {
      id: 'envoy',
      product: 'Envoy',
      from: { debian: 'sid', packages: ['envoy'], programs: { envoy: '/usr/bin/envoy' } },
      suites: {},
    },
  ],
}
