/** A program that starts two commands, and prints the process id of the one that goes on when the other has ended. */
import { spawn } from 'node:child_process'
import { endWithProcess } from '../../../sandbox/end-with-process.ts'

const lasting = spawn('sleep', ['600'], { stdio: 'ignore' })
endWithProcess(lasting)
const short = spawn('true', { stdio: 'ignore' })
endWithProcess(short)
short.once('exit', () => process.stdout.write(`${lasting.pid}\n`))
