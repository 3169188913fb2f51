import { execFileSync, spawnSync } from 'node:child_process'
import {
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Row } from './row.ts'

/** A product that a suite can run with. */
export interface Obtained {
  readonly version: string
  /** A folder for the front of the PATH; undefined: none. */
  readonly programs: string | undefined
}

/** The message says why a product could not be had. */
export class NotHad extends Error {}

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '')
/** What a program of another suite shares with this machine. */
const SHARED = [
  ...['/dev', '/proc', '/sys', '/tmp', '/run', '/var/log', '/root', REPOSITORY],
  ...[
    '/etc/passwd',
    '/etc/group',
    '/etc/hosts',
    '/etc/resolv.conf',
    '/etc/nsswitch.conf',
    '/etc/fonts',
    '/etc/ssl/certs',
  ],
].filter((path) => existsSync(path))

/** Puts a product into a folder of its own. @throws NotHad */
export function obtain({ from }: Row, folder: string): Obtained {
  if ('installed' in from) return { version: installedVersion(from.installed), programs: undefined }
  if ('dependency' in from) {
    const { version } = JSON.parse(readFileSync(join(REPOSITORY, from.dependency, 'package.json'), 'utf8'))
    return { version, programs: undefined }
  }
  if ('npm' in from) {
    attempt('npm', ['install', '--prefix', folder, '--no-audit', '--no-fund', '--no-save', from.npm])
    const [name = '', version = ''] = from.npm.split('@')
    return { version, programs: join(folder, 'node_modules', name, 'bin') }
  }
  const archives = download(from.debian, from.packages, folder)
  const root = join(folder, 'root')
  unpack(archives, root)
  const programs = join(folder, 'programs')
  mkdirSync(programs)
  for (const [name, path] of Object.entries(from.programs)) {
    writeFileSync(join(programs, name), inItsRoot(root, path), { mode: 0o755 })
  }
  const first = readdirSync(archives).find((file) => file.startsWith(`${from.packages[0]}_`))
  const version = execFileSync('dpkg-deb', ['--field', join(archives, first ?? ''), 'Version'], { encoding: 'utf8' })
  return { version: upstreamVersion(version), programs }
}

/** The version that a package's authors gave it: without Debian's epoch and revision. */
const upstreamVersion = (version: string): string =>
  version
    .trim()
    .replace(/^\d+:/, '')
    .replace(/-[^-]*$/, '')
    .replace(/\+(ds|dfsg).*$/, '')

function installedVersion(name: string): string {
  return upstreamVersion(attempt('dpkg-query', ['--show', '--showformat=${Version}', name]))
}

/** Downloads packages of a suite with all that they depend on, from where this machine has its own. @returns the folder */
function download(suite: string, packages: readonly string[], folder: string): string {
  const apt = join(folder, 'apt')
  for (const each of ['state/lists/partial', 'cache/archives/partial', 'etc/apt.conf.d', 'etc/preferences.d']) {
    mkdirSync(join(apt, each), { recursive: true })
  }
  writeFileSync(join(apt, 'status'), '')
  writeFileSync(
    join(apt, 'list'),
    `deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${source()} ${suite} main\n`,
  )
  const options = {
    'Dir::Etc': join(apt, 'etc'),
    'Dir::Etc::sourcelist': join(apt, 'list'),
    'Dir::Etc::sourceparts': '/dev/null',
    'Dir::State': join(apt, 'state'),
    'Dir::State::status': join(apt, 'status'),
    'Dir::Cache': join(apt, 'cache'),
    'APT::Install-Recommends': 'false',
    'APT::Sandbox::User': 'root',
  }
  const words = Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`])
  attempt('apt-get', [...words, '--quiet', 'update'])
  attempt('apt-get', [...words, '--quiet', '--yes', '--download-only', 'install', ...packages])
  return join(apt, 'cache/archives')
}

/** The address from which this machine has Debian's packages. */
function source(): string {
  const lists = globSync(['/etc/apt/sources.list', '/etc/apt/sources.list.d/*'])
  for (const list of lists) {
    const text = readFileSync(list, 'utf8')
    const [, address] = /^(?:deb(?: \[[^\]]*\])? |URIs: *)([a-z]+:\/\/\S+\/debian\/?)(?: |$)/m.exec(text) ?? []
    if (address !== undefined) return address
  }
  throw new NotHad('apt has no source of Debian packages here')
}

/** What an installation makes indexes with, for programs with a window, which do not start without them. */
const INDEXES = [
  ['usr/lib/*/glib-2.0/glib-compile-schemas', '/usr/share/glib-2.0/schemas'],
  ['usr/bin/update-mime-database', '/usr/share/mime'],
] as const

function unpack(archives: string, root: string): void {
  for (const each of ['bin', 'sbin', 'lib', 'lib64']) {
    mkdirSync(join(root, 'usr', each), { recursive: true })
    symlinkSync(`usr/${each}`, join(root, each))
  }
  for (const file of readdirSync(archives).filter((each) => each.endsWith('.deb'))) {
    const tar = 'dpkg-deb --fsys-tarfile "$1" | tar --extract --directory="$2" --keep-directory-symlink --no-same-owner'
    execFileSync('sh', ['-euc', tar, 'sh', join(archives, file), root])
  }
  for (const [program, folder] of INDEXES) {
    const [found] = globSync(program, { cwd: root })
    if (found !== undefined) spawnSync('chroot', [root, `/${found}`, folder], { stdio: 'ignore' })
  }
  for (const each of SHARED) {
    const place = join(root, each)
    mkdirSync(statSync(each).isDirectory() ? place : dirname(place), { recursive: true })
    if (!existsSync(place)) writeFileSync(place, '')
  }
}

/** A script that becomes a program of another suite, which sees its own libraries, and the data of this machine. */
function inItsRoot(root: string, program: string): string {
  return `#!/bin/sh
exec unshare --mount --propagation private sh -euc '
for each in ${SHARED.join(' ')}; do mount --rbind $each ${root}$each; done
export LC_ALL=C
exec unshare --root=${root} --wd="$PWD" ${program} "$@"' sh "$@"
`
}

/** Runs a program. @throws NotHad with its last line */
function attempt(program: string, words: readonly string[]): string {
  try {
    return execFileSync(program, words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  } catch (error) {
    const said = String((error as { stderr?: unknown }).stderr ?? error)
    throw new NotHad(
      said
        .trim()
        .split('\n')
        .findLast((line) => /^E: |error/.test(line)) ?? said.trim(),
      { cause: error },
    )
  }
}
