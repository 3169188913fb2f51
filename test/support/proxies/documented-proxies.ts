import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { deployedBalancer, installCertificate, PUBLIC_URL } from '../deployment/deployed-balancer.ts'
import { startNameServer } from '../deployment/name-server.ts'
import type { DocumentedProxy } from './checks.ts'
import { proxyProcess } from './process.ts'
import { OPERATING_GUIDE } from '../deployment/operating-guide.ts'

const AS_DOCUMENTED = {
  publicUrl: 'https://localhost',
  insecureUrl: 'http://localhost',
  hosts: ['10.0.0.11', '10.0.0.12', '10.0.0.13'],
  speaksHttp2: true,
  hasPatience: true,
  triesOthers: true,
  asks: true,
  usesUnready: true,
  countsSockets: true,
} as const

/** The file of deploy/ with this name. */
async function deployed(file: string, isImpatient: boolean): Promise<string> {
  const text = await readFile(new URL(`../../../deploy/${file}`, import.meta.url), 'utf8')
  return isImpatient ? impatient(text) : text
}

const impatient = (text: string): string => text.replaceAll(/\b75(s?)\b/g, '1$1')

/** haproxy with deploy/haproxy.cfg. */
export const HAPROXY: DocumentedProxy = {
  ...AS_DOCUMENTED,
  publicUrl: PUBLIC_URL,
  insecureUrl: 'http://localhost:8080',
  hosts: ['10.0.0.11', '10.0.0.12'],
  async start(t, isImpatient) {
    if (!isImpatient) await startNameServer(t, 'app', new Set(this.hosts))
    const { stop } = await deployedBalancer(t, isImpatient ? impatient : undefined)
    return () => stop('SIGUSR1')
  },
}

/** nginx, with the smallest configuration around the documented part. */
export const NGINX: DocumentedProxy = {
  ...AS_DOCUMENTED,
  asks: false,
  async start(t, isImpatient) {
    await installCertificate(t)
    await mkdir('/var/log/nginx', { recursive: true })
    const dir = t.testdir({})
    const config = join(dir, 'nginx.conf')
    const folders = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (each) => `${each}_temp_path ${dir}/${each};`,
    )
    await writeFile(
      config,
      `user root; daemon off; worker_processes 1; pid ${dir}/pid; events { worker_connections 4096; }\n` +
        `http { ${folders.join(' ')}\n${await deployed('nginx.conf', isImpatient)} }`,
    )
    const options = ['-p', dir, '-c', config, '-e', 'stderr']
    return running(t, 'nginx', options, 'SIGQUIT', '/var/log/nginx/bff.log')
  },
}

const APACHE_COPY = '/run/etc-apache2'

/** Debian's Apache with the documented modules and site. */
export const APACHE: DocumentedProxy = {
  ...AS_DOCUMENTED,
  asks: false,
  // In turn.
  countsSockets: false,
  async start(t, isImpatient) {
    await installCertificate(t)
    if (!existsSync(APACHE_COPY)) {
      // A copy, so that the modules are not enabled on this machine.
      await cp('/etc/apache2', APACHE_COPY, { recursive: true, verbatimSymlinks: true })
      execFileSync('mount', ['--bind', APACHE_COPY, '/etc/apache2'])
      const [, commands = ''] = /`(a2dissite [^`]*)`/.exec(OPERATING_GUIDE) ?? []
      execFileSync('sh', ['-ec', commands], { stdio: 'ignore' })
    }
    await writeFile('/etc/apache2/sites-enabled/bff.conf', await deployed('apache.conf', isImpatient))
    const start =
      '. /etc/apache2/envvars; mkdir -p $APACHE_RUN_DIR $APACHE_LOCK_DIR $APACHE_LOG_DIR; exec apache2 -D FOREGROUND'
    return running(t, 'sh', ['-ec', start], 'SIGWINCH', '/var/log/apache2/bff.log')
  },
}

/** Caddy, with the documented configuration alone. */
export const CADDY: DocumentedProxy = {
  ...AS_DOCUMENTED,
  // Caddy has no limit for silence. The pings of the server end dead connections.
  hasPatience: false,
  // A request with a body cannot be sent again.
  triesOthers: false,
  usesUnready: false,
  async start(t, isImpatient) {
    await installCertificate(t)
    const config = join(t.testdir({}), 'Caddyfile')
    await writeFile(config, await deployed('Caddyfile', isImpatient))
    return running(t, 'caddy', ['run', '--adapter', 'caddyfile', '--config', config], 'SIGTERM')
  },
}

/** Varnish, behind hitch. */
export const VARNISH: DocumentedProxy = {
  ...AS_DOCUMENTED,
  streamsFromBytes: 64 * 1024,
  // Only a GET.
  triesOthers: false,
  // At random.
  countsSockets: false,
  async start(t, isImpatient) {
    await installCertificate(t)
    const dir = t.testdir({})
    const [tls, vcl] = [join(dir, 'hitch.conf'), join(dir, 'bff.vcl')]
    await writeFile(tls, await deployed('hitch.conf', isImpatient))
    await writeFile(vcl, await deployed('bff.vcl', isImpatient))
    const [, documented = ''] = /`varnishd (-a [^`]*)`/.exec(OPERATING_GUIDE) ?? []
    const options = documented.replace('bff.vcl', vcl).replace(/\b75\b/, isImpatient ? '1' : '75')
    const work = join(dir, 'work')
    const varnish = await proxyProcess(t, 'varnishd', ['-F', '-n', work, ...options.split(' ')], {
      port: 6086,
      log: join(dir, 'varnishd'),
    })
    const log = join(dir, 'requests')
    const format = ['-F', '%h %t "%m %U" %s']
    const requests = await proxyProcess(t, 'varnishncsa', ['-n', work, ...format], { port: 6086, log })
    const stopTls = await running(t, 'hitch', ['--user=_hitch', '--group=_hitch', `--config=${tls}`], 'SIGTERM')
    return async () => {
      await stopTls()
      await varnish.stop('SIGTERM')
      return requests.stop('SIGTERM')
    }
  },
}

/** lighttpd, over HTTP/1.1. */
export const LIGHTTPD: DocumentedProxy = {
  ...AS_DOCUMENTED,
  speaksHttp2: false,
  asks: false,
  async start(t, isImpatient) {
    await installCertificate(t)
    await mkdir('/var/log/lighttpd', { recursive: true })
    const config = join(t.testdir({}), 'lighttpd.conf')
    await writeFile(config, await deployed('lighttpd.conf', isImpatient))
    return running(t, 'lighttpd', ['-D', '-f', config], 'SIGINT', '/var/log/lighttpd/bff.log')
  },
}

/** Starts a proxy. Its log is a file, or its output. */
async function running(
  t: Test,
  program: Parameters<typeof proxyProcess>[1],
  options: readonly string[],
  signal: NodeJS.Signals,
  log?: string,
): Promise<() => Promise<string>> {
  const port = Number(new URL(AS_DOCUMENTED.publicUrl).port || 443)
  const { stop } = await proxyProcess(t, program, options, { port, log: join(t.testdirName, program) })
  return async () => {
    const printed = await stop(signal)
    return log === undefined ? printed : readFile(log, 'utf8')
  }
}
