import { execFileSync, spawnSync } from 'node:child_process'
import { closeSync, constants, openSync, read, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import { test, type Test } from 'tap'
import { LogWriter } from '../../src/telemetry/log-writer.ts'
import { replace } from '../support/time/replace.ts'
import { until } from '../support/time/until.ts'

const CHUNK = 4096
const END_LENGTH = 128
const skip = spawnSync('unshare', ['-rm', 'true']).status !== 0 && 'it needs user namespaces'

/** A pipe that is read only when `readUntil` is called. */
function pipe(t: Test, flags = constants.O_RDWR) {
  const path = join(t.testdir(), 'pipe')
  execFileSync('mkfifo', [path])
  const reader = openSync(path, constants.O_RDWR)
  const fd = openSync(path, flags)
  t.teardown(() => [fd, reader].forEach(closeSync))
  const buffer = Buffer.alloc(1 << 16)
  return {
    fd,
    /**
     * Reads until `isLast` returns true. It receives the end of the text so far. After the last line it must return
     * true, as one more read would never return.
     */
    readUntil: async (isLast: (end: string) => boolean): Promise<string> => {
      const pieces: string[] = []
      let end = ''
      do {
        const { bytesRead } = await promisify(read)(reader, buffer, 0, buffer.length, null)
        const piece = buffer.toString('latin1', 0, bytesRead)
        pieces.push(piece)
        end = (end + piece).slice(-END_LENGTH)
      } while (!isLast(end))
      return pieces.join('')
    },
  }
}

function failOnDrop(): never {
  throw new Error('lines were dropped')
}

const flushed = (writer: LogWriter): Promise<void> => new Promise((resolve) => writer.flush(resolve))

await test('LogWriter writes every line whole and in order, whatever its length and characters', async (t) => {
  const path = join(t.testdir(), 'log')
  const fd = openSync(path, 'a')
  const writer = new LogWriter(fd, CHUNK, failOnDrop)
  const lines = Array.from({ length: 5000 }, (_, index) => `${index} ${'ü€😀a'.repeat((index * 7) % 40)}\n`)
  lines.splice(2500, 0, `${'€'.repeat(CHUNK)}\n`, `${'x'.repeat(CHUNK - 1)}\n`, `${'x'.repeat(CHUNK)}\n`, '\n')
  for (const line of lines) writer.write(line)
  await flushed(writer)
  t.equal(readFileSync(path, 'utf8'), lines.join(''))
  await flushed(writer)
  closeSync(fd)
})

await test('LogWriter writes a single line without waiting for others', async (t) => {
  const path = join(t.testdir(), 'log')
  const fd = openSync(path, 'a')
  const writer = new LogWriter(fd, CHUNK, failOnDrop)
  for (const line of ['one\n', 'two\n']) {
    writer.write(line)
    await until(() => readFileSync(path, 'utf8').endsWith(line))
  }
  t.equal(readFileSync(path, 'utf8'), 'one\ntwo\n')
  closeSync(fd)
})

const lineOf = (letter: string, index: number): string => `${letter.repeat(1 + (index % 300))} ${index}\n`

await test("Two LogWriters on one pipe do not split each other's lines", async (t) => {
  const { fd, readUntil } = pipe(t)
  const writers = ['a', 'b'].map((letter) => ({ letter, writer: new LogWriter(fd, CHUNK, failOnDrop) }))
  const COUNT = 4000
  for (let index = 0; index < COUNT; index++) {
    for (const { letter, writer } of writers) writer.write(lineOf(letter, index))
  }
  const bothFlushed = Promise.all(writers.map(({ writer }) => flushed(writer)))
  void bothFlushed.then(() => writeSync(fd, 'end\n'))
  const text = await readUntil((end) => end.endsWith('end\n'))
  for (const { letter } of writers) {
    const own = text.split('\n').filter((read) => read.startsWith(letter))
    const expected = Array.from({ length: COUNT }, (_, index) => lineOf(letter, index).trimEnd())
    t.equal(own.join(' '), expected.join(' '))
  }
})

await test('LogWriter.write never blocks on a full pipe: memory is bounded, and dropped lines are reported', async (t) => {
  const { fd, readUntil } = pipe(t)
  let dropped = 0
  const writer: LogWriter = new LogWriter(fd, CHUNK, (lines) => {
    dropped += lines
    writer.write(`dropped ${lines}\n`)
  })
  const line = `${'x'.repeat(999)}\n`
  const COUNT = 60_000
  const before = process.memoryUsage.rss()
  for (let index = 0; index < COUNT; index++) writer.write(line)
  t.ok(process.memoryUsage.rss() - before < 40 * 1_048_576, '60 MB of lines take less than 40 MiB')
  t.equal(dropped, 0, 'dropped lines are not reported before there is room')
  t.ok(writer.droppedLines > 40_000, 'dropped lines are counted')
  let isLastWritten = false
  let extra = 0
  const text = await readUntil((end) => {
    if (dropped === 0) {
      extra++
      writer.write('extra\n')
    } else if (!isLastWritten) {
      // There may be no room for it yet.
      const before = writer.droppedLines
      writer.write('last\n')
      isLastWritten = writer.droppedLines === before
      if (!isLastWritten) extra++
    }
    writer.flush()
    return isLastWritten && end.endsWith('last\n')
  })
  const lines = text.split('\n')
  const kept = lines.filter((read) => read === line.trimEnd()).length
  const keptExtra = lines.filter((read) => read === 'extra').length
  t.equal(kept + keptExtra + dropped, COUNT + extra, 'every line is written or counted as dropped')
  t.ok(kept > 8000 && kept < 20_000, '16 MiB of buffers were kept')
  const reported = lines.filter((read) => read.startsWith('dropped ')).map((read) => Number(read.split(' ')[1]))
  t.equal(
    reported.reduce((total, count) => total + count, 0),
    dropped,
  )
  t.equal(writer.droppedLines, dropped)
})

await test('LogWriter.flush calls back when its own lines are written, however many follow', async (t) => {
  const { fd, readUntil } = pipe(t)
  const writer = new LogWriter(fd, CHUNK, failOnDrop)
  writer.write('first\n')
  let isFlushed = false
  writer.flush(() => (isFlushed = true))
  const line = `${'z'.repeat(999)}\n`
  // The pipe holds fewer lines, so the last of them cannot be written before the pipe is read.
  for (let index = 0; index < 500; index++) writer.write(line)
  await until(() => isFlushed)
  writer.write('last\n')
  writer.flush()
  const text = await readUntil((end) => end.endsWith('last\n'))
  t.equal(text, `first\n${line.repeat(500)}last\n`)
})

await test('LogWriter retries a full non-blocking pipe', async (t) => {
  const { fd, readUntil } = pipe(t, constants.O_WRONLY | constants.O_NONBLOCK)
  const writer = new LogWriter(fd, CHUNK, failOnDrop)
  const lines = Array.from({ length: 2000 }, (_, index) => `${index} ${'y'.repeat(95)}\n`)
  for (const line of lines) writer.write(line)
  writer.flush()
  const last = lines.at(-1) ?? ''
  t.equal(await readUntil((end) => end.endsWith(last)), lines.join(''))
})

await test('LogWriter.flush calls back and counts the lines as dropped when the reader of the pipe is gone', async (t) => {
  const path = join(t.testdir(), 'pipe')
  execFileSync('mkfifo', [path])
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const fd = openSync(path, constants.O_WRONLY)
  closeSync(reader)
  const writer = new LogWriter(fd, CHUNK, failOnDrop)
  writer.write('to nobody\n')
  await flushed(writer)
  writer.write('nor this\n')
  await t.resolves(flushed(writer))
  t.equal(writer.droppedLines, 2, 'both are counted')
  closeSync(fd)
})

await test('LogWriter writes its buffered lines when the process exits', (t) => {
  const file = fileURLToPath(new URL('../../src/telemetry/log-writer.ts', import.meta.url))
  const program = `import { LogWriter } from ${JSON.stringify(file)}
    new LogWriter(1, 4096, () => {}).write('goodbye\\n')
    process.exit(3)`
  const args = ['--input-type=module', '--eval', program]
  const { status, stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  t.equal(status, 3)
  t.equal(stdout, 'goodbye\n')
  t.end()
})

await test('LogWriter.end waits for a slow reader, also for the lines that come meanwhile, and none is lost', async (t) => {
  const { fd, readUntil } = pipe(t)
  const writer = new LogWriter(fd, CHUNK, failOnDrop)
  const line = `${'z'.repeat(999)}\n`
  for (let index = 0; index < 500; index++) writer.write(line)
  t.ok(writer.waitingBytes >= 400_000, `${writer.waitingBytes}`)
  const ended = writer.end()
  writer.flush(() => writer.write('late\n'))
  const text = await readUntil((end) => end.endsWith('late\n'))
  t.equal(await ended, 0)
  t.equal(text, `${line.repeat(500)}late\n`)
  t.equal(writer.waitingBytes, 0)
})

await test('LogWriter.end gives a reader that hangs a moment, and counts what waits and what was dropped', async (t) => {
  const { fd, readUntil } = pipe(t)
  const writer = new LogWriter(fd, CHUNK, () => undefined)
  const COUNT = 30_000
  for (let index = 0; index < COUNT; index++) writer.write(`${'x'.repeat(999)} ${index}\n`)
  const { droppedLines } = writer
  t.ok(droppedLines > 10_000)
  await setTimeout(300)
  // The pipe has been full for a while.
  const now = performance.now.bind(performance)
  replace(t, performance, 'now', () => now() + 60_000)
  const lost = await Promise.race([writer.end(60_000), setTimeout(30_000, undefined, { ref: false })])
  if (lost === undefined) return void t.fail('it has read nothing for as long as a slow one gets')
  t.ok(lost < COUNT && lost > COUNT - 100, `${lost} of ${COUNT}: a pipe holds 64 KiB`)
  // Otherwise the thread that writes would outlive the test.
  await readUntil((end) => end.endsWith(` ${COUNT - droppedLines - 1}\n`))
})

await test('LogWriter.end counts the lines that cannot be written', async (t) => {
  const fd = openSync('/dev/full', 'a')
  const writer = new LogWriter(fd, CHUNK, failOnDrop)
  writer.write('before\n')
  await flushed(writer)
  writer.write('one\n')
  writer.write('two\n')
  t.equal(await writer.end(), 3, 'and one that was lost before, which no line could report')
  closeSync(fd)
})

await test('LogWriter says after a full disk how many lines it has lost, and the next line is whole', { skip }, (t) => {
  const file = fileURLToPath(new URL('../../src/telemetry/log-writer.ts', import.meta.url))
  const program = `import { LogWriter } from ${JSON.stringify(file)}
    import { execFileSync } from 'node:child_process'
    import { openSync, readFileSync } from 'node:fs'
    const writer = new LogWriter(openSync('log', 'a'), 4096, (lines) => writer.write('dropped ' + lines + '\\n'))
    const say = (line) => (writer.write(line + '\\n'), new Promise((resolve) => writer.flush(resolve)))
    for (let index = 0; index < 8; index++) await say('x'.repeat(2000))
    execFileSync('mount', ['-o', 'remount,size=64k', '.'])
    await say('after')
    await say('later')
    process.stdout.write(readFileSync('log', 'latin1').replaceAll(/x{2000}/g, 'whole'))`
  const inside = 'mount -t tmpfs -o size=8k tmpfs . && cd "$PWD" && exec "$0" "$@"'
  const args = ['-rm', 'sh', '-c', inside, process.execPath, '--input-type=module', '--eval', program]
  const { stdout, stderr } = spawnSync('unshare', args, { encoding: 'utf8', cwd: t.testdir() })
  t.match(stdout, /^(whole\n){4}x+\nafter\ndropped 4\nlater\n$/, stderr)
  t.end()
})
