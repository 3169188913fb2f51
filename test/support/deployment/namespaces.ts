import { spawnSync } from 'node:child_process'
import { execve } from 'node:process'

/** Set in processes inside the namespaces. */
const INSIDE = 'BFF_TEST_NAMESPACES'
const UNSHARE = '/usr/bin/unshare'
/** A user who is not root becomes root inside the namespaces. */
const FLAGS = [
  ...(process.getuid?.() === 0 ? [] : ['--user', '--map-root-user']),
  ...['--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc'],
]
/** Gives the namespaces what a machine of a deployment has: addresses, a resolver, and directories for secrets and logs. */
const FURNISH = `
ip link set lo up
ip address add 10.0.0.1/24 dev lo
mount -t tmpfs tmpfs /var/log
mount -t tmpfs tmpfs /run
mkdir /run/secrets /run/lock
echo nameserver 127.0.0.11 >/run/resolv.conf
resolver=$(readlink -m /etc/resolv.conf)
mkdir -p "$(dirname "$resolver")"
[ -e "$resolver" ] || : >"$resolver"
mount --bind /run/resolv.conf "$resolver"
exec "$@"
`

/**
 * Restarts this test file in network, mount and process namespaces of its own. There every port is free, files can be
 * mounted where a container has them, and no process outlives the test. Call this before anything else.
 * @returns false inside the namespaces; the reason where namespaces cannot be created
 * @throws Error in CI where namespaces cannot be created
 */
export function enterNamespaces(): string | false {
  if (process.env[INSIDE] !== undefined) return false
  const refused = refusal()
  if (refused === undefined) {
    const again = [process.execPath, ...process.execArgv, ...process.argv.slice(1)]
    const env = { ...process.env, [INSIDE]: '1', PATH: `${process.env['PATH']}:/usr/sbin:/sbin` }
    execve?.(UNSHARE, ['unshare', ...FLAGS, 'sh', '-euc', FURNISH, 'sh', ...again], env)
  }
  const reason = `namespaces cannot be made here: ${refused}`
  if (process.env['CI'] !== undefined) throw new Error(reason)
  return reason
}

/** Why the kernel or its configuration refuses namespaces. */
function refusal(): string | undefined {
  const { error, status, stderr } = spawnSync(UNSHARE, [...FLAGS, 'ip', 'link', 'set', 'lo', 'up'], {
    encoding: 'utf8',
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
  })
  return error?.message ?? (status === 0 ? undefined : stderr)
}
