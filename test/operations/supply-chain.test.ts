import { readFileSync } from 'node:fs'
import { test } from 'tap'
import program from '../../package.json' with { type: 'json' }
import lock from '../../package-lock.json' with { type: 'json' }
import { isAllowed } from '../support/supply/licences.ts'

interface LockedPackage {
  readonly license?: string
  readonly dev?: boolean
  readonly optional?: boolean
  readonly hasInstallScript?: boolean
  /** Where the package can be installed, if not everywhere. */
  readonly os?: string | readonly string[]
  readonly cpu?: string | readonly string[]
  readonly libc?: string | readonly string[]
}

const ROOT = new URL('../../', import.meta.url)
const read = (name: string): string => readFileSync(new URL(name, ROOT), 'utf8')
const locked: [string, LockedPackage][] = Object.entries(lock.packages)
/** The packages that the image contains. */
const shipped = locked.filter(([path, { dev, optional }]) => path !== '' && dev !== true && optional !== true)

await test('Every package of the image has a licence that allows its use here', (t) => {
  t.ok(shipped.length > 50)
  for (const [path, { license }] of shipped) t.ok(isAllowed(license), `${path}: ${license}`)
  for (const wrong of [undefined, '', 'GPL-3.0-only', 'UNLICENSED', '(MIT AND GPL-2.0-only)', 'SEE LICENSE IN x']) {
    t.notOk(isAllowed(wrong), String(wrong))
  }
  t.ok(isAllowed('(MIT OR GPL-2.0-only)'), 'of two licences one may be chosen')
  t.end()
})

await test('No package of the image has an install script, since the image runs none', (t) => {
  for (const [path, { hasInstallScript = false }] of shipped) t.notOk(hasInstallScript, path)
  t.match(read('Dockerfile'), /npm ci --omit=dev --omit=optional --ignore-scripts /)
  t.end()
})

await test('No package of the image is for one platform, since one stage of the Dockerfile installs them for all', (t) => {
  t.match(read('Dockerfile'), /^FROM --platform=\$BUILDPLATFORM \$\{NODE_IMAGE\} AS modules$/m)
  for (const [path, { os, cpu, libc }] of shipped) t.same([os, cpu, libc], [undefined, undefined, undefined], path)
  const forOne = locked.filter(([, { os, cpu }]) => os !== undefined && cpu !== undefined)
  t.ok(forOne.length > 0, 'the lock file says which packages are for one platform')
  t.end()
})

await test('A release is built on a base image that is fixed by its digest, which the update bot finds', (t) => {
  const base = read('deploy/base-image')
  const [, tagged] = /^ARG NODE_IMAGE=(\S+)$/m.exec(read('Dockerfile')) ?? []
  t.match(base, new RegExp(`^${tagged}@sha256:[0-9a-f]{64}\n$`))
  t.match(read('deploy/release.ts'), "readFileSync('deploy/base-image', 'utf8')")
  t.match(read('deploy/release.ts'), 'NODE_IMAGE: base,')
  const { customManagers } = JSON.parse(read('renovate.json')) as {
    readonly customManagers: readonly { readonly matchStrings: readonly string[] }[]
  }
  const found = customManagers.map(({ matchStrings }) => new RegExp(matchStrings.join('')).exec(base)?.groups)
  t.match(found, [{ depName: 'node', currentValue: '24-slim', currentDigest: /^sha256:/ }])
  t.end()
})

await test('dependencies.md says of each dependency why it is there', (t) => {
  const rows = [...read('docs/dependencies.md').matchAll(/^\| `([^`]+)` \| \S.*\. \|$/gm)].map(([, name = '']) => name)
  t.same(rows.toSorted(), Object.keys(program.dependencies).toSorted())
  t.end()
})

await test('The labels of the image state the licence of package.json, and what it was built from', (t) => {
  const dockerfile = read('Dockerfile')
  const label = (name: string): string | undefined =>
    new RegExp(`org\\.opencontainers\\.image\\.${name}="(.*)"`).exec(dockerfile)?.[1]
  t.equal(label('licenses'), program.license)
  t.equal(label('revision'), '${REVISION}')
  t.match(dockerfile, '\nENV REVISION=${REVISION}\n', 'and so does bff_build_info')
  t.equal(label('source'), '${SOURCE}')
  t.end()
})
