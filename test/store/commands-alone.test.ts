import { test } from 'tap'
import { methodsOf, runnerOf, type Command, type Commands } from '../../src/store/command.ts'
import { markOf } from '../../src/store/marked-reading.ts'
import { evenWhenFull, NOW, runScript } from '../../src/store/scripts.ts'

interface Methods {
  twice(count: number): Promise<number>
  join(one: string, other: string): Promise<string>
}

const TABLE: Commands<string, Methods> = {
  twice: { send: async () => undefined, reply: () => 0, memory: (_memory, count) => 2 * count },
  join: { send: async () => undefined, reply: () => '', memory: (memory, one, other) => `${one}${memory}${other}` },
}

await test('a table of commands becomes methods that give a runner the command and all of its arguments', async (t) => {
  const methods = methodsOf(TABLE, { run: async (command, args) => command.memory('-', ...args) })
  t.same(Object.keys(methods), ['twice', 'join'])
  t.same([await methods.twice(4), await methods.join('a', 'b')], [8, 'a-b'])
})

await test('a class has the methods of a table, and its heir says how they run, or runs one in another way', async (t) => {
  class Runner extends runnerOf(TABLE) {
    readonly memory = '+'

    override async run<Args extends readonly unknown[], Reply>(
      command: Command<string, Args, Reply>,
      args: Args,
    ): Promise<Reply> {
      return command.memory(this.memory, ...args)
    }
  }
  const runner = new Runner()
  t.same([await runner.twice(4), await runner.join('a', 'b')], [8, 'a+b'])
  t.same(Object.keys(runner), ['memory'], 'the methods belong to the class')
  runner.twice = async () => 1
  t.equal(await runner.twice(4), 1)
  t.equal(await new Runner().twice(4), 8)
})

await test('a script goes out by its text, under its first key', async (t) => {
  const redis = { send: async (...args: unknown[]) => args }
  t.same(await runScript(redis, 'return 1', ['a', 'b'], ['x', 2, Buffer.from('y')], true), [
    'a',
    ['EVAL', 'return 1', '2', 'a', 'b', 'x', '2', Buffer.from('y')],
    true,
  ])
  t.same(await runScript(redis, 'return 1', []), ['', ['EVAL', 'return 1', '0'], undefined])
  t.end()
})

await test('a script that may run on a full server says so in its first line', (t) => {
  t.equal(evenWhenFull('return 1'), '#!lua flags=allow-oom\nreturn 1')
  t.match(NOW, /local now = /)
  t.end()
})

await test('the mark of a text is its first word', (t) => {
  t.same(['mark and text', 'mark', ''].map(markOf), ['mark', 'mark', ''])
  t.end()
})
