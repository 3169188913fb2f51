import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import program from '../package.json' with { type: 'json' }

// `npm run release` makes the files of a release in release/ (docs/operating/release.md). Nothing in them depends on when, and
// little on where, so that whoever builds the same commit again finds the same checksums.

const { values: given, positionals: forBuildx } = parseArgs({
  options: { key: { type: 'string' }, untagged: { type: 'boolean' }, base: { type: 'string' } },
  allowPositionals: true,
})
const FOLDER = 'release'
const PLATFORMS = ['linux/amd64', 'linux/arm64']
const { name, version } = program
const prefix = `${name}-${version}`
const missing: string[] = []

const run = (command: string, ...args: readonly string[]): string =>
  execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'], maxBuffer: 2 ** 28 }).trimEnd()
const git = (...args: readonly string[]): string => run('git', ...args)
const sha256 = (content: string | Uint8Array): string => createHash('sha256').update(content).digest('hex')
const write = (file: string, text: string): void => writeFileSync(`${FOLDER}/${file}`, text)
const json = (value: unknown): string => `${JSON.stringify(value, undefined, 2)}\n`

/** What a command prints, or undefined where it fails or is not there. */
function printed(command: string, ...args: readonly string[]): string | undefined {
  try {
    return execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  } catch {
    return undefined
  }
}

function fail(message: string): never {
  process.stderr.write(`${message}\n`)
  process.exit(1)
}

const isClean = (): boolean => git('status', '--porcelain') === ''
if (!isClean()) fail('The checkout is not clean: git status')
const isTagged = git('tag', '--points-at', 'HEAD').split('\n').includes(`v${version}`)
if (!isTagged && given.untagged !== true) fail(`HEAD is not v${version}: check that out, or say --untagged`)
run('node', 'client/build.ts')
if (!isClean())
  fail('client/dist or src/openapi/asyncapi.json is not what the sources give: commit what git status shows')
if (printed('npm', 'sbom', '--help') === undefined) fail('This npm has no "npm sbom": use npm 9.9 or newer')

const commit = git('rev-parse', 'HEAD')
const seconds = git('log', '-1', '--format=%ct')
// Some CI systems write a token into this address.
const source = (printed('git', 'remote', 'get-url', 'origin') ?? 'unknown').replace(/\/\/[^/@]*@/, '//')
const base = given.base ?? readFileSync('deploy/base-image', 'utf8').trim()

rmSync(FOLDER, { recursive: true, force: true })
mkdirSync(FOLDER)
git('archive', '--format=tar.gz', `--prefix=${prefix}/`, `--output=${FOLDER}/${prefix}-source.tar.gz`, 'HEAD')
run('npm', 'pack', './client', '--pack-destination', FOLDER)
write(`${prefix}-sbom.json`, billOfMaterials())
write(`${prefix}-notes.md`, notes())
const image = buildImage()
write(`${prefix}-provenance.json`, provenance())
if (given.key === undefined) missing.push('SHA256SUMS.sig: no --key was given')
if (missing.length > 0) write('MISSING', missing.map((line) => `${line}\n`).join(''))
const files = readdirSync(FOLDER).toSorted()
write('SHA256SUMS', files.map((file) => `${digestOf(file)}  ${file}\n`).join(''))
if (given.key !== undefined)
  run('ssh-keygen', '-Y', 'sign', '-q', '-f', given.key, '-n', 'file', `${FOLDER}/SHA256SUMS`)
process.stdout.write(readFileSync(`${FOLDER}/SHA256SUMS`, 'utf8'))
for (const line of missing) process.stdout.write(`missing: ${line}\n`)

function digestOf(file: string): string {
  return sha256(readFileSync(`${FOLDER}/${file}`))
}

/** What npm says of the lock file, without the name of this folder, the time and the random number that it adds. */
function billOfMaterials(): string {
  const bill = JSON.parse(run('deploy/sbom.sh')) as { readonly metadata: { readonly component: object } }
  const component = { ...bill.metadata.component, name }
  const metadata = { ...bill.metadata, timestamp: new Date(Number(seconds) * 1000).toISOString(), component }
  const digits = sha256(json({ ...bill, serialNumber: '', metadata }))
  const uuid = digits.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-8$3-a$4-$5')
  return json({ ...bill, serialNumber: `urn:uuid:${uuid}`, metadata })
}

function notes(): string {
  const [, ...sections] = readFileSync('CHANGELOG.md', 'utf8').split(/^(?=## )/m)
  return sections.find((section) => section.startsWith(`## ${version} (`)) ?? fail(`CHANGELOG.md has no ## ${version}`)
}

/** Builds the image for all platforms that the builder knows. @returns the digest of its index */
function buildImage(): string | undefined {
  const builder = printed('docker', 'buildx', 'inspect', '--bootstrap')
  if (printed('docker', 'version') === undefined) missing.push('the image: no Docker engine answers')
  else if (builder === undefined) missing.push('the image: Docker has no buildx, or its builder does not start')
  else {
    const platforms = PLATFORMS.filter((platform) => builder.includes(platform))
    for (const platform of PLATFORMS) {
      if (!platforms.includes(platform)) missing.push(`the image for ${platform}: the builder does not know it`)
    }
    const file = `${FOLDER}/${prefix}-image.tar`
    const args = { NODE_IMAGE: base, SOURCE: source, REVISION: commit, SOURCE_DATE_EPOCH: seconds }
    const ofImage = Object.entries(args).flatMap(([arg, value]) => ['--build-arg', `${arg}=${value}`])
    const output = `type=oci,dest=${file},rewrite-timestamp=true`
    const options = ['--platform', platforms.join(), '--provenance=false', ...ofImage, '--output', output]
    run('docker', 'buildx', 'build', ...options, ...forBuildx, '.')
    const index = JSON.parse(run('tar', '-xOf', file, 'index.json')) as {
      readonly manifests: readonly { digest: string }[]
    }
    return index.manifests[0]?.digest
  }
  return undefined
}

/** Who made which files of what, as SLSA asks (https://slsa.dev/spec/v1.1/provenance). */
function provenance(): string {
  const [baseName, baseDigest] = base.split('@sha256:')
  const subject = readdirSync(FOLDER)
    .toSorted()
    .map((file) => ({ name: file, digest: { sha256: digestOf(file) } }))
  return json({
    _type: 'https://in-toto.io/Statement/v1',
    subject: [...subject, ...(image === undefined ? [] : [{ name, digest: { sha256: image.replace('sha256:', '') } }])],
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: `${source}#npm-run-release`,
        externalParameters: { source, ref: isTagged ? `refs/tags/v${version}` : commit, base, forBuildx },
        resolvedDependencies: [
          { uri: `git+${source}`, digest: { gitCommit: commit } },
          { name: 'package-lock.json', digest: { sha256: sha256(readFileSync('package-lock.json')) } },
          ...(image === undefined || baseDigest === undefined
            ? []
            : [{ name: baseName, digest: { sha256: baseDigest } }]),
        ],
      },
      runDetails: {
        builder: { id: `${source}#by-hand`, version: { node: process.version, npm: run('npm', '--version') } },
      },
    },
  })
}
