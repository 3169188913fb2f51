import { readdirSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { devNull } from 'node:os'
import { test } from 'tap'
import { OpenDescriptors } from '../../src/telemetry/descriptors.ts'

await test('Open descriptors are counted on a kernel that tells their number, and on one that does not', async (t) => {
  const tells = new OpenDescriptors()
  const tellsNot = new OpenDescriptors(async () => 0)
  const [before, listedBefore] = [await tells.count(), await tellsNot.count()]
  const files = await Promise.all(Array.from({ length: 50 }, () => open(devNull)))
  t.equal(((await tells.count()) ?? 0) - (before ?? 0), 50)
  t.equal(((await tellsNot.count()) ?? 0) - (listedBefore ?? 0), 50)
  t.equal(await tellsNot.count(), readdirSync('/proc/self/fd').length - 1)
  await Promise.all(files.map((file) => file.close()))
})

await test('When no descriptor is left to count with, the last number stays', async (t) => {
  let error: (Error & { code?: string }) | undefined
  const descriptors = new OpenDescriptors(async () => {
    if (error !== undefined) throw error
    return 1000
  })
  t.equal(await descriptors.count(), 1000)
  error = Object.assign(new Error('too many open files'), { code: 'EMFILE' })
  t.equal(await descriptors.count(), 1000)
  error = Object.assign(new Error('no such folder'), { code: 'ENOENT' })
  t.equal(await descriptors.count(), undefined, 'a system without such a folder')
})
