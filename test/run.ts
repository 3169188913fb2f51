import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname } from 'node:path'

/**
 * What `npm test` runs. tap starts a process for each file, and most files take longer to load the server than to try it. So tap is
 * given files that import up to twenty of one folder, one after another, which takes 40 % less processor time. A file that cannot share
 * a process says {@link ALONE}, and why. Files that play timers or clocks share one with their like, not with those whose servers have
 * timers of their own, and files with real browsers share those, whatever their folder. Files that are named by an argument run as they
 * are.
 */
const MOST = 20
/** A file with a browser takes three times as long. */
const MOST_OF_BROWSERS = 7
const ALONE = 'In a process of its own:'
const PLAYS_TIME = /Timers\b|\.delays\b|replace\(t, (?:performance|Date)\b/
const HAS_BROWSER = /\/(?:browsers|chromium|devtools-page)\.ts'/
const BROWSERS = 'browsers'
/**
 * What takes longest begins first, so that no process is left to run alone at the end. tap runs files in the order of their names, so
 * their names begin with a letter for their turn.
 */
const LONG = 'client standstill ops browsers client-played upstream login sessions sockets store nemesis'.split(' ')
const FOLDER = '.tap/together'
const END = "import { endAnyway } from '../../test/support/time/left-open.ts'"
/** With `teardown` of its own, tap would take a file that is being loaded for the end of all. */
const SHARED = 't.teardown = t.after\n'

/** The name of those that share processes. */
function groupOf(file: string): string {
  const code = readFileSync(file, 'utf8')
  if (HAS_BROWSER.test(code)) return BROWSERS
  return basename(dirname(file)) + (PLAYS_TIME.test(code) ? '-played' : '')
}

function turnOf(group: string): number {
  return LONG.includes(group) ? LONG.indexOf(group) : LONG.length
}

/** Writes files that import these, and returns their names. */
function grouped(files: readonly string[]): string[] {
  rmSync(FOLDER, { recursive: true, force: true })
  mkdirSync(FOLDER, { recursive: true })
  const groups = [...Map.groupBy(files, groupOf)].toSorted(([one], [other]) => turnOf(one) - turnOf(other))
  return groups.flatMap(([group, members]) => {
    const count = Math.ceil(members.length / (group === BROWSERS ? MOST_OF_BROWSERS : MOST))
    return Array.from({ length: count }, (_, part) => {
      const name = `${FOLDER}/${String.fromCharCode(97 + turnOf(group))}-${group}-${part + 1}.mjs`
      const imports = members
        .filter((_, index) => index % count === part)
        .map((file) => `t.comment('${file}')\nawait import('../../${file}')\n`)
      writeFileSync(name, `import { t } from 'tap'\n${END}\n${SHARED}${imports.join('')}t.end()\nendAnyway()\n`)
      return name
    })
  })
}

const given = process.argv.slice(2)
if (!given.some((each) => each.endsWith('.test.ts'))) {
  const files = execFileSync('tap', ['list'], { encoding: 'utf8' }).split('\n').filter(Boolean)
  const isAlone = (file: string): boolean => readFileSync(file, 'utf8').includes(ALONE)
  // Twenty files take longer than the one for which .taprc sets a limit.
  given.unshift('--timeout=1200')
  given.push(...grouped(files.filter((file) => !isAlone(file))), ...files.filter(isAlone))
}
process.exitCode = spawnSync('tap', given, { stdio: 'inherit' }).status ?? 1
