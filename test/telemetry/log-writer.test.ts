import { execFileSync, spawnSync } from 'node:child_process'
import { closeSync, constants, openSync, read, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { test, type Test } from 'tap'
import { LogWriter } from '../../src/telemetry/log-writer.ts'
import { until } from '../support/until.ts'

const CHUNK = 4096
const END_LENGTH = 128

/** A pipe whose reader takes nothing until it is asked to. */
function pipe(t: Test, flags = constants.O_RDWR) {
  const path = join(t.testdir(), 'pipe')
  execFileSync('mkfifo', [path])
  const reader = openSync(path, constants.O_RDWR)
  const fd = openSync(path, flags)
  t.teardown(() => [fd, reader].forEach(closeSync))
  const buffer = Buffer.alloc(1 << 16)
  return {
    fd,
    /** Reads on until `isLast`, which is told how the text ends so far; one read too many would last for ever. */
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

function lost(): never {
  throw new Error('lines were dropped')
}

const flushed = (writer: LogWriter): Promise<void> => new Promise((resolve) => writer.flush(resolve))

await test('every line arrives, whole and in order, whatever its length and alphabet', async (t) => {
  const path = join(t.testdir(), 'log')
  const fd = openSync(path, 'a')
  const writer = new LogWriter(fd, CHUNK, lost)
  const lines = Array.from({ length: 5000 }, (_, index) => `${index} ${'ü€😀a'.repeat((index * 7) % 40)}\n`)
  lines.splice(
    2500,
    0,
    `${'€'.repeat(CHUNK)}\n`,
    `${'x'.repeat(CHUNK - 1)}\n`,
    `${'x'.repeat(CHUNK)}\n`,
    '\n',
  )
  for (const line of lines) writer.write(line)
  await flushed(writer)
  t.equal(readFileSync(path, 'utf8'), lines.join(''))
  await flushed(writer)
  closeSync(fd)
})

await test('a line alone does not wait for others', async (t) => {
  const path = join(t.testdir(), 'log')
  const fd = openSync(path, 'a')
  const writer = new LogWriter(fd, CHUNK, lost)
  for (const line of ['one\n', 'two\n']) {
    writer.write(line)
    await until(() => readFileSync(path, 'utf8').endsWith(line))
  }
  t.equal(readFileSync(path, 'utf8'), 'one\ntwo\n')
  closeSync(fd)
})

const lineOf = (letter: string, index: number): string => `${letter.repeat(1 + (index % 300))} ${index}\n`

await test('two writers of one pipe do not cut each other in two', async (t) => {
  const { fd, readUntil } = pipe(t)
  const writers = ['a', 'b'].map((letter) => ({ letter, writer: new LogWriter(fd, CHUNK, lost) }))
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

await test('where nobody reads, nobody waits, memory is bounded, and lines that were dropped are told', async (t) => {
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
  t.ok(process.memoryUsage.rss() - before < 40 * 1_048_576, 'of 60 MB')
  t.equal(dropped, 0, 'not told before there is room')
  t.ok(writer.droppedLines > 40_000, 'but counted')
  let last = ''
  let again = 0
  const text = await readUntil((end) => {
    if (dropped === 0) {
      again++
      writer.write('again\n')
    } else if (last === '') writer.write((last = 'last\n'))
    writer.flush()
    return last !== '' && end.endsWith(last)
  })
  const lines = text.split('\n')
  const kept = lines.filter((read) => read === line.trimEnd()).length
  const said = lines.filter((read) => read === 'again').length
  t.equal(kept + said + dropped, COUNT + again, 'no line is lost without a word')
  t.ok(kept > 8000 && kept < 20_000, '16 MiB of buffers were kept')
  t.ok(lines.includes(`dropped ${dropped}`))
  t.equal(writer.droppedLines, dropped)
})

await test('a flush is over when its lines are written, however many follow', async (t) => {
  const { fd, readUntil } = pipe(t)
  const writer = new LogWriter(fd, CHUNK, lost)
  writer.write('first\n')
  let isFlushed = false
  writer.flush(() => (isFlushed = true))
  const line = `${'z'.repeat(999)}\n`
  // More than the pipe takes: the last of them cannot be written before somebody reads on.
  for (let index = 0; index < 500; index++) writer.write(line)
  await until(() => isFlushed)
  writer.write('last\n')
  writer.flush()
  const text = await readUntil((end) => end.endsWith('last\n'))
  t.equal(text, `first\n${line.repeat(500)}last\n`)
})

await test('a full pipe that does not block is tried again', async (t) => {
  const { fd, readUntil } = pipe(t, constants.O_WRONLY | constants.O_NONBLOCK)
  const writer = new LogWriter(fd, CHUNK, lost)
  const lines = Array.from({ length: 2000 }, (_, index) => `${index} ${'y'.repeat(95)}\n`)
  for (const line of lines) writer.write(line)
  writer.flush()
  const last = lines.at(-1) ?? ''
  t.equal(await readUntil((end) => end.endsWith(last)), lines.join(''))
})

await test('a reader who has gone is no reason to wait, or to fall', async (t) => {
  const path = join(t.testdir(), 'pipe')
  execFileSync('mkfifo', [path])
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const fd = openSync(path, constants.O_WRONLY)
  closeSync(reader)
  const writer = new LogWriter(fd, CHUNK, lost)
  writer.write('to nobody\n')
  await flushed(writer)
  writer.write('nor this\n')
  await t.resolves(flushed(writer))
  t.equal(writer.droppedLines, 2, 'both are counted')
  closeSync(fd)
})

await test('what waits is written when the process exits', (t) => {
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
