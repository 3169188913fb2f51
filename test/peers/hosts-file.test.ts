import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { names, type Peer } from '../../src/peers/names.ts'
import { enterNamespaces } from '../support/deployment/namespaces.ts'

// In a process of its own: it starts again in namespaces.

const skip = enterNamespaces()

/** The addresses of a name, or the code of the error. */
function ask(name: string, peer: Peer): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  names.for(peer)(name, { all: true }, (error, addresses) =>
    resolve(error?.code ?? (addresses as { address: string }[]).map(({ address }) => address).join(' ')),
  )
  return promise
}

await test(
  '/etc/hosts counts for the names of all peers, with its changes, while no name server answers',
  { skip },
  async (t) => {
    const file = join(t.testdir({ hosts: '10.0.0.1 api.trading.example\n' }), 'hosts')
    execFileSync('mount', ['--bind', file, '/etc/hosts'])
    for (const peer of ['redis', 'api', 'sockets', 'provider', 'other'] as const) {
      t.equal(await ask('api.trading.example', peer), '10.0.0.1', peer)
    }
    t.match(await ask('provider.trading.example', 'provider'), /^(?:EAI_AGAIN|ENOTFOUND)$/)
    writeFileSync(file, '127.0.0.1 API.trading.example\n10.0.0.1 provider.trading.example\n')
    t.equal(await ask('api.trading.example', 'api'), '127.0.0.1')
    t.equal(await ask('provider.trading.example', 'provider'), '10.0.0.1')
  },
)
