import { execFile } from 'node:child_process'
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { test, type Test } from 'tap'
import program from '../../package.json' with { type: 'json' }
import lock from '../../package-lock.json' with { type: 'json' }
import { projectFile } from '../support/deployment/files.ts'

const ROOT = new URL('../../', import.meta.url).pathname
const VERSION = program.version
/** What the page tells to run beside the files: it is tested word for word. */
const [, VERIFY = ''] = /^## Verify\n[^]*?^```bash\n([^]*?)^```$/m.exec(projectFile('docs/operating/release.md')) ?? []

/** What the lock file installs in the image, which leaves out dev and optional packages. */
const SHIPPED = new Set(
  Object.entries(lock.packages as Record<string, { version: string; dev?: boolean; optional?: boolean }>)
    .filter(([path, { dev, optional }]) => path !== '' && dev !== true && optional !== true)
    .map(([path, { version }]) => `${path.split('node_modules/').at(-1)} ${version}`),
)

interface Ended {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs a shell script in a folder, as on a machine without a Docker engine. */
async function shell(cwd: string, script: string): Promise<Ended> {
  const env = { ...process.env, NODE_OPTIONS: '', DOCKER_HOST: 'unix:///nowhere/docker.sock' }
  const run = promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], { cwd, env })
  return run.then(
    (printed) => ({ code: 0, ...printed }),
    (error: Ended) => error,
  )
}

/** A repository of this project as it is now, with a tag of its version, and a key to sign with. */
async function repository(t: Test): Promise<string> {
  const dir = t.testdir()
  const made = await shell(
    ROOT,
    `mkdir ${dir}/first
    git ls-files -z | tar --null --files-from=- --create | tar --extract --directory=${dir}/first
    cd ${dir}/first
    git init --quiet
    git remote add origin https://token:secret@git.example/trading-bff
    git add --all
    git -c user.name=maintainer -c user.email=maintainer@example.com commit --quiet --message 'A release'
    git tag v${VERSION}
    ssh-keygen -q -t ed25519 -N '' -f ../key
    ssh-keygen -q -t ed25519 -N '' -f ../foreign`,
  )
  t.equal(made.code, 0, made.stderr)
  return dir
}

/** Writes the file that says whose signature counts. */
const signers = (key: string): string => `echo "release $(cut -d ' ' -f 1,2 ../${key}.pub)" >signers`
const RELEASE = 'npm run --silent release -- --key ../key'

/** That of Debian 13, for example. */
const isOldNpm = (await shell(ROOT, 'npm sbom --help')).code !== 0
const skip = isOldNpm && 'npm is older than 9.9'

await test(
  'npm run release makes the same files in another folder, signed, and a changed byte is noticed',
  { skip },
  async (t) => {
    const dir = await repository(t)
    const cloned =
      'git clone --quiet first second && git -C second remote set-url origin https://git.example/trading-bff'
    t.match(await shell(dir, cloned), { code: 0 })
    const [first, second] = await Promise.all([shell(`${dir}/first`, RELEASE), shell(`${dir}/second`, RELEASE)])
    t.match(first, { code: 0, stdout: /\nmissing: the image: no Docker engine answers\n$/ }, first.stderr)
    t.same(second, first, 'the checksums are the same')
    t.match(await shell(dir, 'diff --recursive first/release second/release'), { code: 0, stdout: '' })

    const files = ['notes.md', 'provenance.json', 'sbom.json', 'source.tar.gz'].map(
      (file) => `trading-bff-${VERSION}-${file}`,
    )
    const all = ['MISSING', ...files, `trading-bff-client-${VERSION}.tgz`]
    t.same(
      [...first.stdout.matchAll(/^[0-9a-f]{64} {2}(.+)$/gm)].map(([, file]) => file),
      all,
    )
    const release = (file: string): string => readFileSync(join(dir, 'first/release', file), 'utf8')
    t.ok(projectFile('CHANGELOG.md').includes(`\n${release(`trading-bff-${VERSION}-notes.md`)}`))
    t.equal(
      release(`trading-bff-${VERSION}-notes.md`).match(/^## /gm)?.length,
      1,
      'the notes are those of this version',
    )
    const bill = JSON.parse(release(`trading-bff-${VERSION}-sbom.json`)) as { components: Record<string, string>[] }
    t.same(new Set(bill.components.map(({ name, version }) => `${name} ${version}`)), SHIPPED)

    const statement = release(`trading-bff-${VERSION}-provenance.json`)
    const named = [...first.stdout.matchAll(/^(\S+) {2}(trading-bff-.*)$/gm)].map(([, sha256, name]) => ({
      name,
      digest: { sha256 },
    }))
    const { stdout: commit } = await shell(`${dir}/first`, 'git rev-parse HEAD')
    t.match(JSON.parse(statement), {
      subject: named.filter(({ name = '' }) => !name.endsWith('-provenance.json')),
      predicateType: 'https://slsa.dev/provenance/v1',
      predicate: {
        buildDefinition: {
          externalParameters: { source: 'https://git.example/trading-bff', ref: `refs/tags/v${VERSION}` },
          resolvedDependencies: [{ digest: { gitCommit: commit.trim() } }, { name: 'package-lock.json' }],
        },
      },
    })

    const inFirst = (script: string): Promise<Ended> => shell(`${dir}/first`, script)
    t.match(await inFirst(`${signers('key')}\n${VERIFY}`), { code: 0, stdout: /^Good "file" signature for release / })
    t.not((await inFirst(`${signers('foreign')}\n${VERIFY}`)).code, 0, 'nobody else has signed it')
    const tarball = `release/trading-bff-client-${VERSION}.tgz`
    appendFileSync(join(dir, 'first', tarball), ' ')
    t.match(await inFirst(`${signers('key')}\n${VERIFY}`), { code: 1, stdout: /-client-.*\.tgz: FAILED/ })
    const forged = `(cd release && sha256sum ${all.join(' ')} >SHA256SUMS)`
    t.match(await inFirst(`${forged}\n${signers('key')}\n${VERIFY}`), {
      code: 255,
      stdout: /^Could not verify signature/,
    })
  },
)

await test('npm run release refuses a checkout that is not clean or not of the tag, and makes nothing then', async (t) => {
  const first = join(await repository(t), 'first')
  const refuses = async (change: string, reason: RegExp): Promise<void> => {
    t.match(await shell(first, `${change} && ${RELEASE}`), { code: 1, stderr: reason }, change)
    t.notOk(existsSync(join(first, 'release')), change)
  }
  await refuses('touch new', /not clean/)
  await refuses(`rm new && git tag --delete v${VERSION}`, /HEAD is not v\d.*--untagged/)
  const build = `echo 'export const extra = 1' >>client/src/core/client.ts`
  const commit =
    'git -c user.name=maintainer -c user.email=maintainer@example.com commit --quiet --all --message Change'
  await refuses(`${build} && ${commit} && git tag v${VERSION}`, /client\/dist .* is not what the sources give/)
})

await test('npm run release says what is wrong with an npm that has no sbom, and makes nothing then', async (t) => {
  const first = join(await repository(t), 'first')
  const old = `mkdir ../old && printf '#!/bin/sh\\necho Unknown command >&2\\nexit 1\\n' >../old/npm && chmod +x ../old/npm`
  t.match(await shell(first, `${old} && PATH="$PWD/../old:$PATH" node deploy/release.ts --key ../key`), {
    code: 1,
    stderr: 'This npm has no "npm sbom": use npm 9.9 or newer\n',
  })
  t.notOk(existsSync(join(first, 'release')))
})
