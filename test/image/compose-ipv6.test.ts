import { isIPv6 } from 'node:net'
import { networkInterfaces } from 'node:os'
import { test } from 'tap'
import { Agent, fetch } from 'undici'
import { untilSlow as until } from '../support/time/until.ts'
import { clone } from './clone.ts'

/** The addresses of this machine that others may reach, of each family the first. */
const [IPV4, IPV6] = [false, true].map((wanted) =>
  Object.values(networkInterfaces())
    .flatMap((interfaces = []) => interfaces.filter(({ internal }) => !internal))
    .map(({ address }) => address)
    .find((address) => isIPv6(address) === wanted && !address.startsWith('fe80:')),
)

await test(
  'docker-compose.yml: IPV6=true tells clients who come over IPv6 apart',
  { skip: IPV6 === undefined },
  async (t) => {
    const shell = await clone(t)
    const up = 'STATIC_DIR= HTTPS_PORT=8443 docker compose --profile sandbox up --build --detach --wait --scale app=1'
    await shell(`deploy/make-secrets.sh && ${up}`)
    const dispatcher = new Agent({ connect: { rejectUnauthorized: false } })
    t.teardown(() => dispatcher.destroy())
    let count = 0
    /** The client that the log names for a request to this address of the machine. */
    const clientAt = async (address = ''): Promise<string | undefined> => {
      const host = isIPv6(address) ? `[${address}]` : address
      const mark = `request ${++count}`
      const url = `https://${host}:8443/auth/callback?error=x&error_description=${mark}`
      await until(
        async () => (await fetch(url, { dispatcher, redirect: 'manual' }).catch(() => undefined))?.status === 303,
      )
      let line: string | undefined
      await until(async () => {
        const log = await shell('docker compose logs --no-log-prefix app')
        line = log.split('\n').find((each) => each.includes(mark))
        return line !== undefined
      })
      return /"client":"([^"]+)"/.exec(line ?? '')?.[1]
    }
    t.match(await clientAt(IPV6), /^172\..*\.1$/, 'without it, all of them are the bridge of Docker')
    await shell(`docker compose --profile sandbox down --timeout 1 && IPV6=true ${up}`)
    t.equal(await clientAt(IPV6), IPV6)
    t.equal(await clientAt(IPV4), IPV4)
  },
)
