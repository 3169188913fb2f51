import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { preProcessFile } from 'typescript-5'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** The files of a folder, and which of them each imports: for a type alone and by `import()`, too, which the linter leaves out. */
function importsIn(folder: string): ReadonlyMap<string, readonly string[]> {
  const files = globSync(`${folder}/**/*.{ts,tsx}`, { cwd: ROOT })
  const known = new Set(files)
  return new Map(
    files.map((file) => {
      const { importedFiles } = preProcessFile(readFileSync(join(ROOT, file), 'utf8'))
      const imported = importedFiles.map(({ fileName }) => join(dirname(file), fileName))
      return [file, imported.filter((other) => known.has(other))]
    }),
  )
}

/** The first circle that is found, as the files on the way round. */
function circleIn(imports: ReadonlyMap<string, readonly string[]>): readonly string[] | undefined {
  const done = new Set<string>()
  const search = (file: string, way: readonly string[]): readonly string[] | undefined => {
    if (way.includes(file)) return [...way.slice(way.indexOf(file)), file]
    if (done.has(file)) return undefined
    for (const next of imports.get(file) ?? []) {
      const circle = search(next, [...way, file])
      if (circle !== undefined) return circle
    }
    done.add(file)
    return undefined
  }
  for (const file of imports.keys()) {
    const circle = search(file, [])
    if (circle !== undefined) return circle
  }
  return undefined
}

await test('a circle of imports is found', (t) => {
  t.equal(
    circleIn(
      new Map([
        ['a', ['b', 'c']],
        ['b', ['c']],
        ['c', []],
      ]),
    ),
    undefined,
  )
  t.same(
    circleIn(
      new Map([
        ['a', ['b']],
        ['b', ['c', 'd']],
        ['c', []],
        ['d', ['b']],
      ]),
    ),
    ['b', 'd', 'b'],
  )
  t.end()
})

for (const folder of ['src', 'client/src']) {
  await test(`no file of ${folder} imports itself by way of others, not even for a type`, (t) => {
    const imports = importsIn(folder)
    t.ok([...imports.values()].flat().length > 100, 'imports are found')
    t.equal(circleIn(imports)?.join(' → '), undefined)
    t.end()
  })
}
