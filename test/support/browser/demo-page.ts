import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { t as root } from 'tap'
import { buildPage } from '../../../sandbox/build-page.ts'

/** The STATIC_DIR of the demo page, built for the tests of this file. */
export const DEMO_PAGE = await mkdtemp(join(tmpdir(), 'demo-page-'))
root.teardown(() => rm(DEMO_PAGE, { recursive: true }))
await buildPage(DEMO_PAGE)
